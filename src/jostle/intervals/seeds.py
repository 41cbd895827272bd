"""Intervals for a comparison of two networks over a few training seeds, on the scale of logarithms.

Three seeds hardly tell how much seeds differ, but other networks do: ``PRIOR`` is the spread of log sensitivity over
seeds in all trained networks whose records are committed. Estimated by ``tools/spread.py``, which prints it again.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from jostle.intervals.fixed import Ends


@dataclass(frozen=True)
class Spread:
    """What is known beforehand of a network's spread over seeds: sigma^2 ~ freedom * std^2 / chi^2(freedom).

    Arguments:
        std: the typical standard deviation of the logarithm.
        freedom: how many degrees of freedom that knowledge is worth.
    """

    std: float
    freedom: float

    def moderated(self, variances: ArrayLike, counts: ArrayLike) -> NDArray[np.float64]:
        """(d0 s0^2 + (n - 1) s^2) / (d0 + n - 1), element by element: Smyth (2004), equation 5.

        >>> round(float(Spread(std=2.0, freedom=3.0).moderated(1.0, 4)), 6)
        2.5
        """
        v, n = np.asarray(variances, dtype=np.float64), np.asarray(counts, dtype=np.float64)
        moderated: NDArray[np.float64] = (self.freedom * self.std**2 + (n - 1) * v) / (self.freedom + n - 1)
        return moderated


PRIOR = Spread(std=0.14, freedom=2.8)


def careful_freedom(squares: ArrayLike, freedoms: ArrayLike) -> NDArray[np.float64]:
    """Degrees of freedom of a difference of two means; the first axis is that of the two sides.

    Half-way between the smaller of the two and those of Satterthwaite. Satterthwaite's come from the same few values
    as the variances: where the larger variance came out small by chance, they come out too large. With three values on
    each side and spreads of 4 to 1 the error was .0283 instead of .025; half-way it is .0221 (docs/verdicts.md).

    Arguments:
        squares: squared standard errors of the two means.
        freedoms: their degrees of freedom.
    """
    s, f = np.asarray(squares, dtype=np.float64), np.asarray(freedoms, dtype=np.float64)
    total, least = s.sum(axis=0), f.min(axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        satterthwaite = total**2 / (s**2 / f).sum(axis=0)
    freedom: NDArray[np.float64] = np.where(total > 0, (satterthwaite + least) / 2, least)
    return freedom


def welch_reach(variances: ArrayLike, counts: ArrayLike, level: float) -> NDArray[np.float64]:
    """t sqrt(s_1^2 / n_1 + s_2^2 / n_2), by ``careful_freedom``; the first axis is that of the two samples."""
    v, n = np.asarray(variances, dtype=np.float64), np.asarray(counts, dtype=np.float64)
    squares = v / n
    quantile = special.stdtrit(careful_freedom(squares, n - 1), (1 + level) / 2)
    reach: NDArray[np.float64] = quantile * np.sqrt(squares.sum(axis=0))
    return reach


def moderated_reach(variances: ArrayLike, counts: ArrayLike, level: float, prior: Spread) -> NDArray[np.float64]:
    """The same with moderated variances and d0 + n - 1 degrees of freedom, for the smaller n.

    Satterthwaite's degrees of freedom would be too many: both variances share the same prior.
    """
    v, n = np.asarray(variances, dtype=np.float64), np.asarray(counts, dtype=np.float64)
    total = (prior.moderated(v, n) / n).sum(axis=0)
    freedom = prior.freedom + (n - 1).min(axis=0)
    reach: NDArray[np.float64] = special.stdtrit(freedom, (1 + level) / 2) * np.sqrt(total)
    return reach


def guarded_reach(variances: ArrayLike, counts: ArrayLike, level: float, prior: Spread = PRIOR) -> NDArray[np.float64]:
    """The wider of ``welch_reach`` and ``moderated_reach``.

    The moderated one protects against a few seeds that agree by chance, and holds its level if spreads are as the
    prior says. Where all networks of a study spread four times as much, its error alone was .075 instead of .025. The
    other one knows no prior and guards against that.

    Arguments:
        variances: (2, ...) unbiased sample variances.
        counts: size of both samples or of each, at least 2.
        level: of the two-sided interval.
        prior: what is known beforehand of the spreads.
    """
    v = np.asarray(variances, dtype=np.float64)
    n = np.broadcast_to(np.asarray(counts, dtype=np.float64), (2,)).reshape(2, *(1,) * (v.ndim - 1))
    return np.maximum(welch_reach(v, n, level), moderated_reach(v, n, level, prior))


def difference_of_means(first: Sequence[float], second: Sequence[float], level: float, prior: Spread = PRIOR) -> Ends:
    """The interval for the difference of the means of two independent samples of logarithms, by ``guarded_reach``.

    >>> low, high = difference_of_means([0.0, 0.1, 0.2], [1.0, 1.1, 1.2], 0.95)
    >>> round(low, 3), round(high, 3)
    (-1.265, -0.735)
    """
    samples = [np.asarray(part, dtype=np.float64) for part in (first, second)]
    value = float(samples[0].mean() - samples[1].mean())
    variances, counts = [one.var(ddof=1) for one in samples], [len(one) for one in samples]
    reach = float(guarded_reach(variances, counts, level, prior))
    return value - reach, value + reach


def fitted_spread(variances: Sequence[float], counts: Sequence[int]) -> Spread:
    """The prior that sample variances of many networks suggest, by the moments of their logarithms.

    With e = log s^2 - digamma((n - 1) / 2) + log((n - 1) / 2), the mean of e is log s0^2 - digamma(d0 / 2) + log(d0 /
    2), and its variance is trigamma(d0 / 2) beyond the mean of trigamma((n - 1) / 2): Smyth (2004), section 6.2.

    Arguments:
        variances: of each network, above 0.
        counts: of its seeds, at least 2.
    """
    half = (np.asarray(counts, dtype=np.float64) - 1) / 2
    e = np.log(np.asarray(variances, dtype=np.float64)) - special.digamma(half) + np.log(half)
    excess = float(e.var(ddof=1) - special.polygamma(1, half).mean())
    if excess <= 0:
        return Spread(math.exp(float(e.mean()) / 2), math.inf)
    half_freedom = _inverse_trigamma(excess)
    log_square = float(e.mean() + special.digamma(half_freedom) - math.log(half_freedom))
    return Spread(math.exp(log_square / 2), 2 * half_freedom)


def _inverse_trigamma(value: float) -> float:
    """x with trigamma(x) = value, by bisection: trigamma falls from infinity to 0.

    >>> round(_inverse_trigamma(math.pi**2 / 6), 9)
    1.0
    """
    low, high = 1e-6, 1e9
    for _ in range(200):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if special.polygamma(1, middle) > value else (low, middle)
    return middle


POWER = 0.8  # with which a number of seeds is to decide
MOST_TIMES = 60  # as many beyond which no number is given


def count_needed(distance: float, error: float, freedom: float, count: int, level: float) -> int | None:
    """How many seeds would decide with probability .8, if the number and its spread stay as they are.

    The smallest n with distance >= (t_{(1 + level) / 2} + t_{.8}) * error * sqrt(count / n), with freedom * (n - 1) /
    (count - 1) degrees of freedom; None beyond 60 times as many. An order of magnitude: three seeds know their own
    spread to a factor of 2 or 3.

    >>> count_needed(distance=0.5, error=0.3, freedom=3.0, count=3, level=0.95)
    10

    Arguments:
        distance: from the number to the bound that it must leave.
        error: standard error of the number.
        freedom: its degrees of freedom.
        count: seeds that it was measured with.
        level: of the interval that decides.
    """
    for times in np.unique(np.geomspace(count, MOST_TIMES * count, 400).astype(np.int64)):
        n = max(int(times), count)
        degrees = freedom * (n - 1) / max(count - 1, 1)
        quantiles = special.stdtrit(degrees, (1 + level) / 2) + special.stdtrit(degrees, POWER)
        if distance >= quantiles * error * math.sqrt(count / n):
            return n
    return None
