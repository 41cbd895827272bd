"""Datasets that come as official files: names, sizes and checksums of the files, and how a split is read from them.

``FileDataset`` is for images, ``TextFileDataset`` for texts. ``places.py`` finds the files, ``downloads.py`` gets them.
"""

import functools
import hashlib
from abc import ABC, abstractmethod
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, NoReturn

from jostle.base.errors import UsageError
from jostle.data.images import Images
from jostle.data.text_dataset import TextDataset


@dataclass(frozen=True)
class OfficialFile:
    """One file as its authors published it.

    Arguments:
        name: its name in a folder.
        size: in bytes.
        sha256: its checksum, in hexadecimal digits.
        urls: addresses, tried in this order; empty for a file that comes in an archive or cannot be downloaded.
    """

    name: str
    size: int
    sha256: str
    urls: tuple[str, ...] = ()

    def problem(self, path: Path) -> str:
        """How the file at ``path`` differs from this one, e.g. ``has 5 bytes, expected 6``; empty if it does not."""
        try:
            status = path.stat()
            if status.st_size != self.size:
                return f"has {status.st_size:,} bytes, expected {self.size:,}"
            found = _sha256(path, status.st_size, status.st_mtime_ns)
        except OSError as error:
            return f"cannot be read ({error.strerror or error})"
        return "" if found == self.sha256 else f"has sha256 {found[:12]}..., expected {self.sha256[:12]}..."


@functools.lru_cache(maxsize=256)
def _sha256(path: Path, _size: int, _changed: int) -> str:
    """The checksum of a file. Size and time of the last change are part of the key: a new file is read again."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


class FileDataset(ABC):
    """A dataset of images from official files.

    Subclasses are final and registered as objects; ``jostle list datasets`` prints their docstring.

    Arguments:
        name: as registered.
        folders: names that the folder of the files may have; a download makes the first.
        files: all official files.
        archive: the archive in which the files are published, if they are not published one by one.
        other_copies: further versions of ``files`` that are accepted.
        origin: where a person gets files that jostle cannot download, as a sentence without its full stop.
        licence: what the authors allow, or what to cite.
    """

    name: ClassVar[str]
    folders: ClassVar[tuple[str, ...]]
    files: ClassVar[tuple[OfficialFile, ...]]
    archive: ClassVar[OfficialFile | None] = None
    other_copies: ClassVar[tuple[OfficialFile, ...]] = ()
    origin: ClassVar[str] = ""
    licence: ClassVar[str]

    @abstractmethod
    def names_of(self, split: str) -> tuple[str, ...]:
        """The names of all files of a split."""

    def missing(self, split: str, names: Collection[str]) -> tuple[str, ...]:
        """The files that a folder with the files ``names`` needs before the split can be read; empty if none."""
        return tuple(name for name in self.names_of(split) if name not in names)

    @abstractmethod
    def read(self, split: str, found: "FoundFiles") -> Images:
        """The images of a split, from files of which none is ``missing``."""

    def file(self, name: str) -> OfficialFile:
        """The official file called ``name``."""
        return next(file for file in self.files if file.name == name)

    def problem(self, path: Path) -> str:
        """How the file at ``path`` differs from the official file of its name and from all other copies of it."""
        known = [file for file in (*self.files, *self.other_copies) if file.name == path.name]
        problems = [file.problem(path) for file in known]
        return "" if "" in problems else problems[0]

    @property
    def is_downloadable(self) -> bool:
        """Whether jostle knows an address for every file."""
        return self.archive is not None or all(file.urls for file in self.files)


class TextFileDataset(FileDataset):
    """A dataset of texts from official files.

    Arguments:
        package: the Python package that holds the same texts, if there is one.
    """

    package: ClassVar[str | None] = None

    @abstractmethod
    def read_texts(self, split: str, found: "FoundFiles") -> TextDataset:
        """The texts of a split, from files of which none is ``missing``."""

    def read_package(self, split: str) -> TextDataset:
        """The same split from ``package``; an error names the package if it is not installed."""
        raise UsageError(f"dataset {self.name!r} comes with no package, asked for {split!r}")

    def read(self, split: str, found: "FoundFiles") -> NoReturn:
        """An error: these are texts."""
        raise UsageError(f"dataset {self.name!r} ({split}, {found.folder}) holds texts; use jostle.data.load")


@dataclass(frozen=True)
class FoundFiles:
    """The files of one dataset that lie in one folder.

    Arguments:
        dataset: whose files they are.
        folder: where they lie.
        names: which files are there.
        check: whether ``path`` compares checksums.
    """

    dataset: FileDataset
    folder: Path
    names: frozenset[str]
    check: bool = True

    def path(self, name: str) -> Path:
        """The path of the file ``name``; raises if its checksum is wrong."""
        path, dataset = self.folder / name, self.dataset
        problem = dataset.problem(path) if self.check else ""
        if problem:
            remedy = dataset.origin or f"jostle data get {dataset.name} downloads the official file"
            raise UsageError(
                f"dataset {dataset.name!r}: {path} {problem}; replace it ({remedy}), or pass check=False to read data "
                "of your own in the same format"
            )
        return path
