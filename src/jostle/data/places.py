"""Where the files of datasets are: a folder given, ``JOSTLE_DATA``, the user's cache, searched in this order."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from jostle.base.errors import UsageError
from jostle.data.official import FileDataset, FoundFiles

VARIABLE = "JOSTLE_DATA"


@dataclass(frozen=True)
class Place:
    """A folder of datasets, and who named it: ``folder`` (the caller), ``JOSTLE_DATA`` or ``cache``."""

    path: Path
    kind: str

    def __str__(self) -> str:
        return f"{self.path} ({self.kind})"


def cache_folder() -> Path:
    """The folder that downloads go to: ``jostle`` in ``XDG_CACHE_HOME`` or else in ``~/.cache``.

    Not ``pooch.os_cache``: on a Mac it names another folder than the one where files were put before, and it accepts a
    relative ``XDG_CACHE_HOME``, which the specification tells programs to ignore.
    """
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base and Path(base).is_absolute() else Path.home() / ".cache") / "jostle"


def places(folder: str | Path | None = None) -> list[Place]:
    """All folders to search, the most important first; raises if a folder that was named does not exist."""
    named = [("folder", folder), (VARIABLE, os.environ.get(VARIABLE))]
    found = [Place(Path(path).expanduser(), kind) for kind, path in named if path]
    for place in found:
        if not place.path.is_dir():
            raise UsageError(f"{place.kind}={place.path} is not a folder; give the folder that holds the datasets")
    return [*found, Place(cache_folder(), "cache")]


def candidates(dataset: FileDataset, place: Place, check: bool = True) -> list[FoundFiles]:
    """The folders of a place that hold files of ``dataset``: folders named after it first, then the place itself."""
    found = []
    for name in (*dataset.folders, ""):
        folder = place.path / name
        names = frozenset(file.name for file in dataset.files if (folder / file.name).is_file())
        if names:
            found.append(FoundFiles(dataset, folder, names, check))
    return found


def locate(dataset: FileDataset, split: str, where: Sequence[Place], check: bool = True) -> FoundFiles | None:
    """The files from which a split is read, all in one folder, or None if no place has enough of them.

    A folder that lacks files but has enough of them is used if the caller named it; under ``JOSTLE_DATA`` only if no
    other place holds all files; in the cache never, because there an interrupted download left it.
    """
    by_kind = {place.kind: candidates(dataset, place, check) for place in where}

    def whole(kind: str) -> list[FoundFiles]:
        return [found for found in by_kind.get(kind, []) if found.names.issuperset(dataset.names_of(split))]

    def enough(kind: str) -> list[FoundFiles]:
        return [found for found in by_kind.get(kind, []) if not dataset.missing(split, found.names)]

    in_order = [whole("folder"), enough("folder"), whole(VARIABLE), whole("cache"), enough(VARIABLE)]
    return next((found for group in in_order for found in group), None)


def missing_message(dataset: FileDataset, split: str, where: Sequence[Place]) -> str:
    """Which files are missing and where they were looked for, as the beginning of an error message."""
    found = [found.names for place in where for found in candidates(dataset, place)]
    present = max(found, key=len, default=frozenset[str]())
    missing = dataset.missing(split, present) or dataset.names_of(split)
    looked = ", ".join(map(str, where))
    return f"dataset {dataset.name!r} ({split}) needs {', '.join(missing)}, not found in {looked}"
