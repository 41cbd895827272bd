"""Means over independent draws of the weights, with their intervals.

A draw moves the weights for all inputs together. So draws, and not inputs, are the independent units of an interval
for exactly the inputs given; ``crossed_interval`` is for inputs that were drawn at random too.
"""

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from jostle.base.estimate import Estimate, Interval
from jostle.intervals.fixed import bounded_mean, histogram, student

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class MeanOverDraws(Estimate):
    """The mean over draws of the weights of one number for each draw.

    Arguments:
        value: the mean.
        interval: for the mean over all possible draws, on exactly the inputs given.
        per_draw: (draws,), the mean over the inputs for each draw.
    """

    per_draw: Floats = field(repr=False)

    def to_dict(self) -> dict[str, Any]:
        """A plain dictionary, for JSON."""
        return {"value": self.value, **self.interval.to_dict(), "per_draw": self.per_draw.tolist()}


def real_mean(per_draw: Floats, level: float, *, is_exact: bool = False, least: float = -math.inf) -> MeanOverDraws:
    """The mean of real numbers with Student's t interval. Asymptotic: too narrow if a few draws dominate the mean.

    >>> mean = real_mean(np.array([1.0, 2.0, 3.0]), 0.95)
    >>> mean.value, round(mean.low, 4), round(mean.high, 4)
    (2.0, -0.4841, 4.4841)

    Arguments:
        per_draw: (draws,).
        level: coverage.
        is_exact: nothing is random, so the draws cannot differ: the interval has width 0. Otherwise equal draws say
            nothing about their spread, and the interval is open.
        least: the smallest possible mean; the interval ends there.
    """
    value = math.fsum(per_draw) / len(per_draw)
    if is_exact:
        return MeanOverDraws(value, Interval(value, value, level, "dataset", "nothing is random"), per_draw)
    variance = float(per_draw.var(ddof=1))
    if variance == 0:
        ends, method = (least, math.inf), "open: the draws are all equal and do not show their spread"
    else:
        low, high = student(value, variance, len(per_draw), level)
        ends, method = (max(float(low), least), float(high)), f"Student's t over {len(per_draw)} draws, asymptotic"
    return MeanOverDraws(value, Interval(*ends, level, "dataset", method), per_draw)


def share_mean(per_draw: Floats, level: float, *, is_exact: bool = False) -> MeanOverDraws:
    """The mean of shares between 0 and 1.

    The interval is Student's t, cut to [0, 1], if every draw changes something and none changes everything. Otherwise
    changes are too rare, or too common, for Student's t, and the interval is Gaffke's bound, which holds for any
    distribution on [0, 1]: 5 draws without a change leave [0, 0.52] at level 0.95.

    >>> share_mean(np.zeros(5), 0.95).interval.method
    "Gaffke's bound over 5 draws"
    >>> round(share_mean(np.zeros(5), 0.95).high, 4)
    0.5218
    """
    value = math.fsum(per_draw) / len(per_draw)
    is_inside = bool(((per_draw > 0) & (per_draw < 1)).all()) and float(per_draw.var()) > 0
    if is_exact or is_inside:
        mean = real_mean(per_draw, level, is_exact=is_exact, least=0.0)
        ends, method = (mean.low, min(mean.high, 1.0)), mean.interval.method
    else:
        ends, method = bounded_mean(*histogram(per_draw), level), f"Gaffke's bound over {len(per_draw)} draws"
    return MeanOverDraws(value, Interval(*ends, level, "dataset", method), per_draw)


def crossed_interval(
    per_draw: Floats, per_input: Floats, level: float, *, is_exact: bool = False, least: float = -math.inf
) -> Interval:
    """An interval for the mean over all possible draws of the weights and over the population of the inputs.

    Every draw is used with every input. With y_ij for draw i of D and input j of N, the variance of the grand mean is
    s_D^2 / D + s_N^2 / N + s_DN^2 / DN. Its estimate

        V = var(means over inputs) / D + var(means over draws) / N

    counts the last term twice, so it is a little too large. The interval is mean -+ t sqrt(V), with Satterthwaite's
    degrees of freedom: asymptotic, as Student's.

    >>> found = crossed_interval(np.array([1.0, 2.0, 3.0]), np.array([2.0, 2.0, 2.0]), 0.95)
    >>> round(found.low, 4), round(found.high, 4)  # inputs that do not differ leave Student's t over draws
    (-0.4841, 4.4841)

    Arguments:
        per_draw: (D,), the mean over the inputs for each draw.
        per_input: (N,), the mean over the draws for each input.
        level: coverage.
        is_exact: nothing is random: the interval has width 0.
        least: the smallest possible mean; the interval ends there.
    """
    draws, inputs = len(per_draw), len(per_input)
    value = math.fsum(per_draw) / draws
    if is_exact:
        return Interval(value, value, level, "population", "nothing is random")
    if inputs < 2:
        return Interval(least, math.inf, level, "population", "open: a single input does not show its spread")
    parts = np.array([per_draw.var(ddof=1) / draws, per_input.var(ddof=1) / inputs])
    variance = float(parts.sum())
    if variance == 0:
        return Interval(least, math.inf, level, "population", "open: all draws and inputs are equal")
    freedom = variance**2 / float((parts**2 / np.array([draws - 1, inputs - 1])).sum())
    reach = float(special.stdtrit(freedom, (1 + level) / 2)) * math.sqrt(variance)
    method = f"Satterthwaite's t over {draws} draws and {inputs} inputs, asymptotic"
    return Interval(max(value - reach, least), value + reach, level, "population", method)
