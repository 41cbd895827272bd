"""Files that are whole or absent: written under a temporary name beside the target, then renamed."""

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

from jostle.errors import FailureError, UsageError


@contextlib.contextmanager
def replacing(path: str | Path) -> Iterator[Path]:
    """Yield a temporary path beside ``path``; rename it to ``path`` when the block ends well, remove it otherwise."""
    path = Path(path)
    check_writable(path)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".part")
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        temporary.chmod(0o666 & ~_umask())  # as a plain open() would; mkstemp lets only the owner read
        with temporary.open("rb+") as written:
            os.fsync(written.fileno())
        temporary.replace(path)
    except OSError as error:
        raise FailureError(f"could not write {path}: {error.strerror or error}; nothing was left behind") from error
    finally:
        temporary.unlink(missing_ok=True)


def _umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def write_text(path: str | Path, text: str) -> None:
    """Write ``text`` to ``path`` so that a reader sees the old file or the new one, never a part."""
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def check_writable(path: str | Path) -> None:
    """Raise at once, before any work, if ``path`` cannot become a file; make its parent folder if need be."""
    path = Path(path)
    if path.is_dir():
        raise UsageError(f"output {path} is a directory; give the name of a file, for example {path / 'result.json'}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"output {path} cannot be written: {error.strerror or error}") from error
    if not os.access(path.parent, os.W_OK):
        raise UsageError(f"output {path} cannot be written: no permission in {path.parent}")


def read_text(path: str | Path, kind: str) -> str:
    """The text of ``path``; a missing, unreadable or binary file is one clear line."""
    path = Path(path)
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise UsageError(f"{kind} file {path} does not exist") from None
    except UnicodeDecodeError as error:
        raise UsageError(f"{kind} file {path} is not a text file ({error.reason})") from None
    except OSError as error:
        raise UsageError(f"{kind} file {path} cannot be read: {error.strerror or error}") from None
