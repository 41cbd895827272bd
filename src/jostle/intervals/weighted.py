"""Intervals for proportions that are estimated from weighted draws. Pure functions of weighted counts.

Where cells are drawn with other probabilities than they have, a success of a cell counts with a weight w = wanted
probability / probability drawn. The mean of w Y is then an unbiased estimate of the proportion, whatever the weights,
and successes at a given weight are rare: their numbers are nearly Poisson.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from jostle.intervals.anytime import peeked_level


def weighted_poisson(
    total: ArrayLike, squares: ArrayLike, largest: ArrayLike, draws: ArrayLike, level: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """An interval for E[w Y] from the successes of n weighted draws, element by element: Fay and Feuer (1997).

    With y = sum of w Y / n and v = sum of w^2 Y / n^2, the ends are quantiles of gamma distributions with mean y and
    variance v, and for the upper end with one more success of the largest weight W:

        low  = quantile_{alpha / 2} of Gamma(mean y, variance v)
        high = quantile_{1 - alpha / 2} of Gamma(mean y + W / n, variance v + W^2 / n^2)

    If all weights are equal it is the exact interval for a Poisson mean. Otherwise it is conservative as a rule; that
    is not proven. Source: Fay and Feuer (1997), "Confidence intervals for directly standardized rates", Statistics in
    Medicine 16.

    >>> low, high = weighted_poisson(10, 10, 1, 1000, 0.95)
    >>> round(float(low), 5), round(float(high), 5)
    (0.0048, 0.01839)

    Arguments:
        total: sum of w over the successes.
        squares: sum of w^2 over the successes.
        largest: the largest weight that a draw can have.
        draws: n.
        level: coverage.
    """
    n = np.asarray(draws, dtype=np.float64)
    y, v, most = np.asarray(total) / n, np.asarray(squares) / n**2, np.asarray(largest) / n
    tail = (1 - level) / 2
    with np.errstate(invalid="ignore", divide="ignore"):
        low = np.where(y > 0, special.gammaincinv(y**2 / v, tail) * v / y, 0.0)
    upper, spread = y + most, v + most**2
    high = special.gammaincinv(upper**2 / spread, 1 - tail) * spread / upper
    return low, high


def stopped_weighted(
    total: ArrayLike,
    squares: ArrayLike,
    largest: ArrayLike,
    draws: ArrayLike,
    level: float,
    *,
    is_relative: bool = False,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The same for a sample that stops when this interval is narrow enough, at the raised level of such intervals.

    ``is_relative`` as for ``anytime.stopped_proportion``, for which the level was chosen; that it suffices here too is
    simulated, with weights that have little to do with the rates among them:
    tests/estimates/test_adaptive_coverage.py.
    """
    return weighted_poisson(total, squares, largest, draws, peeked_level(level, is_relative=is_relative))
