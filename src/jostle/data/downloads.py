"""Downloads of official files over HTTP, by ``pooch``. A file gets its name after its checksum was compared.

``pooch`` does the transfer only. The rest is written here, because ``pooch.retrieve`` and ``pooch.Untar`` do not have
it: several addresses for one file, a limit on the bytes that a server may send, exact progress, files that other users
of the folder may read, and archives of which a few files are taken out and nothing else stays behind.
"""

import contextlib
import shutil
import tarfile
import tempfile
import zlib
from collections.abc import Iterable
from pathlib import Path, PurePosixPath
from typing import IO

from jostle.base.errors import FailureError, UsageError
from jostle.base.files import replacing
from jostle.base.progress import Progress, Reporter, State, reporter
from jostle.data.official import FileDataset, OfficialFile

_CHUNK = 1 << 20  # bytes
_TIMEOUT = 30  # seconds without a byte
# Not packed on the way: requests would unpack it, and what arrives of a .gz file would be another file.
_HEADERS = {"User-Agent": "jostle", "Accept-Encoding": "identity"}


def download(dataset: FileDataset, names: Iterable[str], folder: Path, progress: Progress = True) -> list[str]:
    """Get the files ``names`` that are not yet in ``folder`` as published; returns the names of those downloaded.

    Arguments:
        dataset: whose files they are.
        names: of the files.
        folder: where they go; made if it does not exist.
        progress: a bar on a terminal, plain lines elsewhere, nothing, or your own function.
    """
    needed = [file for file in map(dataset.file, names) if dataset.problem(folder / file.name)]
    if not needed:
        return []
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"the folder {folder} cannot be made: {error.strerror or error}") from None
    report = reporter(progress, f"get {dataset.name}")
    try:
        if dataset.archive is not None:
            _download_archive(dataset.archive, needed, folder, report)
        else:
            for file in needed:
                download_file(file, folder / file.name, report)
    finally:
        report.close()
        with contextlib.suppress(OSError):  # removes the folder if it is still empty
            folder.rmdir()
    return [file.name for file in needed]


def download_file(file: OfficialFile, target: Path, report: Reporter) -> None:
    """Download one file to ``target`` from the first address that has it; a failure or interruption leaves nothing."""
    problems = []
    for url in file.urls:
        try:
            with replacing(target) as temporary:
                with temporary.open("wb") as written:
                    _transfer(url, _CountedFile(written, file, report))
                problem = file.problem(temporary)
                if problem:
                    raise _TransferError(f"sent a file that {problem}")
            return
        except _TransferError as error:
            problems.append(f"{url} {error}")
    raise FailureError(f"could not download {file.name}: {'; '.join(problems)}")


class _TransferError(Exception):
    """One address did not give the file. Not an OSError: those are errors of the disk."""


class _CountedFile:
    """The file that pooch writes to: reports progress, and raises when a server sends more bytes than expected."""

    def __init__(self, written: IO[bytes], file: OfficialFile, report: Reporter) -> None:
        self._written, self._file, self._report, self._done = written, file, report, 0

    def write(self, chunk: bytes) -> None:
        """Write bytes that arrived."""
        self._written.write(chunk)
        self._done += len(chunk)
        file = self._file
        if self._done > file.size:
            raise _TransferError(f"sent more than the {file.size:,} bytes expected")
        summary = f"{file.name}: {self._done / 1e6:,.1f} of {file.size / 1e6:,.1f} MB"
        self._report(State(self._done / file.size, self._done, summary, "bytes"))

    def flush(self) -> None:
        """Nothing: ``replacing`` sees to it that everything is on disk before the file gets its name."""


def _transfer(url: str, target: _CountedFile) -> None:
    """Write the answer to a request for ``url`` to ``target``."""
    import pooch  # here, with requests: they take 0.3 s to import, and most runs download nothing
    import requests

    downloader = pooch.HTTPDownloader(chunk_size=_CHUNK, timeout=_TIMEOUT, headers=_HEADERS)
    try:
        downloader(url, target, None)
    except requests.RequestException as error:
        answer = error.response
        reason = _innermost(error) if answer is None else f"HTTP {answer.status_code} {answer.reason}"
        raise _TransferError(f"failed ({reason})") from error


def _innermost(error: BaseException) -> str:
    """The first cause of an error in one line: requests wraps "Name or service not known" three times."""
    while (cause := error.__cause__ or error.__context__) is not None:
        error = cause
    return " ".join(str(error).split()) or type(error).__name__


def _download_archive(archive: OfficialFile, files: list[OfficialFile], folder: Path, report: Reporter) -> None:
    """Download the archive, take ``files`` out of it, and put them in place together; the archive is not kept."""
    with tempfile.TemporaryDirectory(dir=folder, prefix=".part-") as name:
        temporary = Path(name)
        download_file(archive, temporary / archive.name, report)
        try:
            _extract(temporary / archive.name, {file.name for file in files}, temporary)
        except (OSError, EOFError, tarfile.TarError, zlib.error) as error:
            raise FailureError(f"could not unpack {archive.name} in {folder}: {error}") from error
        for file in files:
            problem = file.problem(temporary / file.name)
            if problem:
                raise FailureError(f"could not unpack {archive.name}: {file.name} {problem}")
        for file in files:
            (temporary / file.name).replace(folder / file.name)


def _extract(archive: Path, names: set[str], folder: Path) -> None:
    """Copy the plain files called ``names`` into ``folder``, whatever folder of the archive they are in."""
    with tarfile.open(archive, "r:gz") as opened:
        for member in opened:
            name = PurePosixPath(member.name).name
            source = opened.extractfile(member) if member.isfile() and name in names else None
            if source is not None:
                with (folder / name).open("wb") as written:
                    shutil.copyfileobj(source, written, _CHUNK)
