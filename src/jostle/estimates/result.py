"""A mean change with its two intervals and its profile over positions.

The choices that define a measurement, as text and numbers.

What a measurement and a difference have in common: an estimate, and the target it was asked for.

The answer to: how often does the prediction change when one token is jostled, where, and how sure are we?

Several models on the same inputs and the same noise.

Reading results back.
"""

import json
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, get_args

import numpy as np
from numpy.typing import NDArray

from jostle.base.errors import UsageError
from jostle.base.estimate import TARGETS, Interval, Target
from jostle.base.files import write_text
from jostle.base.registry import unknown_name

UNKNOWN = "unknown"  # how the method of an interval begins that is none: it holds all values there are

if TYPE_CHECKING:
    from matplotlib.figure import Figure


Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Profile:
    """The mean change by token position, each position with an interval of its own (not simultaneous).

    A position is averaged over the inputs that have it. ``Until`` visits a token of a short input more often than one
    of a long input, so with masks its profile weighs inputs by 1 / their number of tokens; ``Grid`` weighs them alike,
    and so does ``Until`` if the average is micro.

    Arguments:
        values, low, high: (tokens,); NaN where a position was never jostled.
        counts: (tokens,) trials behind each position.
        positions: the shape of the position grid, e.g. (7, 7) for patches.
        target, method: what the intervals are for and how they were made.
        special: (tokens,) of text whose special tokens are known: of the texts that have this position, the share with
            a special token there, such as a classification token or a separator; NaN where no text reaches.
    """

    values: Floats
    low: Floats
    high: Floats
    counts: NDArray[np.int64]
    positions: tuple[int, ...]
    target: Target
    method: str
    special: Floats | None = None

    def image(self) -> Floats:
        """``values`` in the shape of the position grid: (rows, columns) for patches."""
        return self.values.reshape(self.positions)

    def to_dict(self) -> dict[str, Any]:
        """A plain dictionary, for JSON; NaN becomes null, and what is not known has no entry."""
        return {
            "values": plain(self.values),
            "low": plain(self.low),
            "high": plain(self.high),
            "counts": self.counts.tolist(),
            "positions": list(self.positions),
            "target": self.target,
            "method": self.method,
            **({} if self.special is None else {"special": plain(self.special)}),
        }

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> "Profile":
        """The profile that ``to_dict`` wrote."""
        ends = {key: array(record[key]) for key in ("values", "low", "high")}
        counts = np.asarray(record["counts"], dtype=np.int64)
        return cls(
            **ends,
            counts=counts,
            positions=tuple(record["positions"]),
            target=record["target"],
            method=record["method"],
            special=array(record["special"]) if "special" in record else None,
        )


@dataclass(frozen=True, eq=False)
class MeanChange:
    """A mean over inputs of the mean over tokens of the mean over draws, and how sure we are of it.

    Arguments:
        value: the estimate.
        dataset: the interval for the mean over exactly the inputs given.
        population: the interval for the mean over the population they came from.
        per_input: (N,), the mean change of each input; NaN where it was not visited.
        profile: the mean change by position.
        trials: finite trials behind the value.
    """

    value: float
    dataset: Interval
    population: Interval
    per_input: Floats
    profile: Profile
    trials: int

    def to_dict(self) -> dict[str, Any]:
        """A plain dictionary, for JSON."""
        return {
            "value": self.value,
            "dataset": self.dataset.to_dict(),
            "population": self.population.to_dict(),
            "trials": self.trials,
            "profile": self.profile.to_dict(),
            "per_input": plain(self.per_input),
        }

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> "MeanChange":
        """The estimate that ``to_dict`` wrote; other keys are passed over."""
        return cls(
            value=record["value"],
            dataset=Interval.from_dict("dataset", record["dataset"]),
            population=Interval.from_dict("population", record["population"]),
            per_input=array(record["per_input"]),
            profile=Profile.from_dict(record["profile"]),
            trials=record["trials"],
        )


def plain(values: Floats) -> list[float | None]:
    """Numbers as JSON can hold them."""
    return [float(value) if np.isfinite(value) else None for value in values]


def array(values: list[float | None]) -> Floats:
    """What ``plain`` wrote, as an array."""
    return np.asarray([np.nan if value is None else value for value in values], dtype=np.float64)


_LARGEST_LEVEL = 0.999  # Gaffke's bound is taken over 10,000 resamples


@dataclass(frozen=True)
class Settings:
    """What was measured, on what, how.

    Arguments:
        tokens, perturbation, response, plan: specs.
        target: which interval ``low`` and ``high`` are, and which one a stopping rule looked at.
        level: coverage of every interval.
        seed: of order, choice and noise.
        num_inputs, num_tokens: N and T; T counts masked positions too.
        average: ``macro``, inputs weigh the same whatever their number of tokens, or ``micro``, tokens weigh the same.
    """

    tokens: str
    perturbation: str
    response: str
    plan: str
    target: Target
    level: float
    seed: int
    num_inputs: int
    num_tokens: int
    average: str = "macro"

    def to_dict(self) -> dict[str, Any]:
        """A plain dictionary, for JSON; the usual average is not named."""
        return {key: value for key, value in asdict(self).items() if (key, value) != ("average", "macro")}

    def lines(self) -> list[str]:
        """The choices as two lines of text."""
        return [
            f"{self.num_inputs:,} inputs of {self.num_tokens:,} tokens; tokens={self.tokens} "
            f"perturbation={self.perturbation}",
            f"plan={self.plan} seed={self.seed}" + (" average=micro" if self.average == "micro" else ""),
        ]


def checked_target(target: str) -> Target:
    """``target`` if it is one."""
    if target not in get_args(Target):
        raise UsageError(f"target={target!r} must be dataset (the inputs given) or population (where they came from)")
    return target  # type: ignore[return-value]


def checked_level(level: float) -> float:
    """``level`` if it is a coverage."""
    if not isinstance(level, int | float) or not 0 < level <= _LARGEST_LEVEL:
        raise UsageError(f"level={level!r} must lie between 0 and {_LARGEST_LEVEL}, for example 0.95")
    return float(level)


def checked_whole(name: str, value: int, least: int | None = None) -> int:
    """``value`` if it is a whole number, and not smaller than ``least``."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or (least is not None and value < least):
        wanted = "a whole number" if least is None else f"a whole number, at least {least}"
        raise UsageError(f"{name}={value!r} must be {wanted}")
    return int(value)


class Answer(ABC):
    """An estimate as people read it: a value between ``low`` and ``high``."""

    estimate: MeanChange

    @property
    @abstractmethod
    def target(self) -> Target:
        """Which interval is ``low`` and ``high``: ``dataset`` or ``population``."""

    @property
    def value(self) -> float:
        """The estimate."""
        return self.estimate.value

    @property
    def interval(self) -> Interval:
        """The interval for the target asked for."""
        return self.dataset if self.target == "dataset" else self.population

    @property
    def low(self) -> float:
        """The lower end of ``interval``."""
        return self.interval.low

    @property
    def high(self) -> float:
        """The upper end of ``interval``."""
        return self.interval.high

    @property
    def dataset(self) -> Interval:
        """The interval for the mean over exactly the inputs given."""
        return self.estimate.dataset

    @property
    def population(self) -> Interval:
        """The interval for the mean over the population the inputs came from."""
        return self.estimate.population

    @property
    def profile(self) -> Profile:
        """The mean change by token position."""
        return self.estimate.profile

    @property
    def per_input(self) -> Floats:
        """The mean change of each input, NaN where it was not visited."""
        return self.estimate.per_input

    @property
    def trials(self) -> int:
        """Finite (input, token, draw) triples evaluated."""
        return self.estimate.trials

    def numbers(self) -> dict[str, Any]:
        """Value, intervals, profile and means as plain numbers, for JSON."""
        ends = self.interval.to_dict()
        return {"low": ends["low"], "high": ends["high"], "target": self.target, **self.estimate.to_dict()}


REASONS = {
    "complete": "every token of every input was jostled",
    "precision": "the interval is as narrow as asked for",
    "max_passes": "max_passes was reached before the interval was as narrow as asked for",
    "all-inputs-visited": "every input was visited, and only first visits count here: Grid uses few inputs better",
    "interrupted": "interrupted: this is what was known by then",
}


@dataclass(frozen=True, eq=False)
class Measurement(Answer):
    """The token sensitivity of one model.

    ``value`` is the mean over inputs of the mean over their tokens of the mean response, for flips paper 1's
    normalised sensitivity (2403.06925, Eq. 2), between 0 and 1.

    Arguments:
        name: of the model.
        settings: what was measured, on what, how.
        estimate: the value, both intervals, the profile, the mean of every input.
        passes: inputs the model answered, clean ones and the steadiness check included.
        stopped: why sampling ended, a key of ``REASONS``.
        nonfinite: trials left out because an output was NaN or infinite.
        warnings: what is suspicious about the model or the numbers.
        seconds: wall-clock time.
        provenance: versions and time.
    """

    name: str
    settings: Settings
    estimate: MeanChange = field(repr=False)
    passes: int
    stopped: str
    nonfinite: int
    warnings: list[str]
    seconds: float
    provenance: dict[str, str] = field(repr=False)

    kind: ClassVar[str] = "jostle/measurement"
    version: ClassVar[int] = 1

    @property
    def target(self) -> Target:
        return self.settings.target

    def __str__(self) -> str:
        return "\n".join(_lines(self))

    def to_dict(self) -> dict[str, Any]:
        """Everything, as plain numbers and text for JSON."""
        return {
            "kind": self.kind,
            "version": self.version,
            "name": self.name,
            **self.numbers(),
            "level": self.settings.level,
            "settings": self.settings.to_dict(),
            "passes": self.passes,
            "stopped": self.stopped,
            "nonfinite": self.nonfinite,
            "warnings": list(self.warnings),
            "seconds": round(self.seconds, 3),
            "provenance": self.provenance,
        }

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> "Measurement":
        """The measurement that ``to_dict`` wrote."""
        estimate, settings = MeanChange.from_dict(record), Settings(**record["settings"])
        rest = ("name", "passes", "stopped", "nonfinite", "warnings", "seconds", "provenance")
        return cls(settings=settings, estimate=estimate, **{key: record[key] for key in rest})

    def save(self, path: str | Path) -> None:
        """Write to a JSON file, whole or not at all; ``jostle.load`` reads it."""
        write_text(path, json.dumps(self.to_dict(), indent=1, allow_nan=False) + "\n")

    def plot(self) -> "Figure":
        """The profile as a figure: a heat map for patches, a line with its band otherwise."""
        from jostle.figures import profile_figure

        return profile_figure(self)


def _lines(m: Measurement) -> list[str]:
    s, other = m.settings, m.population if m.settings.target == "dataset" else m.dataset
    return [
        f"{m.name}: {s.response} {m.value:.4g}   [{m.low:.4g}, {m.high:.4g}]   {s.level:.0%} for {TARGETS[s.target]}",
        f"  {said(other)} for {TARGETS[other.target]}" + ("" if is_known(other) else f" with average={s.average}"),
        *(f"  {line}" for line in (*s.lines(), effort(m))),
        *(f"  warning: {warning}" for warning in m.warnings),
    ]


def is_known(interval: Interval) -> bool:
    """Whether there is such an interval at all: with ``Until`` and average=micro there is none for the population."""
    return not interval.method.startswith(UNKNOWN)


def said(interval: Interval) -> str:
    """The interval as ``[low, high]``, or that there is none."""
    return f"[{interval.low:.4g}, {interval.high:.4g}]" if is_known(interval) else "no interval"


def effort(m: Measurement) -> str:
    """What the number cost and why sampling ended, in a line."""
    return f"{m.trials:,} trials, {m.passes:,} passes, {m.seconds:.1f} s; {REASONS[m.stopped]}"


@dataclass(frozen=True, eq=False)
class Difference(Answer):
    """value = sensitivity of ``first`` minus sensitivity of ``second``, from the same trials.

    Arguments:
        first, second: names of the models.
        asked_for: the target of ``low`` and ``high``.
        estimate: the difference with both intervals, its profile, and each input's difference.
    """

    first: str
    second: str
    asked_for: Target
    estimate: MeanChange = field(repr=False)

    @property
    def target(self) -> Target:
        return self.asked_for

    @property
    def verdict(self) -> str:
        """What the interval says: who is more sensitive, or that it cannot tell."""
        if self.low > 0:
            return f"{self.first} is more sensitive than {self.second}"
        if self.high < 0:
            return f"{self.first} is less sensitive than {self.second}"
        return f"no difference between {self.first} and {self.second} can be told"

    def reversed(self) -> "Difference":
        """The same difference, ``second`` minus ``first``."""
        e, p = self.estimate, self.estimate.profile
        profile = Profile(-p.values, -p.high, -p.low, p.counts, p.positions, p.target, p.method, p.special)
        mirrored = MeanChange(-e.value, _mirror(e.dataset), _mirror(e.population), -e.per_input, profile, e.trials)
        return Difference(self.second, self.first, self.target, mirrored)

    def __str__(self) -> str:
        level, target = self.interval.level, TARGETS[self.target]
        return (
            f"{self.first} - {self.second}: {self.value:+.4g}   [{self.low:+.4g}, {self.high:+.4g}]   "
            f"{level:.0%} interval for {target}: {self.verdict}"
        )

    def to_dict(self) -> dict[str, Any]:
        """A plain dictionary, for JSON."""
        return {"first": self.first, "second": self.second, "verdict": self.verdict, **self.numbers()}

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> "Difference":
        """The difference that ``to_dict`` wrote."""
        return cls(record["first"], record["second"], record["target"], MeanChange.from_dict(record))


@dataclass(frozen=True, eq=False)
class Comparison:
    """Measurements of several models and all their paired differences.

    ``comparison["vit"]`` is a measurement, ``comparison.difference("cnn", "vit")`` a paired difference. Intervals are
    each at the stated level on their own; with many pairs, some exclude zero by chance.
    """

    measurements: dict[str, Measurement]
    differences: list[Difference] = field(repr=False)

    kind: ClassVar[str] = "jostle/comparison"
    version: ClassVar[int] = 1

    def __getitem__(self, name: str) -> Measurement:
        if name not in self.measurements:
            raise unknown_name("model", name, self.measurements)
        return self.measurements[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.measurements)

    def __len__(self) -> int:
        return len(self.measurements)

    @property
    def names(self) -> list[str]:
        """The models, in the order given."""
        return list(self.measurements)

    @property
    def stopped(self) -> str:
        """Why sampling ended; the same for all models."""
        return next(iter(self.measurements.values())).stopped

    @property
    def warnings(self) -> list[str]:
        """What is suspicious about the models or the numbers, each once."""
        return list(dict.fromkeys(text for m in self.measurements.values() for text in m.warnings))

    def difference(self, first: str, second: str) -> Difference:
        """Sensitivity of ``first`` minus sensitivity of ``second``, on the same inputs and noise."""
        self[first], self[second]
        if first == second:
            raise UsageError(f"a difference needs two models, not {first!r} twice")
        for difference in self.differences:
            if (difference.first, difference.second) == (first, second):
                return difference
            if (difference.second, difference.first) == (first, second):
                return difference.reversed()
        raise unknown_name("pair of models", f"{first}, {second}", [f"{d.first}, {d.second}" for d in self.differences])

    def __str__(self) -> str:
        measured = list(self.measurements.values())
        s, width = measured[0].settings, max(len(name) for name in self.measurements)
        lines = [f"{s.response}, {s.level:.0%} intervals for {TARGETS[s.target]}"]
        lines += [f"  {m.name:<{width}}  {m.value:.4g}   [{m.low:.4g}, {m.high:.4g}]" for m in measured]
        lines += [
            f"  {d.first} - {d.second}  {d.value:+.4g}   [{d.low:+.4g}, {d.high:+.4g}]   {d.verdict}"
            for d in self.differences
        ]
        lines += [f"  {line}" for line in (*s.lines(), f"each model: {effort(measured[0])}")]
        return "\n".join(lines + [f"  warning: {text}" for m in measured for text in m.warnings])

    def to_dict(self) -> dict[str, Any]:
        """Everything, as plain numbers and text for JSON."""
        return {
            "kind": self.kind,
            "version": self.version,
            "measurements": [measurement.to_dict() for measurement in self.measurements.values()],
            "differences": [difference.to_dict() for difference in self.differences],
        }

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> "Comparison":
        """The comparison that ``to_dict`` wrote."""
        measurements = [Measurement.from_dict(part) for part in record["measurements"]]
        return cls({m.name: m for m in measurements}, [Difference.from_dict(part) for part in record["differences"]])

    def save(self, path: str | Path) -> None:
        """Write to a JSON file, whole or not at all; ``jostle.load`` reads it."""
        write_text(path, json.dumps(self.to_dict(), indent=1, allow_nan=False) + "\n")


def _mirror(interval: Interval) -> Interval:
    return Interval(-interval.high, -interval.low, interval.level, interval.target, interval.method)
