"""What is known about a dataset that comes as files: names, sizes, checksums, where to get them, how to read them.

Datasets of texts that come as official files; what ``official.py`` is for images.
"""

from abc import ABC, abstractmethod
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, NoReturn

from jostle.base.errors import UsageError
from jostle.data.checksums import difference, verify
from jostle.data.images import Images
from jostle.data.text_dataset import TextDataset


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


class TextFileDataset(FileDataset):
    """A dataset of texts from official files.

    Subclasses are final and registered as objects; their docstring is what a list of datasets prints.

    Arguments:
        origin: where a person gets the files, as a sentence without its full stop.
        other_copies: further known versions of ``files``, right as well.
        package: the Python package that holds the same texts, if there is one.
    """

    origin: ClassVar[str]
    other_copies: ClassVar[tuple[OfficialFile, ...]] = ()
    package: ClassVar[str | None] = None

    @abstractmethod
    def read_texts(self, split: str, found: FoundFiles) -> TextDataset:
        """A whole split from files that are enough for it."""

    def read_package(self, split: str) -> TextDataset:
        """The same split from ``package``; a package that is absent is an error that names it."""
        raise UsageError(f"dataset {self.name!r} comes with no package, asked for {split!r}")

    def read(self, split: str, found: FoundFiles) -> NoReturn:
        """Never images."""
        raise UsageError(f"dataset {self.name!r} ({split}, {found.folder}) holds texts; use jostle.data.load")

    @property
    def is_downloadable(self) -> bool:
        """Whether jostle knows an address of every file."""
        return all(file.urls for file in self.files)

    def problem(self, path: Path) -> str:
        """How a file differs from all versions that are known, in words; empty if it is one of them."""
        known = [file for file in (*self.files, *self.other_copies) if file.name == path.name]
        found = [difference(path, file.size, file.sha256) for file in known]
        return "" if "" in found else found[0]

    def checked(self, name: str, found: FoundFiles) -> Path:
        """The path of the file ``name``, after comparing its checksum if ``found`` says so."""
        path = found.folder / name
        problem = self.problem(path) if found.check else ""
        if problem:
            raise UsageError(
                f"dataset {self.name!r}: {path} {problem}; replace it ({self.origin}), or pass check=False to read "
                "data of your own in the same format"
            )
        return path
