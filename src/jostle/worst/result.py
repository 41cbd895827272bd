"""The result of a search: how far the output can be moved by changing one token within a ball.

First the parts of a result: its settings and its means over inputs. Then ``WorstCase`` itself, its text, and how its
arrays are written in JSON.
"""

import base64
import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from jostle.base import checks
from jostle.base.errors import UsageError
from jostle.base.estimate import Estimate, Interval, in_seconds
from jostle.base.files import parse_json, read_text, write_text
from jostle.base.specs import written
from jostle.base.table import Row, Tabular
from jostle.estimates.result import Floats, counted, plain
from jostle.intervals.fixed import asymptotic, bounded_mean, histogram, largest_share, student
from jostle.responses import RESPONSES

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Integers = NDArray[np.int64]

_ARRAYS = ("values", "changes", "mean", "max_of", "margins", "predictions", "clean_predictions")
SCALED = "columns"  # the tokens of tables whose radii are in units of each column
_COLUMNS = ("mean of draws", "max of draws", "largest found")


@dataclass(frozen=True)
class WorstSettings:
    """What was searched, and with how much effort.

    Arguments:
        tokens, response: specs.
        radii: of the balls, increasing.
        relative: whether radii are in units of the token's own norm.
        positions: ``each``, ``worst``, or the positions that were searched, with slashes between them.
        draws: how many random changes of each token at each radius.
        starts, steps: how many ascents of each token, and how many steps of each ascent.
        candidates: for ``worst``, at how many positions of each input the search ascended; 0 otherwise.
        level: coverage of the intervals.
        seed: of the draws.
        num_inputs, num_tokens: N and T; T counts masked positions too.
    """

    tokens: str
    response: str
    radii: tuple[float, ...]
    relative: bool
    positions: str
    draws: int
    starts: int
    steps: int
    candidates: int
    level: float
    seed: int
    num_inputs: int
    num_tokens: int

    @property
    def is_flip(self) -> bool:
        """Whether the response is a flip."""
        return self.response.split(":")[0] == "flip"

    @property
    def is_share(self) -> bool:
        """Whether the response lies between 0 and 1, as flips of next tokens do too."""
        name = self.response.split(":")[0]
        return name in RESPONSES.names() and RESPONSES.get(name).bounds == (0.0, 1.0)

    @property
    def unit(self) -> str:
        """The unit of radii, in words."""
        if self.relative:
            return "the token's norm"
        return "each column's standard deviation" if self.tokens == SCALED else "absolute length"

    def to_dict(self) -> dict[str, Any]:
        """A plain dictionary, for JSON."""
        return {**asdict(self), "radii": list(self.radii)}

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> "WorstSettings":
        """The settings that ``to_dict`` wrote."""
        return cls(**{**record, "radii": tuple(record["radii"])})


@dataclass(frozen=True, eq=False)
class MeanOverInputs(Estimate):
    """The mean over inputs of one number for each input.

    Arguments:
        value: the mean over the inputs given. It is exact for them.
        interval: for the mean over the population that the inputs are a random sample of.
        per_input: (N,), NaN where an input has no number.
    """

    per_input: Floats = field(repr=False)

    def to_dict(self) -> dict[str, Any]:
        """A plain dictionary, for JSON."""
        return {"value": self.value, **self.interval.to_dict(), "per_input": plain(self.per_input)}


def mean_over_inputs(per_input: Floats, level: float, *, is_share: bool) -> MeanOverInputs:
    """The mean of ``per_input`` with its interval: Gaffke's bound for shares, Student's t otherwise, at least 0.

    >>> mean = mean_over_inputs(np.array([1.0, 0.0, 0.0, 0.0]), 0.95, is_share=True)
    >>> mean.value, round(mean.low, 4), round(mean.high, 4)  # Clopper and Pearson's, for shares of 0 and 1
    (0.25, 0.0063, 0.8059)

    Arguments:
        per_input: (N,), at least one of them finite.
        level: coverage.
        is_share: whether each number lies between 0 and 1.
    """
    known = per_input[np.isfinite(per_input)]
    value = float(known.mean())
    if is_share:
        ends, method, caveat = bounded_mean(*histogram(known), level), "Gaffke's bound over inputs", ""
    else:
        variance = known.var(ddof=1) if len(known) > 1 else 0.0
        low, high = student(value, variance, len(known), level)
        ends, method = (max(float(low), 0.0), float(high)), "Student's t over inputs"
        caveat = asymptotic(len(known), largest_share(known - value))
    return MeanOverInputs(value, Interval(*ends, level, "population", method, caveat=caveat), per_input)


@dataclass(frozen=True, eq=False)
class AtRadius:
    """Three numbers at one radius: mean of the draws <= max of the draws <= largest found, for every input.

    Arguments:
        radius: of the ball.
        over: how the positions of an input were combined: ``mean`` or ``max``.
        mean: of the random draws.
        max_of_draws: the largest of the random draws.
        largest: the largest response that was found.
    """

    radius: float
    over: str
    mean: MeanOverInputs
    max_of_draws: MeanOverInputs
    largest: MeanOverInputs

    @property
    def gap(self) -> float:
        """The largest found divided by the mean; infinite if only the mean is 0, NaN if both are."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return float(np.float64(self.largest.value) / self.mean.value)


@dataclass(frozen=True, eq=False)
class WorstCase(Tabular):
    """The largest responses found within balls around single tokens: lower bounds of the true ones.

    ``value`` is about the largest ball: the mean over inputs of the mean over positions of the largest response found.
    If the worst position was asked for, it is the mean over inputs of the maximum over positions. For flips it is the
    share of tokens, or of inputs, that are *flippable within r*. ``value`` is exact for these inputs; ``low`` and
    ``high`` are for other inputs from the same population. A better search can only raise all three.

    The arrays are by radius R, input N and position T, NaN where a position was not searched.

    Arguments:
        name: of the model.
        settings: what was searched, and with how much effort.
        values: (R, N, T) the largest response found.
        changes: (R, N, T, dim) the change of the token that gives it.
        mean: (R, N, T) the mean response to random changes on the sphere of this radius.
        max_of: (K, R, N, T) the expected largest response to 1, 2, 4, ... random changes, see ``draw_counts``.
        margins: (R, N, T) for flips, the lowest margin of the clean prediction that was found.
        predictions, clean_predictions: (R, N, T) and (N,) for flips, the predictions after the change and before.
        draw_counts: (K,) 1, 2, 4, ... draws.
        positions: the shape of the position grid, e.g. (7, 7) for patches.
        has_gradient: whether the model could be ascended. If not, only random changes and deletion were tried.
        passes: how many inputs the model answered; a backward pass counts as two.
        warnings: what is suspicious about the model or the numbers.
        seconds: wall-clock time.
        provenance: versions and time.
        notes: what is worth knowing and nothing to worry about, such as that the model was in train mode before.
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
    notes: list[str] = field(default_factory=list)

    kind: ClassVar[str] = "jostle/worst-case"
    version: ClassVar[int] = 1
    tables: ClassVar[tuple[str, ...]] = ("result", "tokens")

    @property
    def radii(self) -> tuple[float, ...]:
        """The radii, increasing."""
        return self.settings.radii

    @property
    def estimate(self) -> MeanOverInputs:
        """The mean over inputs of the largest responses found in the largest ball, with its interval."""
        return self.at().largest

    @property
    def value(self) -> float:
        """The mean over inputs of the largest responses found in the largest ball."""
        return self.estimate.value

    @property
    def low(self) -> float:
        """The lower end of the interval for the population of the inputs."""
        return self.estimate.low

    @property
    def high(self) -> float:
        """The upper end of the interval for the population of the inputs."""
        return self.estimate.high

    def at(self, radius: float | None = None, over: str | None = None) -> AtRadius:
        """Means over inputs at one radius.

        Arguments:
            radius: one of ``radii``; by default the largest.
            over: ``mean`` or ``max`` over positions; by default ``max`` if the worst position was asked for.
        """
        place = self.place_of(radius)
        over = ("max" if self.settings.positions == "worst" else "mean") if over is None else over
        if over not in ("mean", "max"):
            raise checks.wrong("over", over, "mean or max, which is taken over the positions of an input")
        level, is_share = self.settings.level, self.settings.is_share
        found = (self.mean[place], self.max_of[-1, place], self.values[place])
        means = (mean_over_inputs(_over_positions(part, over), level, is_share=is_share) for part in found)
        return AtRadius(self.radii[place], over, *means)

    def place_of(self, radius: float | None = None) -> int:
        """The place of a radius among ``radii``; by default of the largest."""
        if radius is None:
            return len(self.radii) - 1
        if radius not in self.radii:
            raise UsageError(f"radius={radius!r} was not searched; there are {', '.join(map(str, self.radii))}")
        return self.radii.index(radius)

    def worst_positions(self, radius: float | None = None) -> Integers:
        """(N,) the position of each input with the largest response; for flips the lowest margin decides ties."""
        place = self.place_of(radius)
        values = np.where(np.isfinite(self.values[place]), self.values[place], -np.inf)
        depth = np.zeros_like(values) if self.margins is None else -self.margins[place]
        order = np.lexsort((np.where(np.isfinite(depth), depth, -np.inf), values))  # along positions, best last
        return order[:, -1].astype(np.int64)

    def smallest_radius(self) -> Floats:
        """(N, T) for flips, the smallest of ``radii`` at which a flip was found; infinite where none was found."""
        if not self.settings.is_flip:
            raise UsageError(f"smallest_radius() is about flips, and the response was {self.settings.response}")
        radii = np.asarray(self.radii)[:, None, None]
        found: Floats = np.where(self.values > 0, radii, np.inf).min(axis=0)
        return np.where(np.isfinite(self.values).any(axis=0), found, np.nan)

    def __str__(self) -> str:
        return "\n".join(_lines(self))

    def rows(self, of: str = "result") -> list[Row]:
        """Mean of draws, max of draws and largest found at each radius; or the largest found for each token."""
        if of == "result":
            found = [self.at(radius) for radius in self.radii]
            return [
                one.row(model=self.name, radius=at.radius, quantity=quantity, response=self.settings.response)
                for at in found
                for quantity, one in zip(_COLUMNS, (at.mean, at.max_of_draws, at.largest), strict=True)
            ]
        return [
            {
                "model": self.name,
                "radius": self.radii[place],
                "input": i,
                "token": j,
                "value": float(self.values[place, i, j]),
                "mean": float(self.mean[place, i, j]),
            }
            for place, i, j in np.argwhere(np.isfinite(self.values)).tolist()
        ]

    def to_dict(self) -> dict[str, Any]:
        """Everything, as plain numbers and text for JSON; the changes as packed single-precision numbers."""
        plain = ("name", "draw_counts", "has_gradient", "passes", "warnings", "provenance")
        return {
            "kind": self.kind,
            "version": self.version,
            **{name: getattr(self, name) for name in plain},
            **({"notes": list(self.notes)} if self.notes else {}),
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
            notes=record.get("notes", []),
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
            record = parse_json(read_text(path, "result"))
            if record["kind"] != cls.kind or record["version"] != cls.version:
                raise ValueError(f"the kind {record['kind']!r}, version {record['version']!r}")
            return cls.from_dict(record)
        except (LookupError, TypeError, ValueError, ArithmeticError, AttributeError) as error:
            reason = " ".join(str(error).split())
            raise UsageError(f"result file {path} is not a whole worst case of this version: {reason}") from None

    def plot(self, inputs: Any = None, index: int | None = None, **options: Any) -> "Figure":
        """Draw the curves over the radii or, with ``inputs``, one input with its worst token and its change."""
        from jostle.worst.picture import change_figure, radius_figure

        return radius_figure(self) if inputs is None else change_figure(self, inputs, index, **options)

    def report(self, path: str | Path, *, inputs: Any = None) -> None:
        """Write an HTML page with the numbers and, with ``inputs``, some of them with their worst change."""
        from jostle.report.result import write_result

        write_result(self, path, searched=inputs)


def _over_positions(values: Floats, over: str) -> Floats:
    """From (N, T) to (N,): the mean or the maximum over the positions that are known; NaN where none is."""
    known = np.isfinite(values)
    if over == "max":
        best = np.where(known, values, -np.inf).max(axis=1)
        return np.where(known.any(axis=1), best, np.nan)
    with np.errstate(invalid="ignore"):
        means: Floats = np.where(known, values, 0.0).sum(axis=1) / known.sum(axis=1)
    return means


def _lines(w: WorstCase) -> list[str]:
    """The result as lines of text: a table over the radii, the search, and its warnings."""
    s = w.settings
    return [
        f"{w.name}: {_title(w)}; all are lower bounds",
        *_table([w.at(radius) for radius in w.radii], s.level),
        *_worst_position(w),
        f"  {counted(s.num_inputs, 'input')} of {counted(s.num_tokens, 'token')}; tokens={s.tokens} "
        f"response={s.response} positions={s.positions}",
        f"  {_effort(w)}",
        *(f"  warning: {warning}" for warning in w.warnings),
        *(f"  note: {note}" for note in w.notes),
    ]


def _title(w: WorstCase) -> str:
    s = w.settings
    if s.is_flip:
        what = "share of inputs with a flippable token" if s.positions == "worst" else "share of tokens flippable"
    else:
        where = "at its worst position" if s.positions == "worst" else "over positions"
        what = f"{s.response} of an input, {'largest ' if s.positions == 'worst' else 'mean '}{where}"
    return f"{what} within a radius, in units of {s.unit}"


def _table(rows: list[AtRadius], level: float) -> list[str]:
    mark = rows[0].largest.interval.mark
    head = f"  {'radius':>8}{_COLUMNS[0]:>15}{_COLUMNS[1]:>15}{_COLUMNS[2]:>16}   {level:.0%} interval over inputs"
    body = [
        f"  {written(row.radius):>8}{row.mean.value:>15.4g}{row.max_of_draws.value:>15.4g}"
        f"{row.largest.value:>16.4g}   [{row.largest.low:.4g}, {row.largest.high:.4g}]"
        for row in rows
    ]
    return [f"{head}{mark}", *body]


def _worst_position(w: WorstCase) -> list[str]:
    """A line about the worst position of each input, if all positions were searched."""
    if w.settings.positions == "worst" or w.settings.num_tokens == 1:
        return []
    worst = w.at(over="max").largest
    what = "inputs with a flippable token" if w.settings.is_flip else "at the worst position of each input"
    return [f"  {what}, radius {written(w.radii[-1])}: {worst}"]


def _effort(w: WorstCase) -> str:
    s = w.settings
    if w.has_gradient:
        how = f"{s.draws} draws, then {counted(s.starts, 'start')} of {counted(s.steps, 'step')}"
        if s.candidates:
            how += f" at the {s.candidates} most promising positions of each input"
    else:
        how = f"no gradients: the largest of {s.draws} draws and deletion"
    return f"{how}; seed={s.seed}; {w.passes:,} passes, {in_seconds(w.seconds)}"


def pack(array: NDArray[Any] | None, *, is_compact: bool = False) -> dict[str, Any] | None:
    """An array as a shape and a flat list, or, compact, as the base64 text of single-precision numbers.

    >>> pack(np.array([[1.0, np.nan]]))
    {'shape': [1, 2], 'kind': 'f', 'values': [1.0, None]}
    """
    if array is None:
        return None
    if is_compact:
        content = base64.b64encode(np.ascontiguousarray(array, dtype="<f4").tobytes()).decode("ascii")
        return {"shape": list(array.shape), "float32": content}
    if array.dtype.kind != "f":
        return {"shape": list(array.shape), "kind": "i", "values": array.ravel().tolist()}
    values = [value if np.isfinite(value) else None for value in array.ravel().tolist()]
    return {"shape": list(array.shape), "kind": "f", "values": values}


def unpack(record: dict[str, Any] | None) -> Any:
    """The array that ``pack`` wrote; numbers that JSON cannot hold are NaN."""
    if record is None:
        return None
    shape = tuple(record["shape"])
    if "float32" in record:
        return np.frombuffer(base64.b64decode(record["float32"], validate=True), dtype="<f4").reshape(shape).copy()
    if record["kind"] == "i":
        return np.asarray(record["values"], dtype=np.int64).reshape(shape)
    values = [np.nan if value is None else value for value in record["values"]]
    return np.asarray(values, dtype=np.float64).reshape(shape)
