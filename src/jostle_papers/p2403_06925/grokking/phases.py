"""Phases of training: where curves change, when a network generalises, and which measures change before it does.

Change points are found by optimal partitioning (Jackson et al. 2005): of all ways to cut a curve into a given number of
pieces, the one whose least-squares fits, a constant or a straight line each, leave the smallest sum of squares. Dynamic
programming finds it exactly, in time proportional to the square of the number of points, at most a few hundred here.
"""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from jostle.base import checks
from jostle.base.errors import UsageError
from jostle_papers.stacked.trajectory import Trajectory

MEMORISED = 0.99  # accuracy on training pairs
ONSET, GENERALISED = 0.5, 0.95  # accuracy on unseen pairs
_ON_LOG_SCALE = ("loss",)  # the last word of the names of measures that are compared by their logarithm
_LEAST = 3  # points of a piece
_EXACT = 1e-12  # residuals below this share of the variance are rounding, of sums here and of float32 before

Floats = NDArray[np.float64]


def change_points(
    x: ArrayLike, y: ArrayLike, changes: int | None = None, *, degree: int = 1, most: int = 5
) -> tuple[float, ...]:
    """Where a curve changes: the x of the first point of every piece but the first.

    >>> change_points([0, 1, 2, 3, 4, 5, 6, 7], [0, 0, 0, 0, 9, 9, 9, 9], 1, degree=0)
    (4.0,)

    Arguments:
        x, y: (points,), x increasing.
        changes: their number; None for the number, at most ``most``, with the smallest Bayesian information criterion,
            n log(residual / n) + (changes + pieces * (degree + 1)) log n.
        degree: 0 for pieces that are constant, 1 for straight lines, which need not meet.
        most: the largest number of changes, if ``changes`` is None.
    """
    places, values = (np.asarray(part, dtype=np.float64) for part in (x, y))
    if places.ndim != 1 or places.shape != values.shape or not np.isfinite(places).all():
        raise UsageError(f"x and y must be the same number of finite numbers, got {places.shape} and {values.shape}")
    if not np.isfinite(values).all() or (np.diff(places) <= 0).any():
        raise UsageError("y must be finite and x increasing for change points")
    if degree not in (0, 1):
        raise checks.wrong("degree", degree, "0, for constant pieces, or 1, for straight lines")
    possible = len(places) // _LEAST - 1
    if changes is not None and not 0 <= changes <= possible:
        raise UsageError(f"changes={changes} of {len(places)} points must be from 0 to {possible}, at 3 points a piece")
    limit = min(most, max(possible, 0)) if changes is None else changes
    residuals, cuts = _partitions(_residuals(places, values, degree), limit)
    chosen = _by_criterion(residuals, values, degree) if changes is None else changes
    return tuple(float(places[cut]) for cut in cuts[chosen])


def onset(trajectory: Trajectory, accuracy: float = ONSET) -> int | None:
    """The first epoch with this accuracy on unseen pairs, unsmoothed; None if there is none.

    Where a and b can be exchanged, pairs whose mirror image was trained on do not count: networks learn the symmetry
    early, and then have as large a share of the test pairs right as was trained on, without having found the rule.
    """
    unseen = "unmirrored_accuracy" if "unmirrored_accuracy" in trajectory.curves else "test_accuracy"
    return trajectory.first(unseen, accuracy)


def memorisation(trajectory: Trajectory, accuracy: float = MEMORISED) -> int | None:
    """The first epoch with this training accuracy; None if there is none."""
    return trajectory.first("train_accuracy", accuracy)


def turning_point(trajectory: Trajectory, name: str) -> int | None:
    """Where one measure changes between memorising and generalising, by one change of two straight lines.

    The search goes from the first epoch with 99 % training accuracy to the first with 95 % on unseen pairs (or the
    end), so that every measure has one change, in the same window; of losses the logarithm is taken. None if the
    network did not memorise, if fewer than 6 points lie between, or if one straight line fits as well by the criterion
    of ``change_points``.
    """
    start, end = memorisation(trajectory), onset(trajectory, GENERALISED)
    if start is None:
        return None
    inside = [
        (epoch, value)
        for epoch, value in zip(trajectory.epochs, trajectory.curve(name), strict=True)
        if start <= epoch and (end is None or epoch <= end)
    ]
    values = [math.log(max(value, 1e-300)) if name.endswith(_ON_LOG_SCALE) else value for _, value in inside]
    if len(inside) < 2 * _LEAST or not all(map(math.isfinite, values)):
        return None
    found = change_points([epoch for epoch, _ in inside], values, most=1)
    return int(found[0]) if found else None


def lead_times(trajectory: Trajectory, names: Sequence[str] | None = None) -> dict[str, int]:
    """By how many epochs the turning point of each measure comes before the onset; negative if after.

    Empty if the network did not generalise. Measures that do not turn are left out. A long lead alone does not make a
    measure a predictor: a measure that turns at the same epoch in every network has a lead too, and predicts nothing.
    Compare turning points with onsets over seeds.

    Arguments:
        trajectory: from ``follow``.
        names: of measures; all but test loss and the accuracies by default.
    """
    began = onset(trajectory)
    if began is None:
        return {}
    wanted = [name for name in trajectory.curves if "accuracy" not in name and name != "test_loss"]
    turns = {name: turning_point(trajectory, name) for name in (wanted if names is None else names)}
    return {name: began - turn for name, turn in turns.items() if turn is not None}


def _residuals(x: Floats, y: Floats, degree: int) -> Floats:
    """(n, n + 1): the residual sum of squares of a fit to points i .. j - 1; infinite for pieces that are too short."""
    x, y = (x - x.mean()) / max(float(np.ptp(x)), 1e-300), y - y.mean()
    sums = [np.concatenate([[0.0], np.cumsum(part)]) for part in (np.ones_like(x), x, x * x, y, x * y, y * y)]
    n, sx, sxx, sy, sxy, syy = (part[None, :] - part[:-1, None] for part in sums)
    with np.errstate(divide="ignore", invalid="ignore"):
        left = syy - sy * sy / n
        if degree == 1:
            left = left - (sxy - sx * sy / n) ** 2 / (sxx - sx * sx / n)
    short = n < _LEAST
    return np.where(short, np.inf, np.maximum(np.where(short, 0.0, left), 0.0))


def _partitions(residuals: Floats, most: int) -> tuple[list[float], list[tuple[int, ...]]]:
    """For 0 .. ``most`` changes the smallest sum of residuals and where the pieces after the first begin."""
    points = len(residuals)
    best = residuals[0].copy()  # (points + 1,): of the first j points, in one piece
    cuts: list[list[tuple[int, ...]]] = [[()] * (points + 1)]
    totals, found = [float(best[points])], [cuts[0][points]]
    for _ in range(most):
        candidates = best[:points, None] + residuals  # the last piece begins at i and ends before j
        begins = np.argmin(candidates, axis=0)
        best = candidates[begins, np.arange(points + 1)]
        cuts.append([(*cuts[-1][begin], int(begin)) for begin in begins])
        totals.append(float(best[points]))
        found.append(cuts[-1][points])
    return totals, found


def _by_criterion(residuals: Sequence[float], values: Floats, degree: int) -> int:
    """The number of changes with the smallest Bayesian information criterion."""
    count = len(values)
    floor = _EXACT * max(float(np.square(values - values.mean()).sum()), 1e-300)
    criteria = [
        count * math.log(max(left, floor) / count) + (changes + (changes + 1) * (degree + 1)) * math.log(count)
        for changes, left in enumerate(residuals)
    ]
    return int(np.argmin(criteria))
