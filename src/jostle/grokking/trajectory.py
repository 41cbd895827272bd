"""What was measured of one network along its training."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from jostle.errors import UsageError
from jostle.registry import unknown_name


@dataclass(frozen=True)
class Trajectory:
    """Curves over epochs of one network.

    Arguments:
        seed: of the network.
        epochs: (points,), increasing.
        curves: for each measure as many values; what they are is in ``jostle.grokking.following``.
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
        """One measure; an unknown one answers with near matches."""
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
        """The first epoch at which a measure is at least so large; None if it never is."""
        return next((epoch for epoch, value in zip(self.epochs, self.curve(name), strict=True) if value >= least), None)

    def to_dict(self) -> dict[str, Any]:
        """A plain dictionary, for JSON."""
        return {
            "seed": self.seed,
            "epochs": list(self.epochs),
            "curves": {name: list(values) for name, values in self.curves.items()},
            "frequencies": list(self.frequencies),
        }

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> "Trajectory":
        """The trajectory that ``to_dict`` wrote."""
        curves: dict[str, Sequence[float]] = record["curves"]
        return cls(
            record["seed"],
            tuple(record["epochs"]),
            {name: tuple(values) for name, values in curves.items()},
            tuple(record["frequencies"]),
        )
