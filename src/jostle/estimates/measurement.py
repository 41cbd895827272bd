"""The answer to: how often does the prediction change when one token is jostled, where, and how sure are we?"""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from jostle.estimates.answer import Answer
from jostle.estimates.estimate import Estimate
from jostle.estimates.settings import Settings
from jostle.estimates.until_tally import UNKNOWN
from jostle.files import write_text
from jostle.intervals import TARGETS, Interval, Target

if TYPE_CHECKING:
    from matplotlib.figure import Figure

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
    estimate: Estimate = field(repr=False)
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
        estimate, settings = Estimate.from_dict(record), Settings(**record["settings"])
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
