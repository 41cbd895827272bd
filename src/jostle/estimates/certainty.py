"""Is the model sure? Whether predictions that flip easily are those that are wrong.

``Certainty`` holds the answer; ``measure(..., labels=...)`` makes it from the flips of each input. It knows no model.
"""

import itertools
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from jostle.base.errors import UsageError
from jostle.base.estimate import Estimate, Interval
from jostle.base.table import Row, Tabular
from jostle.intervals.fixed import clopper_pearson
from jostle.intervals.ranks import auroc, auroc_difference, auroc_interval

Floats = NDArray[np.float64]

EDGES = (0.0, 0.05, 0.1, 0.2, 0.5, 1.0)  # of bins of flip rates, beside a bin for none


@dataclass(frozen=True)
class Bin:
    """Inputs of about the same flip rate, and how many of their predictions are wrong.

    Arguments:
        above, most: the flip rates, above ``above`` and at most ``most``; both 0 for inputs that never flip.
        inputs, wrong: how many there are, and how many are predicted wrong.
        flips: their mean flip rate.
        low, high: interval for the probability that such a prediction is wrong (Clopper-Pearson).
    """

    above: float
    most: float
    inputs: int
    wrong: int
    flips: float
    low: float
    high: float

    @property
    def share(self) -> float:
        """The share of wrong predictions."""
        return self.wrong / self.inputs

    @property
    def label(self) -> str:
        """The flip rates in words."""
        return "never flips" if self.most == 0 else f"flips in up to {self.most:.0%}".replace("%", " %")


@dataclass(frozen=True, eq=False)
class Certainty(Tabular):
    """Flip rates of single inputs beside whether the model is right about them.

    ``auroc`` is the probability that a wrong prediction has a higher flip rate than a right one, ties counting half:
    1/2 if flips say nothing about errors. Intervals are for the population that the inputs came from, inputs being
    independent. A flip rate from few draws is noisy, and noise brings the AUROC closer to 1/2.

    Arguments:
        auroc: of the flip rate, for finding wrong predictions.
        confidence: of 1 - the model's largest probability (softmax or sigmoid of its outputs), on the same inputs.
        gain: auroc - confidence, with a paired interval (DeLong).
        accuracy: the share of right predictions.
        inputs, wrong: how many have a flip rate, and how many of these are predicted wrong.
        draws: the median number of draws behind a flip rate.
        bins: the share of wrong predictions by flip rate.
    """

    auroc: Estimate
    confidence: Estimate
    gain: Estimate
    accuracy: Estimate
    inputs: int
    wrong: int
    draws: float
    bins: tuple[Bin, ...] = field(repr=False)

    tables: ClassVar[tuple[str, ...]] = ("result", "bins")

    def rows(self, of: str = "result") -> list[Row]:
        """The numbers by name; or the share of wrong predictions by flip rate."""
        if of == "result":
            names = ("auroc", "confidence", "gain", "accuracy")
            return [getattr(self, name).row(quantity=name) for name in names]
        return [
            {
                "flips_above": each.above,
                "flips_at_most": each.most,
                "value": each.share,
                "low": each.low,
                "high": each.high,
                "inputs": each.inputs,
                "wrong": each.wrong,
            }
            for each in self.bins
        ]

    @property
    def verdict(self) -> str:
        """What the interval of ``auroc`` says, in a sentence."""
        if not self.has_both:
            return f"all {self.inputs:,} predictions are {'wrong' if self.wrong else 'right'}: nothing to tell apart"
        if self.auroc.low > 0.5:
            return "a sensitive prediction tends to be a wrong one"
        if self.auroc.high < 0.5:
            return "a sensitive prediction tends to be a right one"
        return "flips do not tell wrong predictions from right ones here"

    def lines(self) -> list[str]:
        """The answer as lines of text."""
        at = f"{self.accuracy.interval.level:.0%}"
        if not self.has_both:
            return [self.verdict]
        return [
            f"{self.wrong:,} of {self.inputs:,} predictions are wrong; {self.verdict}",
            f"AUROC of the flip rate for errors {_text(self.auroc)}, of the model's own confidence "
            f"{_text(self.confidence)}; difference {self.gain.value:+.3f} "
            f"[{self.gain.low:+.3f}, {self.gain.high:+.3f}] ({at}, population)",
        ]

    @property
    def has_both(self) -> bool:
        """Whether some predictions are right and some are wrong; only then is there something to tell apart."""
        return 0 < self.wrong < self.inputs

    def __str__(self) -> str:
        rows = [
            f"  {each.label:<22} {each.inputs:>7,} inputs   wrong {each.share:.3f} [{each.low:.3f}, {each.high:.3f}]"
            for each in self.bins
        ]
        return "\n".join([*self.lines(), *rows])

    def to_dict(self) -> dict[str, Any]:
        """A plain dictionary, for JSON."""
        named = {name: _plain(getattr(self, name)) for name in ("auroc", "confidence", "gain", "accuracy")}
        counts = {name: getattr(self, name) for name in ("inputs", "wrong", "draws")}
        return {**named, **counts, "verdict": self.verdict, "bins": [asdict(each) for each in self.bins]}

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> "Certainty":
        """What ``to_dict`` wrote."""
        named: dict[str, Any] = {
            name: Estimate(
                math.nan if record[name]["value"] is None else record[name]["value"],
                Interval.from_dict("population", record[name]),
            )
            for name in ("auroc", "confidence", "gain", "accuracy")
        }
        counts = {name: record[name] for name in ("inputs", "wrong", "draws")}
        return cls(**named, **counts, bins=tuple(Bin(**each) for each in record["bins"]))


def find_certainty(
    flips: Floats, is_wrong: NDArray[np.bool_], doubt: Floats, level: float, draws: float = math.nan
) -> Certainty:
    """Whether sensitive predictions tend to be wrong.

    Arguments:
        flips: (N,) the flip rate of each input; NaN for inputs without one, which are left out.
        is_wrong: (N,) whether its prediction is wrong.
        doubt: (N,) 1 - the model's own largest probability.
        level: of the intervals.
        draws: the median number of draws behind a flip rate.
    """
    seen = np.isfinite(flips)
    if not seen.any():
        raise UsageError("no input has a flip rate, so nothing can be said about its certainty")
    flips, is_wrong, doubt = flips[seen], np.asarray(is_wrong, dtype=bool)[seen], doubt[seen]
    count, wrong = len(flips), int(is_wrong.sum())
    ends = [float(end) for end in clopper_pearson(count - wrong, count, level)]
    accuracy = _estimate((count - wrong) / count, ends[0], ends[1], level, "Clopper-Pearson")
    areas = [_area(scores, is_wrong, level) for scores in (flips, doubt)]
    gain = _estimate(*auroc_difference(flips, doubt, is_wrong, level), level, "DeLong")
    return Certainty(areas[0], areas[1], gain, accuracy, count, wrong, float(draws), _bins(flips, is_wrong, level))


def _area(scores: Floats, is_wrong: NDArray[np.bool_], level: float) -> Estimate:
    wrong = int(is_wrong.sum())
    value = auroc(scores, is_wrong)
    low, high = auroc_interval(value, wrong, len(scores) - wrong, level)
    return _estimate(value, low, high, level, "Newcombe's method 5")


def _bins(flips: Floats, is_wrong: NDArray[np.bool_], level: float, edges: Sequence[float] = EDGES) -> tuple[Bin, ...]:
    found = []
    for above, most in [(-1.0, 0.0), *itertools.pairwise(edges)]:
        here = (flips > above) & (flips <= most)
        inputs, wrong = int(here.sum()), int(is_wrong[here].sum())
        if inputs:
            low, high = (float(end) for end in clopper_pearson(wrong, inputs, level))
            found.append(Bin(max(above, 0.0), most, inputs, wrong, float(flips[here].mean()), low, high))
    return tuple(found)


def _estimate(value: float, low: float, high: float, level: float, method: str) -> Estimate:
    return Estimate(value, Interval(low, high, level, "population", method))


def _text(estimate: Estimate) -> str:
    return f"{estimate.value:.3f} [{estimate.low:.3f}, {estimate.high:.3f}]"


def _plain(estimate: Estimate) -> dict[str, Any]:
    value = estimate.value if math.isfinite(estimate.value) else None
    return {"value": value, **estimate.interval.to_dict()}
