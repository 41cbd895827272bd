"""How well a score tells two groups apart: the area under the ROC curve, with intervals.

AUROC = P(score of a positive > score of a negative) + P(equal) / 2, over pairs of one of each group.
"""

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from jostle.intervals.fixed import Ends

_STEPS = 60  # of a bisection: 2^-60 of the interval


def auroc(scores: ArrayLike, is_positive: ArrayLike) -> float:
    """The area under the ROC curve; NaN if one group is empty.

    >>> auroc([0.1, 0.4, 0.4, 0.9], [False, False, True, True])
    0.875
    """
    above, below, _ = _groups(scores, is_positive)
    if not len(above) or not len(below):
        return math.nan
    return float(_placements(above, below).mean())


def auroc_interval(value: float, positives: int, negatives: int, level: float) -> Ends:
    """An interval for an AUROC from independent inputs: Newcombe (2006), "Method 5".

    All theta with (theta - value)^2 <= z^2 V(theta), where, with N = (m + n) / 2 - 1,

        V(theta) = theta (1 - theta) (1 + N (1 - theta) / (2 - theta) + N theta / (1 + theta)) / (m n)

    is the variance of Hanley and McNeil (1982) for two groups of about equal size. Like Wilson's interval for a
    proportion it does not collapse where the groups are told apart without an error. Ties make it wider than needed.

    >>> [round(end, 3) for end in auroc_interval(0.8, 20, 80, 0.95)]
    [0.668, 0.884]

    Arguments:
        value: the AUROC.
        positives, negatives: sizes of the groups, m and n.
        level: coverage.
    """
    if not positives or not negatives:
        return 0.0, 1.0
    squared = float(special.ndtri((1 + level) / 2)) ** 2
    mean = (positives + negatives) / 2 - 1

    def is_inside(theta: float) -> bool:
        spread = 1 + mean * (1 - theta) / (2 - theta) + mean * theta / (1 + theta)
        return (theta - value) ** 2 <= squared * theta * (1 - theta) * spread / (positives * negatives)

    return _edge(is_inside, value, 0.0), _edge(is_inside, value, 1.0)


def auroc_difference(
    first: ArrayLike, second: ArrayLike, is_positive: ArrayLike, level: float
) -> tuple[float, float, float]:
    """AUROC of one score minus that of another on the same inputs, and its interval, by DeLong et al. (1988).

    The variance of the difference comes from the placements of every input under both scores; asymptotic in the sizes
    of both groups, of which each needs two.

    Arguments:
        first, second: scores of the same inputs.
        is_positive: their group.
        level: coverage.
    """
    sides = [_groups(scores, is_positive)[:2] for scores in (first, second)]
    sizes = [len(part) for part in sides[0]]
    if min(sizes) < 2:
        value = auroc(first, is_positive) - auroc(second, is_positive)
        return value, -1.0, 1.0
    by_positive = [_placements(above, below) for above, below in sides]
    by_negative = [1 - _placements(below, above) for above, below in sides]
    value = float(by_positive[0].mean() - by_positive[1].mean())
    variance = sum(
        float((parts[0] - parts[1]).var(ddof=1)) / size
        for parts, size in zip((by_positive, by_negative), sizes, strict=True)
    )
    reach = float(special.ndtri((1 + level) / 2)) * math.sqrt(variance)
    return value, max(value - reach, -1.0), min(value + reach, 1.0)


def _groups(scores: ArrayLike, is_positive: ArrayLike) -> tuple[NDArray[np.float64], ...]:
    """The scores of positives and of negatives, and all of them."""
    values, truths = np.asarray(scores, dtype=np.float64), np.asarray(is_positive, dtype=bool)
    return values[truths], values[~truths], values


def _placements(above: NDArray[np.float64], below: NDArray[np.float64]) -> NDArray[np.float64]:
    """For each of ``above``, the share of ``below`` that it exceeds, ties by half."""
    order = np.sort(below)
    less, at_most = (np.searchsorted(order, above, side=side) for side in ("left", "right"))
    return np.asarray((less + at_most) / (2 * len(below)), dtype=np.float64)


def _edge(is_inside: Callable[[float], bool], inside: float, end: float) -> float:
    """Where the interval that holds ``inside`` ends, on the way to ``end``."""
    if is_inside(end) and inside != end:
        return end
    near, far = inside, end
    for _ in range(_STEPS):
        middle = (near + far) / 2
        near, far = (middle, far) if is_inside(middle) else (near, middle)
    return near
