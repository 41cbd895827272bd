"""Is a file the one we know? Size first, then sha256, computed once for as long as the file stays as it is."""

import functools
import hashlib
from pathlib import Path

from jostle.base.errors import UsageError


def verify(path: Path, size: int, sha256: str, dataset: str) -> None:
    """Raise unless the file at ``path`` has this size and checksum.

    Arguments:
        path: an existing file.
        size: in bytes.
        sha256: in hexadecimal digits.
        dataset: whose file it is, for the error message.
    """
    problem = difference(path, size, sha256)
    if problem:
        raise UsageError(
            f"dataset {dataset!r}: {path} {problem}; replace it (jostle data get {dataset} downloads the official "
            f"file), or pass check=False to read data of your own in the same format"
        )


def difference(path: Path, size: int, sha256: str) -> str:
    """How the file at ``path`` differs from the one described, in words; empty if it does not."""
    try:
        status = path.stat()
        if status.st_size != size:
            return f"has {status.st_size:,} bytes, expected {size:,}"
        found = _digest(path, status.st_size, status.st_mtime_ns)
    except OSError as error:
        return f"cannot be read ({error.strerror or error})"
    return "" if found == sha256 else f"has sha256 {found[:12]}..., expected {sha256[:12]}..."


@functools.lru_cache(maxsize=256)
def _digest(path: Path, _size: int, _changed: int) -> str:
    """The checksum; size and time of the last change are there to ask again once the file is another."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
