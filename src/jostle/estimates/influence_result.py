"""The result of ``influence``: a matrix for each prompt, and how few tokens carry the influence."""

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from jostle.base.estimate import Estimate, Interval, in_seconds
from jostle.base.files import write_text
from jostle.base.table import Row, Tabular
from jostle.estimates.result import REASONS, Floats, array, plain
from jostle.intervals.simultaneous import tokens_that_carry

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SHARES = (0.5, 0.9)
_METHOD = "from the intervals of all entries together"
_REASONS = {
    **REASONS,
    "complete": "every token was jostled, and there is no randomness",
    "precision": "all intervals are as narrow as asked for",
    "max_passes": "max_passes was reached before all intervals were as narrow as asked for",
}


@dataclass(frozen=True, eq=False)
class PromptInfluence:
    """The influence of each token of one prompt on each prediction.

    Arguments:
        tokens: (T,) the tokens as they stand in the text.
        is_special: (T,) whether the tokenizer added them.
        predictions: (J,) what the clean model predicts at each place: the next token, or a label.
        values, low, high: (T, J) influence of token i on the prediction at j, with intervals; NaN where token i cannot
            change it, or was not jostled.
        draws: (T,) how often each token was jostled.
        level: of all intervals together.
    """

    tokens: list[str]
    is_special: list[bool]
    predictions: list[str]
    values: Floats
    low: Floats
    high: Floats
    draws: list[int]
    level: float

    def on(self, place: int = -1) -> tuple[Floats, Floats, Floats]:
        """(T,) each: the influence of every token on one prediction, by default the last, with low and high ends."""
        return self.values[:, place], self.low[:, place], self.high[:, place]

    def concentration_on(self, place: int = -1) -> dict[float, Estimate]:
        """How few tokens carry 50 % and 90 % of the influence on one prediction, by default the last.

        The smallest k such that some k tokens have at least this share of the sum of all influences on it. If nothing
        has influence, the value is NaN.
        """
        values, low, high = (part[np.isfinite(self.values[:, place])] for part in self.on(place))
        found = {}
        for share in SHARES:
            ends = tokens_that_carry(share, low, high) if len(values) else (0, 0)
            value = float(tokens_that_carry(share, values, values)[0]) if values.sum() > 0 else float("nan")
            interval = Interval(float(ends[0]), float(ends[1]), self.level, "dataset", _METHOD)
            found[share] = Estimate(value, interval)
        return found

    @property
    def concentration(self) -> dict[float, Estimate]:
        """``concentration_on`` the last prediction."""
        return self.concentration_on()

    def to_dict(self) -> dict[str, Any]:
        """A plain dictionary, for JSON."""
        numbers = {key: [plain(row) for row in getattr(self, key)] for key in ("values", "low", "high")}
        rest = ("tokens", "is_special", "predictions", "draws", "level")
        return {**{key: getattr(self, key) for key in rest}, **numbers}

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> "PromptInfluence":
        """What ``to_dict`` wrote."""
        numbers = {key: np.stack([array(row) for row in record[key]]) for key in ("values", "low", "high")}
        return cls(**{**record, **numbers})


@dataclass(frozen=True)
class InfluenceSettings:
    """What was asked.

    Arguments:
        tokens, perturbation, response: specs.
        half_width: the precision that was asked for; None for a tenth of the largest entry.
        max_passes: the most inputs that the model might answer.
        level, seed: as for ``measure``.
    """

    tokens: str
    perturbation: str
    response: str
    half_width: float | None
    max_passes: int
    level: float
    seed: int

    def lines(self) -> list[str]:
        """The settings as a line of text."""
        return [f"tokens={self.tokens} perturbation={self.perturbation} response={self.response} seed={self.seed}"]


@dataclass(frozen=True, eq=False, kw_only=True)
class Influence(Tabular):
    """Which token matters for which prediction, for one or several prompts.

    ``influence.matrix[i, j]`` is the mean change of the prediction at token j when token i moves, ``low`` and ``high``
    are intervals of all entries together. With several prompts there is one matrix each: ``influence[0].values``;
    ``matrix`` then has all of them, (prompts, T, J), filled up with NaN.

    Arguments:
        name: of the model.
        prompts: one for each prompt.
        settings: what was asked.
        passes: inputs that the model answered; a pass gives the changes at all tokens and counts once.
        stopped: why sampling ended.
        nonfinite: draws left out because an output was NaN or infinite.
        warnings, notes, seconds, provenance: as for ``Measurement``.
        caveat: why the intervals do not promise their coverage, as that of an ``Interval``; empty if they do.
    """

    name: str
    prompts: list[PromptInfluence]
    settings: InfluenceSettings
    passes: int
    stopped: str
    nonfinite: int
    warnings: list[str]
    notes: list[str]
    seconds: float
    provenance: dict[str, str] = field(repr=False)
    caveat: str = ""

    kind: ClassVar[str] = "jostle/influence"
    version: ClassVar[int] = 1

    def __len__(self) -> int:
        return len(self.prompts)

    def __getitem__(self, number: int) -> PromptInfluence:
        return self.prompts[number]

    def __iter__(self) -> Iterator[PromptInfluence]:
        return iter(self.prompts)

    @property
    def matrix(self) -> Floats:
        """(T, J) influence of token i on the prediction at j; (prompts, T, J) if there are several prompts."""
        return self._stacked("values")

    @property
    def low(self) -> Floats:
        """The lower ends of the intervals, in the shape of ``matrix``."""
        return self._stacked("low")

    @property
    def high(self) -> Floats:
        """The upper ends of the intervals, in the shape of ``matrix``."""
        return self._stacked("high")

    @property
    def concentration(self) -> dict[float, Estimate]:
        """How few tokens carry 50 % and 90 % of the influence on the last prediction; the mean over prompts."""
        found = {}
        for share in SHARES:
            each = [prompt.concentration[share] for prompt in self.prompts]
            known = [one.value for one in each if np.isfinite(one.value)]
            ends = (float(np.mean([one.low for one in each])), float(np.mean([one.high for one in each])))
            value = float(np.mean(known)) if known else float("nan")
            interval = Interval(*ends, self.settings.level, "dataset", _METHOD, caveat=self.caveat)
            found[share] = Estimate(value, interval)
        return found

    @property
    def mark(self) -> str:
        """What is printed beside intervals that do not promise their coverage."""
        return f" ({self.caveat})" if self.caveat else ""

    def _stacked(self, name: str) -> Floats:
        if len(self.prompts) == 1:
            one: Floats = getattr(self.prompts[0], name)
            return one
        shapes = [prompt.values.shape for prompt in self.prompts]
        out = np.full((len(self.prompts), max(s[0] for s in shapes), max(s[1] for s in shapes)), np.nan)
        for number, prompt in enumerate(self.prompts):
            out[number, : shapes[number][0], : shapes[number][1]] = getattr(prompt, name)
        return out

    def __str__(self) -> str:
        lines = [f"{self.name}: {self.settings.response} of predictions, one token of {_prompts(self)} moved"]
        for number, prompt in enumerate(self.prompts[:_SHOWN]):
            lines += [f"  {line}" for line in _summary(prompt, "" if len(self) == 1 else f"prompt {number}: ")]
        if len(self) > _SHOWN:
            lines.append(f"  ... and {len(self) - _SHOWN} more prompts")
        lines += [f"  {line}" for line in concentration_lines(self.concentration, len(self) > 1)]
        lines += [f"  {line}" for line in self.settings.lines()]
        lines.append(f"  {self.passes:,} passes, {in_seconds(self.seconds)}; {_REASONS[self.stopped]}")
        lines.append(f"  intervals of all entries hold together: {self.settings.level:.0%}{self.mark}")
        lines += [f"  warning: {one}" for one in self.warnings] + [f"  note: {one}" for one in self.notes]
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Everything, as plain numbers and text for JSON."""
        return {
            "kind": self.kind,
            "version": self.version,
            "name": self.name,
            "prompts": [prompt.to_dict() for prompt in self.prompts],
            "concentration": {f"{share:g}": _written(one) for share, one in self.concentration.items()},
            "settings": asdict(self.settings),
            "passes": self.passes,
            "stopped": self.stopped,
            "nonfinite": self.nonfinite,
            "warnings": list(self.warnings),
            "notes": list(self.notes),
            **({"caveat": self.caveat} if self.caveat else {}),
            "seconds": round(self.seconds, 3),
            "provenance": self.provenance,
        }

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> "Influence":
        """What ``to_dict`` wrote."""
        rest = ("name", "passes", "stopped", "nonfinite", "warnings", "notes", "seconds", "provenance")
        return cls(
            prompts=[PromptInfluence.from_dict(prompt) for prompt in record["prompts"]],
            settings=InfluenceSettings(**record["settings"]),
            **{key: record[key] for key in rest},
            caveat=record.get("caveat", ""),
        )

    def save(self, path: str | Path) -> None:
        """Write to a JSON file, whole or not at all; ``jostle.load`` reads it."""
        write_text(path, json.dumps(self.to_dict(), indent=1, allow_nan=False) + "\n")

    def rows(self, of: str = "result") -> list[Row]:  # noqa: ARG002 - there is one table
        """A row for each entry of the matrices that was measured; the intervals hold together."""
        return [
            {
                "prompt": number,
                "token": i,
                "text": prompt.tokens[i],
                "place": j,
                "prediction": prompt.predictions[j],
                "value": float(prompt.values[i, j]),
                "low": float(prompt.low[i, j]),
                "high": float(prompt.high[i, j]),
                "draws": prompt.draws[i],
            }
            for number, prompt in enumerate(self.prompts)
            for i, j in np.argwhere(np.isfinite(prompt.values)).tolist()
        ]

    def numbers(self) -> dict[str, float]:
        """How few tokens carry the influence: a share of it by name; single entries would be too many."""
        return {f"{self.name}/tokens for {share:.0%}".replace("%", " percent"): one.value
                for share, one in self.concentration.items()}  # fmt: skip

    def plot(self, number: int = 0) -> "Figure":
        """The matrix of one prompt as a figure."""
        from jostle.figures.influence import influence_figure

        return influence_figure(self.prompts[number], self.settings.response)

    def report(self, path: str | Path) -> None:
        """Write an HTML page with the texts, shaded, and the matrices, whole or not at all."""
        from jostle.report.result import write_result

        write_result(self, path)

    def _repr_html_(self) -> str:
        """For notebooks: the texts, shaded by influence on the last prediction, and the matrices."""
        from jostle.figures.influence import influence_html

        return influence_html(self)


_SHOWN = 5  # prompts in a printed result
_STRONGEST = 5  # tokens of a prompt in a printed result


def _prompts(result: Influence) -> str:
    count = len(result)
    return f"a prompt of {len(result[0].tokens)} tokens" if count == 1 else f"each of {count} prompts"


def _summary(prompt: PromptInfluence, start: str) -> list[str]:
    """The tokens that matter most for the last prediction."""
    values, low, high = prompt.on()
    order = [i for i in np.argsort(-np.nan_to_num(values, nan=-1.0), kind="stable") if np.isfinite(values[i])]
    parts = [f"{prompt.tokens[i]!r} {values[i]:.3g} [{low[i]:.3g}, {high[i]:.3g}]" for i in order[:_STRONGEST]]
    return [f"{start}the last prediction, {prompt.predictions[-1]!r}, hangs on " + ", ".join(parts)]


def concentration_lines(found: dict[float, Estimate], is_mean: bool) -> list[str]:
    """How few tokens carry the influence, in words."""
    return [
        f"{share:.0%} of the influence on the last prediction is carried by "
        f"{'on average ' if is_mean else ''}{_count(one)}".replace("%", " %")
        for share, one in found.items()
    ]


def _count(one: Estimate) -> str:
    value = "no token" if np.isnan(one.value) else f"{one.value:g} token{'' if one.value == 1 else 's'}"
    return f"{value} [{one.low:g}, {one.high:g}]"


def _written(one: Estimate) -> dict[str, Any]:
    return {"value": None if np.isnan(one.value) else one.value, **one.interval.to_dict()}
