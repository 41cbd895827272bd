"""The state of every dataset: the folder it is read from, its files, and whether they are as published."""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from jostle.base.errors import UsageError
from jostle.data.dataset import SPLITS, Dataset
from jostle.data.official import FileDataset, FoundFiles, TextFileDataset
from jostle.data.places import Place, candidates, locate, places
from jostle.data.text_dataset import TextDataset

Source = FileDataset | Callable[[str], Dataset] | Callable[[str], TextDataset]


@dataclass(frozen=True)
class FileState:
    """One file: ``ok``, ``missing`` or ``wrong``, and what is wrong with it."""

    name: str
    state: str
    problem: str = ""


@dataclass(frozen=True)
class DatasetState:
    """One dataset and its files.

    Arguments:
        name: as registered.
        folder: where its files were found; None if no file was, or if the dataset comes with a Python package.
        files: the state of each file; empty if the dataset comes with a Python package.
        licence: what the authors allow, or what to cite.
        state: ``ok``; ``partial`` if some files are missing; ``missing`` if all are; ``wrong`` if a file is wrong.
        note: how to get the dataset, if jostle knows.
    """

    name: str
    folder: str | None
    files: tuple[FileState, ...]
    licence: str
    state: str
    note: str = ""

    def to_dict(self) -> dict[str, Any]:
        """As JSON values."""
        return asdict(self) | {"files": [asdict(file) for file in self.files]}


def describe(name: str, source: Source, folder: str | Path | None) -> DatasetState:
    """The state of the dataset registered as ``name``; files are searched as ``jostle.data.load`` searches them."""
    if not isinstance(source, FileDataset):
        return _of_package(name, source, "")
    found = _of_files(source, places(folder))
    if found.state == "missing" and isinstance(source, TextFileDataset) and source.package is not None:
        return _of_package(name, source.read_package, source.licence)
    return found


def _of_package(name: str, read: Callable[[str], Dataset] | Callable[[str], TextDataset], licence: str) -> DatasetState:
    try:
        read("test")
    except UsageError as error:
        return DatasetState(name, None, (), licence, "missing", str(error))
    return DatasetState(name, None, (), licence, "ok", "comes with a Python package; no files to get")


def _of_files(dataset: FileDataset, where: list[Place]) -> DatasetState:
    found = _best(dataset, where)
    if found is None:
        missing = tuple(FileState(file.name, "missing") for file in dataset.files)
        note = f"jostle data get {dataset.name}" if dataset.is_downloadable else f"by hand: {dataset.origin}"
        return DatasetState(dataset.name, None, missing, dataset.licence, "missing", note)
    files = tuple(_of_file(dataset, file.name, found) for file in dataset.files)
    states = {file.state for file in files}
    state = "wrong" if "wrong" in states else "partial" if "missing" in states else "ok"
    return DatasetState(dataset.name, str(found.folder), files, dataset.licence, state)


def _best(dataset: FileDataset, where: list[Place]) -> FoundFiles | None:
    """The folder from which a split would be read, or else the folder with the most files."""
    used = [found for split in SPLITS if (found := locate(dataset, split, where)) is not None]
    others = [found for place in where for found in candidates(dataset, place)]
    return used[0] if used else max(others, key=lambda found: len(found.names), default=None)


def _of_file(dataset: FileDataset, name: str, found: FoundFiles) -> FileState:
    if name not in found.names:
        return FileState(name, "missing")
    problem = dataset.problem(found.folder / name)
    return FileState(name, "wrong" if problem else "ok", problem)
