"""The answer to: how far can the output be moved by changing one token within a ball?"""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from jostle.errors import UsageError
from jostle.estimates.estimate import Floats
from jostle.files import read_text, write_text
from jostle.worst.arrays import pack, unpack
from jostle.worst.averages import MeanOverInputs, mean_over_inputs
from jostle.worst.settings import WorstSettings
from jostle.worst.wording import lines

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Integers = NDArray[np.int64]
_ARRAYS = ("values", "changes", "mean", "max_of", "margins", "predictions", "clean_predictions")


@dataclass(frozen=True, eq=False)
class AtRadius:
    """Three quantifiers over the same changes: mean <= max of the draws <= largest found, for every input.

    Arguments:
        radius: of the ball.
        over: what was taken over the positions of an input: ``mean`` or ``max``.
        mean, max_of_draws, largest: over the draws, the largest of them, the largest that was found.
    """

    radius: float
    over: str
    mean: MeanOverInputs
    max_of_draws: MeanOverInputs
    largest: MeanOverInputs

    @property
    def gap(self) -> float:
        """How many times the mean the largest found is; infinite if only the mean is 0, NaN if both are."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return float(np.float64(self.largest.value) / self.mean.value)


@dataclass(frozen=True, eq=False)
class WorstCase:
    """The largest responses found within balls around single tokens: lower bounds of the true ones.

    ``value`` is the mean over inputs of the mean over positions (or, if the worst position was asked for, of the
    largest) of the largest response found, in the largest ball; for flips the share of tokens, or of inputs, that are
    *flippable within r*. It is exact about what was found; ``low`` and ``high`` are for other inputs from the same
    population, and a better search can only raise all three.

    Attributes are arrays by radius R, input N and position T, NaN where a position was not searched.

    Arguments:
        name: of the model.
        settings: what was searched, how hard.
        values: (R, N, T) the largest response found.
        changes: (R, N, T, dim) the change of the token that gives it.
        mean: (R, N, T) the mean response over random changes on the sphere of the radius.
        max_of: (K, R, N, T) the largest of 1, 2, 4, ... of them, see ``draw_counts``.
        margins: (R, N, T) for flips, the lowest margin of the clean prediction that was found.
        predictions, clean_predictions: (R, N, T) and (N,) for flips, what is predicted after the change and before.
        draw_counts: (K,) 1, 2, 4, ... draws.
        positions: the shape of the position grid, e.g. (7, 7) for patches.
        has_gradient: whether the model could be ascended; otherwise the largest of draws and deletion is all there is.
        passes: inputs the model answered, a backward pass counted as two.
        warnings: what is suspicious about the model or the numbers.
        seconds: wall-clock time.
        provenance: versions and time.
    """

    name: str
    settings: WorstSettings
    values: Floats = field(repr=False)
    changes: NDArray[Any] = field(repr=False)
    mean: Floats = field(repr=False)
    max_of: Floats = field(repr=False)
    margins: Floats | None = field(repr=False)
    predictions: Integers | None = field(repr=False)
    clean_predictions: Integers | None = field(repr=False)
    draw_counts: list[int]
    positions: tuple[int, ...]
    has_gradient: bool
    passes: int
    warnings: list[str]
    seconds: float
    provenance: dict[str, str] = field(repr=False)

    kind: ClassVar[str] = "jostle/worst-case"
    version: ClassVar[int] = 1

    @property
    def radii(self) -> tuple[float, ...]:
        """The radii, increasing."""
        return self.settings.radii

    @property
    def value(self) -> float:
        """The mean of the largest responses found in the largest ball."""
        return self.at().largest.value

    @property
    def low(self) -> float:
        """The lower end of its interval for the population of inputs."""
        return self.at().largest.low

    @property
    def high(self) -> float:
        """The upper end of its interval for the population of inputs."""
        return self.at().largest.high

    def at(self, radius: float | None = None, over: str | None = None) -> AtRadius:
        """Means over inputs at one radius.

        Arguments:
            radius: one of ``radii``; the largest unless given.
            over: ``mean`` or ``max`` over positions; by default the one that was asked for.
        """
        level = self.level_of(radius)
        over = ("max" if self.settings.positions == "worst" else "mean") if over is None else over
        if over not in ("mean", "max"):
            raise UsageError(f"over={over!r} must be mean or max, which is taken over the positions of an input")
        found = (self.mean[level], self.max_of[-1, level], self.values[level])
        each = (mean_over_inputs(_over(part, over), self.settings.level, is_share=self._is_share) for part in found)
        return AtRadius(self.radii[level], over, *each)

    def level_of(self, radius: float | None = None) -> int:
        """The place of a radius among ``radii``; of the largest unless given."""
        if radius is None:
            return len(self.radii) - 1
        if radius not in self.radii:
            raise UsageError(f"radius={radius!r} was not searched; there are {', '.join(map(str, self.radii))}")
        return self.radii.index(radius)

    def worst_positions(self, radius: float | None = None) -> Integers:
        """(N,) the position of each input with the largest response; of flips, the lowest margin decides ties."""
        level = self.level_of(radius)
        values = np.where(np.isfinite(self.values[level]), self.values[level], -np.inf)
        depth = np.zeros_like(values) if self.margins is None else -self.margins[level]
        order = np.lexsort((np.where(np.isfinite(depth), depth, -np.inf), values))  # along positions, best last
        return order[:, -1].astype(np.int64)

    def smallest_radius(self) -> Floats:
        """(N, T) for flips, the smallest of ``radii`` at which a flip was found; infinite where none was."""
        if not self.settings.is_flip:
            raise UsageError(f"smallest_radius() is about flips, and the response was {self.settings.response}")
        radii = np.asarray(self.radii)[:, None, None]
        found: Floats = np.where(self.values > 0, radii, np.inf).min(axis=0)
        return np.where(np.isfinite(self.values).any(axis=0), found, np.nan)

    @property
    def _is_share(self) -> bool:
        return self.settings.is_flip

    def __str__(self) -> str:
        return "\n".join(lines(self))

    def to_dict(self) -> dict[str, Any]:
        """Everything, as plain numbers and text for JSON; the changes as packed single-precision numbers."""
        plain = ("name", "draw_counts", "has_gradient", "passes", "warnings", "provenance")
        return {
            "kind": self.kind,
            "version": self.version,
            **{name: getattr(self, name) for name in plain},
            "value": self.value,
            "low": self.low,
            "high": self.high,
            "level": self.settings.level,
            "settings": self.settings.to_dict(),
            "positions": list(self.positions),
            "seconds": round(self.seconds, 3),
            **{name: pack(getattr(self, name), is_compact=name == "changes") for name in _ARRAYS},
        }

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> "WorstCase":
        """The result that ``to_dict`` wrote."""
        plain = ("name", "draw_counts", "has_gradient", "passes", "warnings", "provenance", "seconds")
        return cls(
            settings=WorstSettings.from_dict(record["settings"]),
            positions=tuple(record["positions"]),
            **{name: record[name] for name in plain},
            **{name: unpack(record[name]) for name in _ARRAYS},
        )

    def save(self, path: str | Path) -> None:
        """Write to a JSON file, whole or not at all; ``jostle.load`` reads it."""
        write_text(path, json.dumps(self.to_dict(), indent=1, allow_nan=False) + "\n")

    @classmethod
    def load(cls, path: str | Path) -> "WorstCase":
        """The result that ``save`` wrote to ``path``."""
        try:
            record = json.loads(read_text(path, "result"))
            if record["kind"] != cls.kind or record["version"] != cls.version:
                raise ValueError(f"the kind {record['kind']!r}, version {record['version']!r}")
            return cls.from_dict(record)
        except (KeyError, TypeError, ValueError) as error:
            reason = " ".join(str(error).split())
            raise UsageError(f"result file {path} is not a whole worst case of this version: {reason}") from None

    def plot(self, inputs: Any = None, index: int | None = None, **options: Any) -> "Figure":
        """A picture: the curves over the radii or, with ``inputs``, one of them with its worst token and change."""
        from jostle.worst.picture import change_figure, radius_figure

        return radius_figure(self) if inputs is None else change_figure(self, inputs, index, **options)


def _over(values: Floats, over: str) -> Floats:
    """(N, T) as (N,), the mean or largest of the positions that are known; NaN where none is."""
    known = np.isfinite(values)
    if over == "max":
        best = np.where(known, values, -np.inf).max(axis=1)
        return np.where(known.any(axis=1), best, np.nan)
    with np.errstate(invalid="ignore"):
        means: Floats = np.where(known, values, 0.0).sum(axis=1) / known.sum(axis=1)
    return means
