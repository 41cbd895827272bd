"""Several models on the same inputs and the same noise."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from jostle.errors import UsageError
from jostle.estimates.answer import Answer
from jostle.estimates.estimate import Estimate, Profile
from jostle.estimates.measurement import Measurement, effort
from jostle.files import write_text
from jostle.intervals import TARGETS, Interval, Target
from jostle.registry import unknown_name


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
    estimate: Estimate = field(repr=False)

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
        mirrored = Estimate(-e.value, _mirror(e.dataset), _mirror(e.population), -e.per_input, profile, e.trials)
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
        return cls(record["first"], record["second"], record["target"], Estimate.from_dict(record))


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
