"""What is known about a dataset that comes as files: names, sizes, checksums, where to get them, how to read them."""

from abc import ABC, abstractmethod
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from jostle.data.checksums import verify
from jostle.data.images import Images


@dataclass(frozen=True)
class OfficialFile:
    """One file as its authors published it.

    Arguments:
        name: its name in a folder.
        size: in bytes.
        sha256: its checksum, in hexadecimal digits.
        urls: where to download it, the first that works; empty for a file that comes in an archive.
    """

    name: str
    size: int
    sha256: str
    urls: tuple[str, ...] = ()


@dataclass(frozen=True)
class FoundFiles:
    """The files of one dataset that lie in one folder.

    Arguments:
        dataset: whose files they are.
        folder: where they lie.
        names: which are there.
        check: compare checksums before a file is used.
    """

    dataset: "FileDataset"
    folder: Path
    names: frozenset[str]
    check: bool = True

    def path(self, name: str) -> Path:
        """The path of the file ``name``, after comparing its checksum."""
        path = self.folder / name
        if self.check:
            verify(path, self.dataset.file(name).size, self.dataset.file(name).sha256, self.dataset.name)
        return path


class FileDataset(ABC):
    """A dataset of official files.

    Subclasses are final and registered as objects; their docstring is what ``jostle list datasets`` prints.

    Arguments:
        name: as registered.
        folders: names of the folder that holds the files, the first of them made by a download.
        files: all official files.
        archive: the archive in which the files are published, if they are not published one by one.
        licence: what the authors allow, or what to cite.
    """

    name: ClassVar[str]
    folders: ClassVar[tuple[str, ...]]
    files: ClassVar[tuple[OfficialFile, ...]]
    archive: ClassVar[OfficialFile | None] = None
    licence: ClassVar[str]

    @abstractmethod
    def wanted(self, split: str) -> tuple[str, ...]:
        """The names of the files that make a split whole."""

    @abstractmethod
    def lacking(self, split: str, names: Collection[str]) -> tuple[str, ...]:
        """The files that must be added to ``names`` before the split can be read; empty if it can."""

    @abstractmethod
    def read(self, split: str, found: FoundFiles) -> Images:
        """The examples of a split from files that are enough for it."""

    def file(self, name: str) -> OfficialFile:
        """What is known about the file called ``name``."""
        return next(file for file in self.files if file.name == name)
