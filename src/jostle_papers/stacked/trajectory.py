"""Curves of one network along its training."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from jostle.base.errors import UsageError
from jostle.base.registry import unknown_name
from jostle.studies.schema import Struct


@dataclass(frozen=True)
class Trajectory(Struct):
    """Measures of one network after some epochs, or after some steps where a training counts these.

    >>> found = Trajectory(seed=0, epochs=(0, 10, 20), curves={"test_accuracy": (0.1, 0.5, 0.9)})
    >>> found.at("test_accuracy", 15), found.first("test_accuracy", 0.8)
    (0.5, 20)

    Arguments:
        seed: of the network.
        epochs: (points,), increasing.
        curves: for each measure a value at every epoch; the measures are those of the training's observer.
        frequencies: key frequencies at the end, the strongest first; empty if the task has none.
    """

    seed: int
    epochs: tuple[int, ...]
    curves: Mapping[str, tuple[float, ...]] = field(repr=False)
    frequencies: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if any(after <= before for before, after in zip(self.epochs, self.epochs[1:], strict=False)):
            raise UsageError(f"epochs of a trajectory must increase, got {self.epochs}")
        for name, values in self.curves.items():
            if len(values) != len(self.epochs):
                raise UsageError(f"curve {name} has {len(values)} values at {len(self.epochs)} epochs")

    def curve(self, name: str) -> tuple[float, ...]:
        """One measure at all epochs; an unknown name answers with near matches."""
        if name not in self.curves:
            raise unknown_name("curve", name, self.curves)
        return self.curves[name]

    def at(self, name: str, epoch: int) -> float:
        """One measure at the last epoch measured up to ``epoch``."""
        before = [index for index, each in enumerate(self.epochs) if each <= epoch]
        if not before:
            raise UsageError(f"epoch={epoch} is before the first that was measured, {self.epochs[0]}")
        return self.curve(name)[before[-1]]

    def first(self, name: str, least: float) -> int | None:
        """The first epoch at which a measure is at least ``least``; None if there is none."""
        return next((epoch for epoch, value in zip(self.epochs, self.curve(name), strict=True) if value >= least), None)

    def rounded(self, digits: int) -> "Trajectory":
        """The same with so many digits, for a record."""
        short = {name: tuple(float(f"{value:.{digits}g}") for value in values) for name, values in self.curves.items()}
        return replace(self, curves=short)
