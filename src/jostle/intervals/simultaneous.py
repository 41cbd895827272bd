"""Confidence sequences for many means at once, as for the entries of a matrix. Pure functions of arrays.

Each function takes the error ``alpha`` of one entry. With alpha = (1 - level) / entries, the intervals of all entries
hold together, and at all times, with probability at least ``level`` (Bonferroni). So one may look at all of them after
every draw, and decide by them which entry is drawn next: an interval counts the draws of its own entry, which are
independent of each other however many there will be.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

Floats = NDArray[np.float64]
Inside = Callable[[Floats], NDArray[np.bool_]]

_HALVINGS = 52
_PRIOR = 0.5


def bounded_means(sums: ArrayLike, counts: ArrayLike, alpha: float) -> tuple[Floats, Floats]:
    """Confidence sequences for means of variables between 0 and 1, shares of flips among them.

    For a candidate p, with sum s of n draws,

        M_n(p) = B(s + 1/2, n - s + 1/2) / B(1/2, 1/2) / (p^s (1 - p)^(n - s))

    is a martingale that starts at 1 if the draws are 0 or 1 with mean p: a mixture of likelihood ratios with weight
    Beta(1/2, 1/2). For draws between 0 and 1 it is a supermartingale, since t^x u^(1 - x) is convex in x, and so at
    most x t + (1 - x) u. By Ville's inequality it stays below 1 / alpha at all times with probability 1 - alpha. It is
    convex in p, so the candidates below 1 / alpha are an interval. Source: Robbins (1970), "Statistical methods related
    to the law of the iterated logarithm".

    >>> low, high = bounded_means([5, 0], [100, 100], 0.05)
    >>> low.round(3).tolist(), high.round(3).tolist()
    ([0.007, 0.0], [0.156, 0.057])

    Arguments:
        sums: of the draws of each entry, any shape.
        counts: number of draws of each entry, of a shape that fits.
        alpha: error of each entry.
    """
    s, n = np.broadcast_arrays(np.asarray(sums, dtype=np.float64), np.asarray(counts, dtype=np.float64))
    mixture = special.betaln(s + _PRIOR, n - s + _PRIOR) - special.betaln(_PRIOR, _PRIOR)
    with np.errstate(invalid="ignore"):
        centre = np.where(n > 0, s / np.maximum(n, 1), 0.5)

    def is_inside(p: Floats) -> NDArray[np.bool_]:
        return np.asarray(mixture - special.xlogy(s, p) - special.xlog1py(n - s, -p) < -np.log(alpha))

    return _end(is_inside, centre, np.zeros_like(centre)), _end(is_inside, centre, np.ones_like(centre))


def _end(is_inside: Inside, inside: Floats, outside: Floats) -> Floats:
    """The end of each interval between a candidate inside and a bound; rounding errs outward."""
    at_bound = is_inside(outside)
    inner, outer = inside, outside
    for _ in range(_HALVINGS):
        middle = (inner + outer) / 2
        holds = is_inside(middle)
        inner, outer = np.where(holds, middle, inner), np.where(holds, outer, middle)
    return np.where(at_bound, outside, outer)


def means(
    sums: ArrayLike, squares: ArrayLike, counts: ArrayLike, alpha: float, horizon: float
) -> tuple[Floats, Floats]:
    """Confidence sequences for means of unbounded variables, valid for large samples only.

    The formula of ``anytime.asymptotic``, for arrays. Nothing exact exists without bounds.

    Arguments:
        sums, squares: sums of the draws of each entry and of their squares.
        counts: number of draws of each entry, at least 2.
        alpha: error of each entry.
        horizon: the number of draws at which intervals are narrowest.
    """
    total, second, n = (np.asarray(part, dtype=np.float64) for part in (sums, squares, counts))
    mean = total / n
    variance = np.maximum(second - n * mean**2, 0.0) / np.maximum(n - 1, 1)
    threshold = -np.log(alpha)
    r = (2 * threshold + np.log1p(2 * threshold)) / horizon
    spread = 2 * (n * r + 1) / (n**2 * r) * (np.log(n * r + 1) / 2 + threshold)
    reach = np.sqrt(variance * spread)
    return mean - reach, mean + reach


def tokens_that_carry(share: float, low: ArrayLike, high: ArrayLike) -> tuple[int, int]:
    """The fewest numbers that make up ``share`` of the sum of all, if each lies between its ends: (at least, at most).

    A set S of k numbers can make up the share for some values within the ends if those of S at their upper and the
    others at their lower ends do, and surely does so if those of S at their lower and the others at their upper ends
    do. Which S is best is told by one score for each number, so both bounds are found by sorting.

    >>> tokens_that_carry(0.5, [0.5, 0.1, 0.1], [0.6, 0.2, 0.2])
    (1, 1)

    Arguments:
        share: from 0 to 1.
        low, high: ends of each number, not negative.
    """
    lower, upper = (np.maximum(np.asarray(part, dtype=np.float64), 0.0) for part in (low, high))
    least = _fewest((1 - share) * upper + share * lower, share * lower.sum())
    most = _fewest((1 - share) * lower + share * upper, share * upper.sum())
    return least, most


def _fewest(scores: Floats, needed: float) -> int:
    """How many of the largest scores sum up to what is needed; all of them if rounding leaves too little."""
    reached = np.cumsum(np.sort(scores)[::-1]) >= needed - 1e-12
    return int(reached.argmax()) + 1 if reached.any() else len(scores)
