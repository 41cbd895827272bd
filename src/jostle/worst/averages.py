"""Means over inputs, with an interval for the population they came from."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from jostle.estimates.estimate import Floats, plain
from jostle.intervals import Interval, MeanWithInterval
from jostle.intervals.fixed import bounded_mean, histogram, student


@dataclass(frozen=True, eq=False)
class MeanOverInputs(MeanWithInterval):
    """The mean of one number for each input.

    Arguments:
        value: the mean over the inputs given; for them it is exact.
        interval: for the mean over the population that the inputs are a random sample of.
        per_input: (N,), NaN where an input has no number.
    """

    per_input: Floats = field(repr=False)

    def to_dict(self) -> dict[str, Any]:
        """A plain dictionary, for JSON."""
        return {"value": self.value, **self.interval.to_dict(), "per_input": plain(self.per_input)}


def mean_over_inputs(per_input: Floats, level: float, *, is_share: bool) -> MeanOverInputs:
    """The mean of ``per_input`` with its interval: Gaffke's bound for shares, Student's t otherwise, from 0 on.

    >>> mean = mean_over_inputs(np.array([1.0, 0.0, 0.0, 0.0]), 0.95, is_share=True)
    >>> mean.value, round(mean.low, 4), round(mean.high, 4)  # Clopper and Pearson's, for shares of 0 and 1
    (0.25, 0.0063, 0.8059)

    Arguments:
        per_input: (N,), at least one of them finite.
        level: coverage.
        is_share: whether each lies between 0 and 1.
    """
    known = per_input[np.isfinite(per_input)]
    value = float(known.mean())
    if is_share:
        ends, method = bounded_mean(*histogram(known), level), "Gaffke's bound over inputs"
    else:
        variance = known.var(ddof=1) if len(known) > 1 else 0.0
        low, high = student(value, variance, len(known), level)
        ends, method = (max(float(low), 0.0), float(high)), "Student's t over inputs"
    return MeanOverInputs(value, Interval(*ends, level, "population", method), per_input)
