"""Atomic writes: a file is whole or absent. It is written under a temporary name beside the target, then renamed.

A kill in between leaves a part behind. The next writer of the same file removes it: a writer holds a lock on its part,
and a kill lets go of it.
"""

import contextlib
import glob
import json
import os
import stat
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from jostle.base.errors import FailureError, UsageError, shown

if sys.platform != "win32":
    import fcntl

_PART = ".part"
_NAME_BEGINS = 40  # characters, of up to four bytes each where 255 bytes are a name's most


def named_path(what: str, path: Any) -> Path:
    """``path`` as a ``Path``; whatever no file can be called is an error of one line.

    >>> named_path("output", ["a.json"])
    Traceback (most recent call last):
    jostle.base.errors.UsageError: output=['a.json'] must be a path, a text
    """
    if not isinstance(path, str | os.PathLike) or "\0" in str(path):
        raise UsageError(f"{what}={shown(path)} must be a path, a text")
    return Path(path)


@contextlib.contextmanager
def replacing(path: str | Path) -> Iterator[Path]:
    """Yield a temporary path beside ``path``; rename it to ``path`` when the block ends well, remove it otherwise."""
    path = named_path("output", path)
    _make_folder(path, "result.json")
    temporary: Path | None = None
    held = -1
    try:
        _remove_leftovers(path)
        temporary, held = _held_temporary(path)
        yield temporary
        temporary.chmod(0o666 & ~_umask())  # as a plain open() would; mkstemp lets only the owner read
        with temporary.open("rb+") as written:
            os.fsync(written.fileno())
        temporary.replace(path)
    except OSError as error:
        raise FailureError(f"could not write {path}: {error.strerror or error}; nothing was left behind") from error
    finally:
        if temporary is not None:
            temporary.unlink(missing_ok=True)
        if held >= 0:
            os.close(held)


def _temporary(path: Path) -> Path:
    """A new empty file beside ``path``. Its name has only the beginning of a long name: names have a largest length."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=_part_begins(path), suffix=_PART)
    os.close(handle)
    return Path(name)


def _part_begins(path: Path) -> str:
    return f".{path.name[:_NAME_BEGINS]}."


def _held_temporary(path: Path) -> tuple[Path, int]:
    """A new empty file beside ``path`` and an open handle that holds its lock, until it is closed or the process ends.

    Another writer of ``path`` may have taken the file for a leftover before it was locked; then there is another one.
    """
    while True:
        temporary = _temporary(path)
        try:
            held = os.open(temporary, os.O_RDWR)
        except FileNotFoundError:
            continue
        _try_lock(held)
        if temporary.exists():
            return temporary, held
        os.close(held)


def _remove_leftovers(path: Path) -> None:
    """Remove what killed writers of ``path`` left behind: parts that nobody holds. Windows lets nobody tell: none."""
    if sys.platform == "win32":
        return
    for part in path.parent.glob(f"{glob.escape(_part_begins(path))}*{_PART}"):
        with contextlib.suppress(OSError):
            handle = os.open(part, os.O_RDWR)
            try:
                if _try_lock(handle):
                    part.unlink()
            finally:
                os.close(handle)


def _try_lock(handle: int) -> bool:
    """Lock an open file if nobody else has; whether it is ours."""
    if sys.platform == "win32":
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def write_text(path: str | Path, text: str) -> None:
    """Write ``text`` to ``path`` so that a reader sees the old file or the new one, never a part."""
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def check_writable(path: str | Path, example: str = "result.json") -> None:
    """Raise at once, before any work, if ``path`` cannot become a file; make its parent folder if need be.

    A file is made beside it and removed: only that tells whether files can be made there.

    Arguments:
        path: of the file that will be written.
        example: the name of such a file, for the message about a folder.
    """
    path = named_path("output", path)
    _make_folder(path, example)
    try:
        _temporary(path).unlink()
    except OSError as error:
        raise UsageError(
            f"output {path} cannot be written: no file can be made in {path.parent} ({error.strerror or error})"
        ) from error


def _make_folder(path: Path, example: str) -> None:
    """Make the folder of ``path``; raise if that is impossible, or if ``path`` is a folder or a device."""
    try:
        found = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        found = None
    except OSError as error:  # a name that is too long, a folder that may not be looked into
        raise UsageError(f"output {path} cannot be written: {error.strerror or error}") from error
    if found is not None and stat.S_ISDIR(found.st_mode):
        raise UsageError(f"output {path} is a directory; give the name of a file, for example {path / example}")
    if found is not None and not stat.S_ISREG(found.st_mode):  # /dev/null: renaming would replace the device
        raise UsageError(f"output {path} is no ordinary file, and a result would replace it; give the name of a file")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        blocking = next((folder for folder in path.parents if folder.exists() and not folder.is_dir()), None)
        reason = (error.strerror or str(error)) if blocking is None else f"{blocking} is a file, not a folder"
        raise UsageError(f"output {path} cannot be written: {reason}") from error
    if not os.access(path.parent, os.W_OK):
        raise UsageError(f"output {path} cannot be written: no permission in {path.parent}")


def read_text(path: str | Path, kind: str) -> str:
    """The text of ``path``; a missing, unreadable or binary file is an error of one line."""
    if not isinstance(path, str | os.PathLike):
        raise UsageError(f"{kind} file {shown(path)} must be the name of a file")
    path = Path(path)
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise UsageError(f"{kind} file {path} does not exist") from None
    except UnicodeDecodeError as error:
        raise UsageError(f"{kind} file {path} is not a text file ({error.reason})") from None
    except (OSError, ValueError) as error:  # a name with a zero byte is a ValueError
        reason = error.strerror if isinstance(error, OSError) else None
        raise UsageError(f"{kind} file {path} cannot be read: {reason or error}") from None


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is no number of JSON")


def parse_json(text: str | bytes, *, strict: bool = False) -> Any:
    """What JSON says. Whatever Python's reader gives up on is a ``JSONDecodeError``, deep nesting and long numbers too.

    >>> parse_json("[1, 2]")
    [1, 2]
    >>> parse_json("[" * 100_000)
    Traceback (most recent call last):
    json.decoder.JSONDecodeError: nested too deeply: line 1 column 1 (char 0)

    Arguments:
        text: the JSON.
        strict: refuse NaN and Infinity, which Python writes and no standard knows.
    """
    try:
        return json.loads(text, parse_constant=_refuse_constant if strict else None)
    except json.JSONDecodeError:
        raise
    except RecursionError:
        raise json.JSONDecodeError("nested too deeply", "", 0) from None
    except ValueError as error:  # a number of thousands of digits, or bytes that are no text
        raise json.JSONDecodeError(" ".join(str(error).split()), "", 0) from None


def set_aside(path: str | Path) -> Path:
    """Rename a file that cannot be used to a free name beside it, so that nothing is lost; returns that name."""
    path = Path(path)
    number = 1
    while (aside := path.with_name(f"{path.name}.damaged-{number}")).exists():
        number += 1
    return path.rename(aside)
