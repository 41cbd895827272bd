"""Results: numbers with intervals, for printing, saving and comparing.

``MeanChange`` is an estimate with its two intervals and its profile over positions. ``Measurement`` is the mean change
of one model, ``Difference`` that of two models on the same trials, ``Comparison`` holds several models and all their
differences. ``MeasureSettings`` say what was asked, as text and numbers.
"""

import json
import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from jostle.base.errors import UsageError
from jostle.base.estimate import OTHER, PROCESSES, TARGETS, Estimate, Interval, Target, in_seconds
from jostle.base.files import write_text
from jostle.base.registry import unknown_name
from jostle.base.table import Row, Tabular
from jostle.estimates import tables as made
from jostle.estimates.certainty import Certainty
from jostle.intervals.fixed import ASYMPTOTIC
from jostle.responses import RESPONSES

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from jostle.estimates.samples import Samples

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Profile:
    """The mean change by token position, each position with an interval of its own (not simultaneous).

    A position is averaged over the inputs that have it. ``Until`` visits a token of a short input more often than one
    of a long input, so with masks its profile weighs inputs by 1 / their number of tokens. ``Grid`` gives all inputs
    the same weight, and so does ``Until`` if the average is micro.

    Arguments:
        values, low, high: (tokens,); NaN where a position was never jostled.
        counts: (tokens,) trials behind each position.
        positions: the shape of the position grid, e.g. (7, 7) for patches.
        target, method: what the intervals are for and how they were made.
        special: (tokens,) for texts whose special tokens are known: the share of the texts that have this position
            and a special token there, such as a classification token or a separator; NaN where no text reaches.
        names: of the positions, if they have any: the columns of a table.
    """

    values: Floats
    low: Floats
    high: Floats
    counts: NDArray[np.int64]
    positions: tuple[int, ...]
    target: Target
    method: str
    special: Floats | None = None
    names: tuple[str, ...] = ()

    def image(self) -> Floats:
        """``values`` in the shape of the position grid: (rows, columns) for patches."""
        return self.values.reshape(self.positions)

    def to_dict(self) -> dict[str, Any]:
        """A plain dictionary, for JSON; NaN becomes null, and an unknown share of special tokens has no entry."""
        return {
            "values": plain(self.values),
            "low": plain(self.low),
            "high": plain(self.high),
            "counts": self.counts.tolist(),
            "positions": list(self.positions),
            "target": self.target,
            "method": self.method,
            **({} if self.special is None else {"special": plain(self.special)}),
            **({"names": list(self.names)} if self.names else {}),
        }

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> "Profile":
        """The profile that ``to_dict`` wrote."""
        ends = {key: array(record[key]) for key in ("values", "low", "high")}
        counts, positions = np.asarray(record["counts"], dtype=np.int64), tuple(record["positions"])
        lengths = {"profile.counts": counts.shape, **{f"profile.{key}": end.shape for key, end in ends.items()}}
        for name, shape in lengths.items():
            if shape != (math.prod(positions),):
                raise ValueError(f"{name} or profile.positions, which do not fit each other")
        if (counts < 0).any():
            raise ValueError("profile.counts, of which some are negative")
        return cls(
            **ends,
            counts=counts,
            positions=positions,
            target=record["target"],
            method=record["method"],
            special=array(record["special"]) if "special" in record else None,
            names=tuple(record.get("names", ())),
        )


@dataclass(frozen=True, eq=False)
class MeanChange(Estimate):
    """A mean over inputs of the mean over tokens of the mean over draws, with an interval for each target.

    Arguments:
        value: the estimate.
        interval: its interval for the target that was asked for; ``low`` and ``high`` are its ends.
        other: its interval for the other target.
        per_input: (N,), the mean change of each input; NaN where it was not visited.
        profile: the mean change by position.
        trials: (input, token, draw) triples with a finite change that are behind the value.
    """

    other: Interval
    per_input: Floats = field(repr=False)
    profile: Profile = field(repr=False)
    trials: int

    @property
    def target(self) -> Target:
        """Which interval is ``low`` and ``high``: ``dataset`` or ``population``."""
        return self.interval.target

    @property
    def dataset(self) -> Interval:
        """The interval for the mean over exactly the inputs given."""
        return self.interval if self.target == "dataset" else self.other

    @property
    def population(self) -> Interval:
        """The interval for the mean over the population that the inputs came from."""
        return self.interval if self.target == "population" else self.other

    @property
    def caveats(self) -> list[str]:
        """Which intervals do not promise their coverage, and why."""
        return [
            f"the coverage of the interval for {TARGETS[interval.target]} is not promised: {interval.caveat}"
            for interval in (self.interval, self.other)
            if interval.caveat not in ("", ASYMPTOTIC)  # the second stands beside the interval
        ]

    def to_dict(self) -> dict[str, Any]:
        """A plain dictionary, for JSON."""
        ends = self.interval.to_dict()
        return {
            "low": ends["low"],
            "high": ends["high"],
            "target": self.target,
            "value": self.value,
            "dataset": self.dataset.to_dict(),
            "population": self.population.to_dict(),
            "trials": self.trials,
            "profile": self.profile.to_dict(),
            "per_input": plain(self.per_input),
        }

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> "MeanChange":
        """The mean change that ``to_dict`` wrote; other keys are passed over."""
        target: Target = record["target"]
        other = OTHER[target]
        return MeanChange(
            value=record["value"],
            interval=Interval.from_dict(target, record[target]),
            other=Interval.from_dict(other, record[other]),
            per_input=array(record["per_input"]),
            profile=Profile.from_dict(record["profile"]),
            trials=record["trials"],
        )


def plain(values: Floats) -> list[float | None]:
    """Numbers for JSON, which has no NaN and no infinity: they become None."""
    return [float(value) if np.isfinite(value) else None for value in values]


def array(values: list[float | None]) -> Floats:
    """What ``plain`` wrote, as an array."""
    return np.asarray([np.nan if value is None else value for value in values], dtype=np.float64)


@dataclass(frozen=True)
class MeasureSettings:
    """What was measured, on which inputs, and how.

    Arguments:
        tokens, perturbation, response, plan: specs.
        target: which interval ``low`` and ``high`` are, and which one a stopping rule looked at.
        level: coverage of every interval.
        seed: of the order of inputs, the choice of trials and the noise.
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
        """A plain dictionary, for JSON; the default average has no entry."""
        return {key: value for key, value in asdict(self).items() if (key, value) != ("average", "macro")}

    def lines(self) -> list[str]:
        """The settings as two lines of text."""
        return [
            f"{counted(self.num_inputs, 'input')} of {counted(self.num_tokens, 'token')}; tokens={self.tokens} "
            f"perturbation={self.perturbation}",
            f"plan={self.plan} seed={self.seed}" + (" average=micro" if self.average == "micro" else ""),
        ]


def counted(number: int, thing: str) -> str:
    """A number of things.

    >>> counted(1, "input"), counted(2000, "token")
    ('1 input', '2,000 tokens')
    """
    return f"{number:,} {thing}" + ("" if number == 1 else "s")


_SHOWN = 5  # named positions that are printed

# How the method of an interval begins if the sign of a difference was decided on discordant pairs (an end at 0 is then
# excluded), and if the difference was shown to be smaller than what follows.
SIGN_DECIDED, NEGLIGIBLE = "sign decided", "smaller than"

REASONS = {
    "complete": "every token of every input was jostled",
    "precision": "the interval is as narrow as asked for",
    "decided": "every difference is decided",
    "max_passes": "max_passes was reached before the stopping rule was met",
    "all-inputs-visited": "every input was visited, and only first visits count here: Grid uses few inputs better",
    "interrupted": "interrupted: this is what was known by then",
}


@dataclass(frozen=True, eq=False, kw_only=True)
class Measurement(MeanChange):
    """The token sensitivity of one model.

    ``value`` is the mean over inputs of the mean over their tokens of the mean response, for flips paper 1's
    normalised sensitivity (2403.06925, Eq. 2), between 0 and 1. ``low`` and ``high`` are the ends of its interval.

    Arguments:
        value, interval, other, per_input, profile, trials: as for ``MeanChange``.
        name: of the model.
        settings: what was measured, on which inputs, and how.
        passes: inputs that the model answered; clean inputs and the steadiness check count.
        stopped: why sampling ended, a key of ``REASONS``.
        nonfinite: trials left out because an output was NaN or infinite.
        warnings: what is suspicious about the model or the numbers.
        seconds: wall-clock time.
        provenance: versions and time; under ``processes``, why other processes were not asked.
        notes: what is worth knowing and nothing to worry about, such as that the model was in train mode before.
        certainty: whether sensitive predictions tend to be wrong; None unless labels were given.
        samples: the trials by input and token, if they were asked for; files do not hold them.
    """

    name: str
    settings: MeasureSettings
    passes: int
    stopped: str
    nonfinite: int
    warnings: list[str]
    seconds: float
    provenance: dict[str, str] = field(repr=False)
    notes: list[str] = field(default_factory=list)
    certainty: Certainty | None = field(default=None, repr=False)
    samples: "Samples | None" = field(default=None, repr=False)

    kind: ClassVar[str] = "jostle/measurement"
    version: ClassVar[int] = 1
    tables: ClassVar[tuple[str, ...]] = ("result", "positions", "inputs", "tokens")

    def __str__(self) -> str:
        return "\n".join(_lines(self))

    @property
    def remarks(self) -> list[str]:
        """The notes, and what people are told about processes, which is no part of the result."""
        return [*self.notes, *([self.provenance[PROCESSES]] if PROCESSES in self.provenance else [])]

    def to_dict(self) -> dict[str, Any]:
        """Everything, as plain numbers and text for JSON."""
        return {
            "kind": self.kind,
            "version": self.version,
            "name": self.name,
            **super().to_dict(),
            "level": self.settings.level,
            "settings": self.settings.to_dict(),
            "passes": self.passes,
            "stopped": self.stopped,
            "nonfinite": self.nonfinite,
            "warnings": list(self.warnings),
            **({"notes": list(self.notes)} if self.notes else {}),
            **({"certainty": self.certainty.to_dict()} if self.certainty is not None else {}),
            "seconds": round(self.seconds, 3),
            "provenance": self.provenance,
        }

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> "Measurement":
        """The measurement that ``to_dict`` wrote."""
        rest = ("name", "passes", "stopped", "nonfinite", "warnings", "seconds", "provenance")
        change, settings = MeanChange.from_dict(record), MeasureSettings(**record["settings"])
        if change.per_input.shape not in ((0,), (settings.num_inputs,)):
            raise ValueError("per_input or settings.num_inputs, which do not fit each other")
        bounds = RESPONSES.get(settings.response).bounds if settings.response in RESPONSES else None
        if bounds is not None and not bounds[0] <= change.value <= bounds[1]:
            raise ValueError(f"value, which is {change.value!r} and not between {bounds[0]:g} and {bounds[1]:g}")
        return cls(
            **vars(change),
            settings=settings,
            notes=record.get("notes", []),
            certainty=Certainty.from_dict(record["certainty"]) if "certainty" in record else None,
            **{key: record[key] for key in rest},
        )

    def save(self, path: str | Path) -> None:
        """Write to a JSON file, whole or not at all; ``jostle.load`` reads it."""
        write_text(path, json.dumps(self.to_dict(), indent=1, allow_nan=False) + "\n")

    def rows(self, of: str = "result") -> list[Row]:
        """The number; or a row for each position, each input, or (with ``samples``) each token of each input."""
        if of == "tokens" and self.samples is None:
            raise UsageError("the trials of single tokens were not kept: measure with samples=True")
        return made.measurement_rows(self, of)

    def _repr_html_(self) -> str:
        """For notebooks: the numbers, a map of the positions and, with ``samples``, examples."""
        return made.measurements_html(str(self), self.rows(), [self])

    def __repr__(self) -> str:
        return f"<Measurement of {str(self).splitlines()[0]}>"

    def plot(self) -> "Figure":
        """The profile as a figure: a heat map for patches, a line with its band otherwise."""
        from jostle.figures import profile_figure

        return profile_figure(self)

    def report(self, path: str | Path, *, inputs: str = "the inputs given") -> None:
        """Write an HTML page with the numbers, figures and settings, whole or not at all.

        Arguments:
            path: of the page.
            inputs: a name of the inputs, for the page.
        """
        from jostle.report.result import write_result

        write_result(self, path, inputs=inputs)


def _lines(m: Measurement) -> list[str]:
    s, other = m.settings, m.other
    ends = f"[{other.low:.4g}, {other.high:.4g}]" if other.is_known else "no interval"
    why = "" if other.is_known else f" with average={s.average}"
    return [
        f"{m.name}: {s.response} {m.value:.4g}   [{m.low:.4g}, {m.high:.4g}]   {s.level:.0%} for {TARGETS[s.target]}"
        + m.interval.mark,
        f"  {ends} for {TARGETS[other.target]}{why}{other.mark}",
        *(f"  {line}" for line in (() if m.certainty is None else m.certainty.lines())),
        *(f"  {line}" for line in (*_largest(m.profile), *s.lines(), effort(m))),
        *(f"  warning: {text}" for text in m.warnings),
        *(f"  note: {text}" for text in m.remarks),
    ]


def _largest(profile: Profile) -> list[str]:
    """The positions with names that matter most, in a line."""
    known = [number for number in np.argsort(-profile.values, kind="stable") if np.isfinite(profile.values[number])]
    shown = [
        f"{profile.names[number]} {profile.values[number]:.3g} [{profile.low[number]:.3g}, {profile.high[number]:.3g}]"
        for number in (known[:_SHOWN] if profile.names else ())
    ]
    more = len(known) - _SHOWN
    return [f"by column: {', '.join(shown)}{f', and {more} less sensitive' if more > 0 else ''}"] if shown else []


def effort(m: Measurement) -> str:
    """What the number cost and why sampling ended, in a line."""
    return f"{m.trials:,} trials, {m.passes:,} passes, {in_seconds(m.seconds)}; {REASONS[m.stopped]}"


@dataclass(frozen=True, eq=False, kw_only=True)
class Difference(MeanChange):
    """value = sensitivity of ``first`` minus sensitivity of ``second``, from the same trials.

    Arguments:
        value, interval, other, per_input, profile, trials: as for ``MeanChange``, of the difference.
        first, second: names of the models.
    """

    first: str
    second: str

    @property
    def direction(self) -> int:
        """1 if ``first`` is more sensitive, -1 if it is less sensitive, 0 if the interval does not tell."""
        is_decided = self.interval.method.startswith(SIGN_DECIDED)
        if self.low > 0 or (is_decided and self.low == 0):
            return 1
        return -1 if self.high < 0 or (is_decided and self.high == 0) else 0

    @property
    def verdict(self) -> str:
        """What the interval says: which model is more sensitive, or that it does not tell."""
        if self.direction:
            word = "more" if self.direction > 0 else "less"
            return f"{self.first} is {word} sensitive than {self.second}"
        if self.interval.method.startswith(NEGLIGIBLE):
            least = self.interval.method.removeprefix(NEGLIGIBLE).split(",")[0].strip()
            return f"{self.first} and {self.second} differ by less than {least}"
        return f"no significant difference between {self.first} and {self.second}"

    def reversed(self) -> "Difference":
        """The same difference as ``second`` minus ``first``."""
        p = self.profile
        return replace(
            self,
            first=self.second,
            second=self.first,
            value=-self.value,
            interval=_mirror(self.interval),
            other=_mirror(self.other),
            per_input=-self.per_input,
            profile=replace(p, values=-p.values, low=-p.high, high=-p.low),
        )

    def __str__(self) -> str:
        return (
            f"{self.first} - {self.second}: {self.value:+.4g}   [{self.low:+.4g}, {self.high:+.4g}]   "
            f"{self.interval.level:.0%} interval for {TARGETS[self.target]}: {self.verdict}"
            + (f" ({self.interval.caveat})" if self.interval.caveat else "")
        )

    def rows(self, of: str = "result") -> list[Row]:  # noqa: ARG002 - there is one table
        """One row: the difference."""
        return [made.difference_row(self)]

    def to_dict(self) -> dict[str, Any]:
        """A plain dictionary, for JSON."""
        return {"first": self.first, "second": self.second, "verdict": self.verdict, **super().to_dict()}

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> "Difference":
        """The difference that ``to_dict`` wrote."""
        return cls(**vars(MeanChange.from_dict(record)), first=record["first"], second=record["second"])


def _mirror(interval: Interval) -> Interval:
    return replace(interval, low=-interval.high, high=-interval.low)


@dataclass(frozen=True, eq=False)
class Comparison(Tabular):
    """Measurements of several models and all their paired differences.

    ``comparison["vit"]`` is a measurement, ``comparison.difference("cnn", "vit")`` a paired difference. Intervals are
    at the stated level each; with many pairs, some exclude zero by chance.
    """

    measurements: dict[str, Measurement]
    differences: list[Difference] = field(repr=False)

    kind: ClassVar[str] = "jostle/comparison"
    version: ClassVar[int] = 1
    tables: ClassVar[tuple[str, ...]] = Measurement.tables

    def __getitem__(self, name: str) -> Measurement:
        if not isinstance(name, str) or name not in self.measurements:
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

    @property
    def notes(self) -> list[str]:
        """What is worth knowing and nothing to worry about, each once."""
        return list(dict.fromkeys(text for m in self.measurements.values() for text in m.remarks))

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
        lines = [f"{s.response}, {s.level:.0%} intervals for {TARGETS[s.target]}{measured[0].interval.mark}"]
        lines += [f"  {m.name:<{width}}  {m.value:.4g}   [{m.low:.4g}, {m.high:.4g}]" for m in measured]
        lines += [
            f"  {d.first} - {d.second}  {d.value:+.4g}   [{d.low:+.4g}, {d.high:+.4g}]   {d.verdict}"
            for d in self.differences
        ]
        lines += [f"  {m.name}: {line}" for m in measured if m.certainty is not None for line in m.certainty.lines()]
        lines += [f"  {line}" for line in (*s.lines(), f"each model: {effort(measured[0])}")]
        lines += [f"  warning: {text}" for text in self.warnings]
        return "\n".join(lines + [f"  note: {text}" for text in self.notes])

    def rows(self, of: str = "result") -> list[Row]:
        """Models and their differences (``against``); or the positions, inputs or tokens of all models."""
        if of == "result":
            return made.comparison_rows(self)
        return [row for m in self.measurements.values() for row in m.rows(of)]

    def _repr_html_(self) -> str:
        """For notebooks: the numbers, a map of the positions of each model and, with ``samples``, examples."""
        return made.measurements_html(str(self), self.rows(), self.measurements.values())

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

    def __repr__(self) -> str:
        lines = [str(one).splitlines()[0] for one in self.measurements.values()]
        return f"<Comparison of {'; '.join(lines)}>"

    def plot(self) -> "Figure":
        """All paired differences with their intervals; of a single model its profile."""
        from jostle.figures import differences

        return differences(self.differences) if self.differences else self[self.names[0]].plot()

    def report(self, path: str | Path, *, inputs: str = "the inputs given") -> None:
        """Write an HTML page with the numbers, figures and settings, whole or not at all.

        Arguments:
            path: of the page.
            inputs: a name of the inputs, for the page.
        """
        from jostle.report.result import write_result

        write_result(self, path, inputs=inputs)
