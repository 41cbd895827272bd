"""Intervals for samples that are looked at while they grow. Pure functions of counts.

Confidence sequences (``bernoulli``, ``bounded``, ``asymptotic``) hold at every stopping time: one may look after every
draw and stop for any reason, and with probability at least ``level`` the interval covers at all times together.
Intervals for a sample size fixed beforehand, which are narrower, are in ``fixed``.

``stopped_proportion`` is the interval of a sample that stopped because that interval was narrow enough. A confidence
sequence is valid whatever made one stop, and pays for that with about 2.5 times the draws of a fixed sample. The rule
"stop when the Clopper-Pearson interval is narrow enough" is a special one: near its stopping time the sample size
hardly depends on the estimate any more (Chow and Robbins 1965), so the plain interval is almost right, and a slightly
raised level makes it right for every p (Frey 2010, "Fixed-width sequential confidence intervals for a proportion").
Both intervals are used together, with alpha = 1 - level split between them:

    a tenth of alpha     a confidence sequence, reported if something else ends the sampling
    the rest             the Clopper-Pearson interval at level 1 - 0.6 alpha, reported where it is first narrow enough

The factor 0.6 is calibrated, not derived: the exact coverage, by dynamic programming over all paths, is at least
1 - 0.9 alpha for levels from 0.8 to 0.99, half-widths from 0.002 to 0.2, relative precisions from 0.1 to 0.5, looks at
every draw or seldom, and p on a fine grid (tests/intervals/test_sequential.py). The price is about 1.3 times the draws
of a fixed sample.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from jostle.intervals.fixed import Ends, clopper_pearson

Horizon = Callable[[NDArray[np.float64]], NDArray[np.float64]]

_BETS = 24
_HORIZON_SHARES = 8.0 ** -np.arange(5)
_HORIZON_WEIGHTS = np.array([0.8, 0.05, 0.05, 0.05, 0.05])
_SEQUENCE_SHARE = 0.1
_PEEKED_SHARE = 0.6


def bernoulli(successes: int, trials: int, level: float, horizon: Horizon) -> Ends:
    """A confidence sequence for a proportion: a beta-binomial mixture, tuned for every candidate separately.

    For each candidate p, with s successes in n trials,

        M_n(p) = B(k p + s, k (1 - p) + n - s) / B(k p, k (1 - p)) / (p^s (1 - p)^(n - s))

    is a martingale that starts at 1 if p is true, so P[M_n(p) >= 1 / alpha for some n] <= alpha (Ville). The interval
    is {p: M_n(p) < 1 / alpha}. The prior weight k decides at which n the interval is narrowest. A CS is a family of
    tests, one for each p, so k may depend on p: we take k = horizon(p) / c, where horizon(p) is the sample size at
    which sampling is expected to stop if p is the truth, and c = -2 log alpha + log(1 - 2 log alpha) puts the optimum
    of the normal mixture there. No pilot is needed, and the price over a fixed sample is about 2.5 times the draws,
    against 4 to 5 for one k for all p. One fifth of the weight goes to horizons 8, 64, 512 and 4096 times shorter, so
    that an early stop is not punished.

    Source: mixture and inequality as in Howard, Ramdas, McAuliffe and Sekhon (2021); tuning by candidate is ours.

    >>> low, high = bernoulli(5, 1000, 0.95, lambda p: np.full_like(p, 1000.0))
    >>> round(low, 4), round(high, 4)
    (0.0006, 0.015)
    """
    if trials == 0:
        return 0.0, 1.0
    log_threshold = -np.log1p(-level)
    tuning = 2 * log_threshold + np.log1p(2 * log_threshold)

    def accepted(p: NDArray[np.float64]) -> NDArray[np.bool_]:
        prior = np.maximum(horizon(p) / tuning * _HORIZON_SHARES[:, None], 1e-3)  # (shares, candidates)
        a, b = prior * p, prior * (1 - p)
        log_mixtures = special.betaln(a + successes, b + trials - successes) - special.betaln(a, b)
        log_mixture = special.logsumexp(log_mixtures, b=_HORIZON_WEIGHTS[:, None], axis=0)
        log_likelihood = special.xlogy(successes, p) + special.xlog1py(trials - successes, -p)
        return np.asarray(log_mixture - log_likelihood < log_threshold)

    return _accepted_hull(accepted, successes / trials, (0.0, 1.0))


def bounded(values: ArrayLike, counts: ArrayLike, level: float, bounds: Ends) -> Ends:
    """A confidence sequence for the mean of variables between two bounds with few distinct values, by betting.

    For a candidate m the capital of a bet lambda is prod_t (1 + lambda (x_t - m)), which is a martingale if m is the
    mean; the average over 48 bets, both signs, log-spaced up to the largest that cannot go bankrupt, is one too, and
    the interval holds the m whose capital stays below 1 / alpha. With few distinct values the capital is a function of
    their counts. Source: Waudby-Smith and Ramdas (2024), "Estimating means of bounded random variables by betting".

    Arguments:
        values: distinct values that can occur.
        counts: how often each has been observed so far.
        level: coverage over all times together.
        bounds: no observation can lie outside.
    """
    x, c = np.asarray(values, dtype=np.float64), np.asarray(counts, dtype=np.float64)
    if c.sum() == 0:
        return bounds
    log_threshold = -np.log1p(-level)
    shares = np.geomspace(1e-4, 0.9, _BETS)

    def accepted(m: NDArray[np.float64]) -> NDArray[np.bool_]:
        below = np.maximum(m - bounds[0], 1e-12)[:, None]
        above = np.maximum(bounds[1] - m, 1e-12)[:, None]
        bets = np.concatenate([shares / below, -shares / above], axis=1)  # (candidates, bets)
        log_capital = np.log1p(bets[:, :, None] * (x - m[:, None, None])) @ c
        return np.asarray(special.logsumexp(log_capital, axis=1) - np.log(2 * _BETS) < log_threshold)

    return _accepted_hull(accepted, float(x @ c / c.sum()), bounds)


def asymptotic(mean: float, variance: float, count: int, level: float, horizon: float) -> Ends:
    """A confidence sequence for the mean of unbounded variables, valid for large samples only.

    mean -+ sqrt(variance) * sqrt(2 (n r + 1) / (n^2 r) * log(sqrt(n r + 1) / alpha)), with r tuned so that it is
    narrowest near ``horizon`` draws. Nothing exact exists without bounds. Source: Waudby-Smith, Arbour, Sinha, Kennedy
    and Ramdas (2024), "Time-uniform central limit theory and asymptotic confidence sequences".
    """
    if count < 2:
        return -np.inf, np.inf
    log_threshold = -np.log1p(-level)
    r = (2 * log_threshold + np.log1p(2 * log_threshold)) / max(horizon, 1.0)
    spread = 2 * (count * r + 1) / (count**2 * r) * (np.log(count * r + 1) / 2 + log_threshold)
    reach = float(np.sqrt(variance * spread))
    return mean - reach, mean + reach


def sequence_level(level: float) -> float:
    """The level of the confidence sequence that runs beside the stopping rule."""
    return 1 - _SEQUENCE_SHARE * (1 - level)


def stopped_proportion(successes: int, trials: int, level: float) -> Ends:
    """The interval that the stopping rule looks at, and the answer if it stops there.

    >>> low, high = stopped_proportion(24, 4800, 0.95)
    >>> round(low, 4), round(high, 4)
    (0.0031, 0.0077)
    """
    low, high = clopper_pearson(successes, trials, 1 - _PEEKED_SHARE * (1 - level))
    return float(low), float(high)


def _accepted_hull(
    accepted: Callable[[NDArray[np.float64]], NDArray[np.bool_]], centre: float, bounds: Ends, rounds: int = 4
) -> Ends:
    """The smallest interval that holds every accepted candidate; ``centre`` is always one of them.

    A grid that is dense near the centre and near the bounds finds the outermost accepted points; each end is then
    refined between the last rejected and the first accepted point, and the rejected side is returned, so that rounding
    errs outward.
    """
    lower, upper = bounds
    shares = np.geomspace(1e-6, 1.0, 60)
    left = centre - (centre - lower) * shares
    right = centre + (upper - centre) * shares

    def end(path: NDArray[np.float64]) -> float:
        """The first point of ``path`` beyond which every candidate is rejected."""
        for _ in range(rounds):
            inside = np.flatnonzero(accepted(path))
            last = int(inside[-1]) if len(inside) else 0
            if last == len(path) - 1:
                return float(path[-1])
            path = np.linspace(path[last], path[last + 1], 24)
        return float(path[-1])

    with np.errstate(divide="ignore", invalid="ignore"):
        low = end(np.concatenate([[centre], left])) if centre > lower else lower
        high = end(np.concatenate([[centre], right])) if centre < upper else upper
    return low, high
