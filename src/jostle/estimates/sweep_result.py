"""The answer to: how does the sensitivity of models grow with the strength of the noise, and where do they cross?"""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from jostle.errors import UsageError
from jostle.estimates.comparison import Comparison, Difference
from jostle.estimates.measurement import REASONS, Measurement
from jostle.estimates.settings import Settings
from jostle.estimates.sweep_words import against, listed
from jostle.files import write_text
from jostle.intervals import TARGETS
from jostle.registry import unknown_name

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ByStrength = dict[float, Comparison]


@dataclass(frozen=True, eq=False)
class Sweep:
    """One or several models at growing strengths of one kind of jostle, on the same inputs and the same noise.

    ``sweep["vit"][2.0]`` is a ``Measurement``, ``sweep.differences("vit", "mlp")[2.0]`` a paired ``Difference``.
    The interval of a measurement is at ``level`` on its own. The intervals of a pair's differences share that level
    over the strengths (Bonferroni): each is at ``shared_level`` = 1 - (1 - level) / (strengths above 0), so that all of
    one pair hold together at ``level``, and so does its sentence in ``crossings()``. Several pairs do not share.

    Arguments:
        parameter: what a strength is called: ``std``, ``radius``.
        perturbation: the kind of jostle, without its strength.
        shared_level: of the intervals of differences.
        at: the models and their differences at each strength, weakest first.
        missing: strengths that were asked for and not reached before an interruption.
    """

    parameter: str
    perturbation: str
    shared_level: float
    at: ByStrength = field(repr=False)
    missing: tuple[float, ...] = ()

    kind: ClassVar[str] = "jostle/sweep"
    version: ClassVar[int] = 1

    def __getitem__(self, name: str) -> dict[float, Measurement]:
        if name not in self.names:
            raise unknown_name("model", name, self.names)
        return {strength: comparison[name] for strength, comparison in self.at.items()}

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)

    @property
    def names(self) -> list[str]:
        """The models, in the order given."""
        return self._any.names

    @property
    def strengths(self) -> list[float]:
        """The strengths that were measured, weakest first."""
        return list(self.at)

    @property
    def settings(self) -> Settings:
        """What was measured, on what, how; ``perturbation`` is that of the strongest noise."""
        return self._any[self.names[0]].settings

    @property
    def level(self) -> float:
        """Coverage of the interval of each measurement."""
        return self.settings.level

    @property
    def passes(self) -> int:
        """Inputs that the model answered which answered most; what it answers to a clean input is asked once."""
        return max(sum(measured.passes for measured in self[name].values()) for name in self.names)

    @property
    def warnings(self) -> list[str]:
        """What is suspicious about models or numbers, each once."""
        texts = (text for name in self.names for measured in self[name].values() for text in measured.warnings)
        return list(dict.fromkeys(texts))

    @property
    def _any(self) -> Comparison:
        return self.at[max(self.at)]

    def differences(self, first: str | None = None, second: str | None = None) -> dict[float, Difference]:
        """Sensitivity of ``first`` minus sensitivity of ``second`` by strength, on the same inputs and noise.

        The intervals hold together for all strengths, see ``Sweep``. With two models the names can be left out.
        """
        if first is None or second is None:
            if first is not None or second is not None or len(self) != 2:
                names = ", ".join(self.names)
                raise UsageError(f"differences needs the names of two models, and the sweep has {names}")
            first, second = self.names
        return {strength: comparison.difference(first, second) for strength, comparison in self.at.items()}

    def crossings(self) -> list[str]:
        """For each pair of models a sentence: where the first is more sensitive, less, or not told apart.

        Strength 0, at which all models are the same, is passed over.
        """
        pairs = [(first, second) for place, first in enumerate(self.names) for second in self.names[place + 1 :]]
        moving = [strength for strength in self.at if strength > 0]
        found = {pair: self.differences(*pair) for pair in pairs}
        return [against(*pair, {s: found[pair][s] for s in moving}, self.parameter) for pair in pairs if moving]

    def __str__(self) -> str:
        return "\n".join(_lines(self))

    def to_dict(self) -> dict[str, Any]:
        """Numbers and text for JSON; the means of every single input are left out."""
        return {
            "kind": self.kind,
            "version": self.version,
            "parameter": self.parameter,
            "perturbation": self.perturbation,
            "strengths": self.strengths,
            "missing": list(self.missing),
            "models": self.names,
            "level": self.level,
            "shared_level": self.shared_level,
            "crossings": self.crossings(),
            "comparisons": [_light(comparison.to_dict()) for comparison in self.at.values()],
        }

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> "Sweep":
        """The sweep that ``to_dict`` wrote."""
        comparisons = [Comparison.from_dict(part) for part in record["comparisons"]]
        return cls(
            parameter=record["parameter"],
            perturbation=record["perturbation"],
            shared_level=record["shared_level"],
            at=dict(zip(record["strengths"], comparisons, strict=True)),
            missing=tuple(record["missing"]),
        )

    def save(self, path: str | Path) -> None:
        """Write to a JSON file, whole or not at all; ``jostle.load`` reads it."""
        write_text(path, json.dumps(self.to_dict(), indent=1, allow_nan=False) + "\n")

    def plot(self) -> "Figure":
        """Sensitivity against strength, a line with its band for each model; see ``figures.sweep``."""
        from jostle.figures.sweep import sweep_figure

        return sweep_figure(self)


def _light(record: dict[str, Any]) -> dict[str, Any]:
    """A comparison without the mean of every input: inputs x strengths x pairs of numbers that curves do not need."""
    return record | {
        part: [entry | {"per_input": []} for entry in record[part]] for part in ("measurements", "differences")
    }


def _lines(sweep: Sweep) -> list[str]:
    s = sweep.settings
    inputs, plan = s.lines()
    lines = [f"{s.response}, {s.level:.0%} intervals for {TARGETS[s.target]}, each on its own", *_table(sweep)]
    if len(sweep) > 1:
        lines += [f"  {sentence}" for sentence in sweep.crossings()]
        lines.append(f"  (paired differences at {sweep.shared_level:.2%}: of a pair, all together {s.level:.0%})")
    lines += [f"  {inputs.rpartition(' ')[0]} perturbation={sweep.perturbation}", f"  {plan}", f"  {_effort(sweep)}"]
    if sweep.missing:
        left_out = listed([f"{strength:g}" for strength in sweep.missing])
        lines.append(f"  interrupted before {sweep.parameter} {left_out} was measured")
    return lines + [f"  warning: {text}" for text in sweep.warnings]


def _table(sweep: Sweep) -> list[str]:
    rows = [[sweep.parameter, *sweep.names]]
    for strength, comparison in sweep.at.items():
        measured = [comparison[name] for name in sweep.names]
        rows.append([f"{strength:g}", *(f"{m.value:.4g} [{m.low:.4g}, {m.high:.4g}]" for m in measured)])
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return ["  " + "   ".join(map(str.ljust, row, widths)).rstrip() for row in rows]


def _effort(sweep: Sweep) -> str:
    """What the numbers cost, and why sampling ended at which strengths."""
    seconds = sum(comparison[sweep.names[0]].seconds for comparison in sweep.at.values())
    reasons: dict[str, list[str]] = {}
    for strength, comparison in sweep.at.items():
        if strength > 0:
            reasons.setdefault(comparison.stopped, []).append(f"{strength:g}")
    ends = [
        REASONS[reason] + (f" (at {sweep.parameter} {listed(found)})" if len(reasons) > 1 else "")
        for reason, found in reasons.items()
    ]
    spent = f"{sweep.passes:,} passes{' of each model' if len(sweep) > 1 else ''}, {seconds:.1f} s"
    return "; ".join([spent, *ends])
