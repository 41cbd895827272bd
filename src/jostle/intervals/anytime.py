"""Intervals that hold at every stopping time: confidence sequences.

One may look after every draw and stop for any reason; with probability at least ``level`` the interval covers at all
times together. Pure functions of counts. Intervals for a sample size fixed beforehand, narrower, are in ``fixed``.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from jostle.intervals.fixed import Ends

Horizon = Callable[[NDArray[np.float64]], NDArray[np.float64]]

_BETS = 24
_HORIZON_SHARES = 8.0 ** -np.arange(5)
_HORIZON_WEIGHTS = np.array([0.8, 0.05, 0.05, 0.05, 0.05])


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
