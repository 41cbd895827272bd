"""Getting official files: into a temporary file, compared with the known checksum, then renamed."""

import contextlib
import hashlib
import http.client
import shutil
import tarfile
import tempfile
import urllib.request
import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path, PurePosixPath
from typing import IO

from jostle.base.errors import FailureError, UsageError
from jostle.base.files import replacing
from jostle.base.progress import Progress, Reporter, State, reporter
from jostle.data.checksums import difference
from jostle.data.official import FileDataset, OfficialFile

_CHUNK = 1 << 20
_SECONDS_OF_SILENCE = 30

Opener = Callable[[str], IO[bytes]]


def open_url(url: str) -> IO[bytes]:
    """The body of the answer to a request for ``url``."""
    request = urllib.request.Request(url, headers={"User-Agent": "jostle"})
    answer: IO[bytes] = urllib.request.urlopen(request, timeout=_SECONDS_OF_SILENCE)
    return answer


def download(
    dataset: FileDataset, names: Iterable[str], folder: Path, progress: Progress = True, opener: Opener | None = None
) -> list[str]:
    """Get the files ``names`` that are not yet in ``folder`` as published; returns which were downloaded.

    Arguments:
        dataset: whose files they are.
        names: of the files.
        folder: where they go; made if need be.
        progress: a bar on a terminal, plain lines elsewhere, nothing, or your own function.
        opener: what answers a request for an address; ``open_url`` unless a test puts another in its place.
    """
    needed = [file for file in map(dataset.file, names) if difference(folder / file.name, file.size, file.sha256)]
    if not needed:
        return []
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"the folder {folder} cannot be made: {error.strerror or error}") from None
    opener = open_url if opener is None else opener
    report = reporter(progress, f"get {dataset.name}")
    try:
        if dataset.archive is not None:
            _unpacked(dataset.archive, needed, folder, report, opener)
        else:
            for file in needed:
                fetch(file, folder / file.name, report, opener)
    finally:
        report.close()
        with contextlib.suppress(OSError):  # a folder with files stays; one that nothing came to goes
            folder.rmdir()
    return [file.name for file in needed]


def fetch(file: OfficialFile, target: Path, report: Reporter, opener: Opener) -> None:
    """Download one file to ``target`` from the first address that has it; an interruption leaves nothing behind."""
    problems = []
    for url in file.urls:
        try:
            with replacing(target) as temporary:
                _transfer(url, file, temporary, report, opener)
            return
        except _TransferError as error:
            problems.append(f"{url} {error}")
    raise FailureError(f"could not download {file.name}: {'; '.join(problems)}")


class _TransferError(Exception):
    """One address did not give the file. No OSError, so that it is told from a disk that cannot be written."""


def _transfer(url: str, file: OfficialFile, target: Path, report: Reporter, opener: Opener) -> None:
    digest, done = hashlib.sha256(), 0
    with _network():
        answer = opener(url)
    with contextlib.closing(answer), target.open("wb") as written:
        while done <= file.size:  # a server that never stops sending is not listened to for ever
            with _network():
                chunk = answer.read(_CHUNK)
            if not chunk:
                break
            written.write(chunk)
            digest.update(chunk)
            done += len(chunk)
            summary = f"{file.name}: {done / 1e6:,.1f} of {file.size / 1e6:,.1f} MB"
            report(State(min(1.0, done / file.size), done, summary, "bytes"))
    if done != file.size:
        amount = "more than the" if done > file.size else f"{done:,} bytes of the"
        raise _TransferError(f"sent {amount} {file.size:,} expected")
    if digest.hexdigest() != file.sha256:
        raise _TransferError(f"sent another file (sha256 {digest.hexdigest()[:12]}..., expected {file.sha256[:12]}...)")


@contextlib.contextmanager
def _network() -> Iterator[None]:
    """Errors in the block are the network's, not the disk's."""
    try:
        yield
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise _TransferError(f"failed ({' '.join(str(error).split()) or type(error).__name__})") from error


def _unpacked(archive: OfficialFile, files: list[OfficialFile], folder: Path, report: Reporter, opener: Opener) -> None:
    """Download the archive, take ``files`` out of it, and put them in place together; the archive is not kept."""
    with tempfile.TemporaryDirectory(dir=folder, prefix=".part-") as name:
        temporary = Path(name)
        fetch(archive, temporary / archive.name, report, opener)
        try:
            _extract(temporary / archive.name, {file.name for file in files}, temporary)
        except (OSError, EOFError, tarfile.TarError, zlib.error) as error:
            raise FailureError(f"could not unpack {archive.name} in {folder}: {error}") from error
        for file in files:
            problem = difference(temporary / file.name, file.size, file.sha256)
            if problem:
                raise FailureError(f"could not unpack {archive.name}: {file.name} {problem}")
        for file in files:
            (temporary / file.name).replace(folder / file.name)


def _extract(archive: Path, names: set[str], folder: Path) -> None:
    """Copy plain files called ``names`` into ``folder``, whatever folder they have in the archive."""
    with tarfile.open(archive, "r:gz") as opened:
        for member in opened:
            name = PurePosixPath(member.name).name
            source = opened.extractfile(member) if member.isfile() and name in names else None
            if source is not None:
                with (folder / name).open("wb") as written:
                    shutil.copyfileobj(source, written, _CHUNK)
