"""Where files of datasets are looked for: a folder given, ``JOSTLE_DATA``, the user's cache, in this order."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from jostle.base.errors import UsageError
from jostle.data.official import FileDataset, FoundFiles

VARIABLE = "JOSTLE_DATA"


@dataclass(frozen=True)
class Place:
    """A folder of datasets, and how we came by it: ``folder``, ``JOSTLE_DATA`` or ``cache``."""

    path: Path
    kind: str

    def __str__(self) -> str:
        return f"{self.path} ({self.kind})"


def cache_folder() -> Path:
    """The folder downloads go to: ``jostle`` in ``XDG_CACHE_HOME`` or else in ``~/.cache``."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base and Path(base).is_absolute() else Path.home() / ".cache") / "jostle"


def places(folder: str | Path | None = None) -> list[Place]:
    """All folders to look in, the most important first; one that was named but is not there is an error."""
    named = [("folder", folder), (VARIABLE, os.environ.get(VARIABLE))]
    found = [Place(Path(path).expanduser(), kind) for kind, path in named if path]
    for place in found:
        if not place.path.is_dir():
            raise UsageError(f"{place.kind}={place.path} is not a folder; give the folder that holds the datasets")
    return [*found, Place(cache_folder(), "cache")]


def candidates(dataset: FileDataset, place: Place, check: bool = True) -> list[FoundFiles]:
    """The folders of a place that hold files of ``dataset``: one named after it, or the place itself."""
    found = []
    for name in (*dataset.folders, ""):
        folder = place.path / name
        names = frozenset(file.name for file in dataset.files if (folder / file.name).is_file())
        if names:
            found.append(FoundFiles(dataset, folder, names, check))
    return found


def locate(dataset: FileDataset, split: str, where: Sequence[Place], check: bool = True) -> FoundFiles | None:
    """The files to read a split from, or nothing if they are nowhere.

    All files come from one folder. One that lacks some is used if the rest is enough and the caller named it; under
    ``JOSTLE_DATA`` only if no other place holds all of them. In the cache it is never used, because there it is what
    an interrupted download leaves.
    """
    by_kind = {place.kind: candidates(dataset, place, check) for place in where}

    def whole(kind: str) -> list[FoundFiles]:
        return [found for found in by_kind.get(kind, []) if found.names.issuperset(dataset.wanted(split))]

    def enough(kind: str) -> list[FoundFiles]:
        return [found for found in by_kind.get(kind, []) if not dataset.lacking(split, found.names)]

    in_order = [whole("folder"), enough("folder"), whole(VARIABLE), whole("cache"), enough(VARIABLE)]
    return next((found for group in in_order for found in group), None)


def absent(dataset: FileDataset, split: str, where: Sequence[Place]) -> str:
    """Which files are missing and where they were looked for, as the beginning of an error message."""
    found = [found.names for place in where for found in candidates(dataset, place)]
    present = max(found, key=len, default=frozenset[str]())
    missing = dataset.lacking(split, present) or dataset.wanted(split)
    looked = ", ".join(map(str, where))
    return f"dataset {dataset.name!r} ({split}) needs {', '.join(missing)}, not found in {looked}"
