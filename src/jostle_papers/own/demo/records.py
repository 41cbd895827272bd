"""The demo's records: one file with a line for each step, written once and read as what it was."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeVar

from pydantic import ConfigDict

from jostle.base.errors import UsageError
from jostle.base.estimate import provenance
from jostle.base.store import Record, Store
from jostle.estimates import Comparison
from jostle.studies.schema import Struct, from_plain, to_plain
from jostle_papers.own.demo.settings import DemoSettings

PatchKind = Literal["blank", "inked"]
Line = TypeVar("Line", bound=Struct)


@dataclass(frozen=True, kw_only=True)
class TrainedLine(Struct):
    """A network at the end of its training.

    Arguments:
        epochs: how many it took.
        train_accuracy, test_accuracy: at the end.
        stopped: what ended it, ``target accuracy`` or ``max epochs``.
        parameters: of the network.
    """

    epochs: int
    train_accuracy: float
    test_accuracy: float
    stopped: str
    parameters: int


@dataclass(frozen=True, kw_only=True)
class EpochLine(Struct):
    """A network after an epoch: what a reader needs of the measurement that the line holds."""

    __pydantic_config__ = ConfigDict(extra="ignore")

    loss: float
    accuracy: float
    value: float
    low: float
    high: float
    passes: int


@dataclass(frozen=True, kw_only=True)
class PatchMap(Struct):
    """How often noise in each patch of a digit changes the prediction of a network."""

    rates: tuple[tuple[float, ...], ...]
    passes: int


@dataclass(frozen=True, kw_only=True)
class ExampleLine(Struct):
    """One digit patch by patch.

    Arguments:
        index, label: of the digit.
        picture: (height, width) in [0, 1].
        maps: by network.
    """

    index: int
    label: int
    picture: tuple[tuple[float, ...], ...]
    maps: dict[str, PatchMap]


class DemoRecords:
    """The records of one demo, which begin with its settings.

    Arguments:
        path: the file.
    """

    def __init__(self, path: Path) -> None:
        self.store = Store(path)
        self.settings = self._read(DemoSettings, "settings")

    @classmethod
    def open(cls, folder: Path, settings: DemoSettings) -> "DemoRecords":
        """The records in the folder of a demo, new or to be continued; records with other settings are refused."""
        store, plain = Store(folder / "records.jsonl"), to_plain(settings)
        if "settings" not in store:
            store.append("settings", plain)
        elif store["settings"] != plain:
            raise UsageError(f"--out {folder} holds a demo with other settings; give another folder or remove it")
        if "provenance" not in store:
            store.append("provenance", provenance())
        return cls(store.path)

    @property
    def provenance(self) -> dict[str, str]:
        """Versions, machine and time of the beginning."""
        return self.store["provenance"]

    def trained(self, name: str) -> TrainedLine:
        """The end of a network's training."""
        return self._read(TrainedLine, trained_key(name))

    def epoch(self, name: str, number: int) -> EpochLine:
        """A network after some epochs."""
        return self._read(EpochLine, epoch_key(name, number))

    def epochs(self, name: str) -> Iterator[EpochLine]:
        """A network after each epoch, in order."""
        for number in range(self.trained(name).epochs + 1):
            yield self.epoch(name, number)

    def sweep(self) -> dict[float, Comparison]:
        """The comparison of all networks at each noise level."""
        return {std: Comparison.from_dict(self.store[sweep_key(std)]) for std in self.settings.stds}

    def patches(self, kind: PatchKind, std: float) -> Comparison:
        """The comparison of all networks on patches of one kind."""
        return Comparison.from_dict(self.store[patches_key(kind, std)])

    def example(self) -> ExampleLine:
        """The digit that is shown patch by patch."""
        return self._read(ExampleLine, EXAMPLE)

    def for_report(self) -> dict[str, Record]:
        """All records but the example, which is long and drawn."""
        return {key: self.store[key] for key in self.store if key != EXAMPLE}

    def _read(self, kind: type[Line], key: str) -> Line:
        if key not in self.store:
            raise UsageError(f"{self.store.path} has no line {key!r}; start the demo again to complete it")
        return from_plain(kind, self.store[key], f"line {key!r} of {self.store.path}")


EXAMPLE = "example"


def trained_key(name: str) -> str:
    """The key of the end of a network's training."""
    return f"{name}/trained"


def epoch_key(name: str, number: int) -> str:
    """The key of a network after some epochs."""
    return f"{name}/epoch-{number}"


def sweep_key(std: float) -> str:
    """The key of the comparison at one noise level."""
    return f"sweep/{std:g}"


def patches_key(kind: PatchKind, std: float) -> str:
    """The key of the comparison on patches of one kind."""
    return f"patches/{kind}/{std:g}"
