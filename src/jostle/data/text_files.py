"""Datasets of texts that come as official files; what ``official.py`` is for images."""

from abc import abstractmethod
from pathlib import Path
from typing import ClassVar, NoReturn

from jostle.data.checksums import difference
from jostle.data.official import FileDataset, FoundFiles, OfficialFile
from jostle.data.text_dataset import TextDataset
from jostle.errors import UsageError


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
