"""The search through growing balls around some spots."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import cycle

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from jostle.base.errors import FailureError
from jostle.sampling.plans import Integers
from jostle.worst import starts
from jostle.worst.ascent import Ascent, BestChanges, Climbers, try_changes, uphill_gradient
from jostle.worst.objective import AIMS, DOWN, EITHER, UP
from jostle.worst.result import WorstSettings
from jostle.worst.spots import Floats, Spots
from jostle.worst.starts import Directions, Start

_WAYS_OF_FLIPS = (*AIMS, DOWN)
_WAYS_OF_MARGINS = (AIMS[0], UP, *AIMS[1:], DOWN)


@dataclass
class BlockResult:
    """What the search of one block of inputs found, by radius and spot; NaN where no response was finite.

    Arguments:
        values, heights: (radii, spots) the largest response, and how high it got.
        deltas: (radii, spots, dim) the change that gives it.
        predictions: (radii, spots) for flips, the prediction after the change.
        mean: (radii, spots) the mean response of the random draws.
        max_of: (draw counts, radii, spots) the expected largest response of 1, 2, 4, ... draws.
        lost, flat: how many ascents ended at a gradient that is not finite, or zero.
        failed: how many random draws have no finite response.
        ascents: how many ascents were made.
    """

    values: Floats
    heights: Floats
    deltas: Tensor
    predictions: Integers
    mean: Floats
    max_of: Floats
    lost: int = 0
    flat: int = 0
    failed: int = 0
    ascents: int = 0


def search(
    spots: Spots,
    settings: WorstSettings,
    directions: Directions | None,
    tell: Callable[[float], None],
    *,
    has_gradient: bool,
) -> BlockResult:
    """Search the balls around ``spots``, from the smallest to the largest; each begins where the last one ended.

    Arguments:
        spots: all spots of some inputs.
        settings: radii, draws, starts, steps and candidates.
        directions: further directions to start in.
        tell: told the share that is done.
        has_gradient: whether to ascend.
    """
    counts, shape = draw_counts(settings.draws), (len(settings.radii), len(spots))
    best = BestChanges(spots)
    found = BlockResult(
        values=np.zeros(shape),
        heights=np.zeros(shape),
        deltas=torch.zeros(*shape, spots.clean.shape[1], dtype=spots.clean.dtype),
        predictions=np.zeros(shape, dtype=np.int64),
        mean=np.zeros(shape),
        max_of=np.zeros((len(counts), *shape)),
    )
    rows = np.flatnonzero(spots.norms.numpy() > 0)  # a ball in units of the norm of a zero token is one point
    steepest: Tensor | None = None
    for place, radius in enumerate(settings.radii):
        ball_radii = radius * spots.norms
        if radius > 0 and len(rows):
            last = starts.stretch_best(best, rows, ball_radii) if place and settings.radii[place - 1] > 0 else None
            values, heights = starts.try_draws(spots, best, rows, ball_radii, settings.draws)
            maxima = expected_maxima(values, counts)
            found.mean[place, rows], found.max_of[:, place, rows] = maxima[0], maxima
            found.failed += int(np.isnan(values).sum())
            if has_gradient and steepest is None:
                steepest = starts.steepest_directions(spots, best, rows, ball_radii)
            chosen = _choose_starts(spots, rows, ball_radii, heights, steepest, last, settings.starts, directions)
            if not has_gradient or settings.candidates:
                _try_starts(spots, best, rows, chosen)
            if has_gradient:
                _ascend(spots, best, rows, ball_radii, chosen, settings, found)
        is_known = best.is_seen | (ball_radii.numpy() == 0)
        found.values[place], found.heights[place] = np.where(is_known, best.values, np.nan), best.heights
        found.deltas[place], found.predictions[place] = best.deltas, best.predictions
        tell((place + 1) / len(settings.radii))
    return found


def _choose_starts(
    spots: Spots,
    rows: Integers,
    ball_radii: Tensor,
    heights: Floats,
    steepest: Tensor | None,
    last: Tensor | None,
    count: int,
    directions: Directions | None,
) -> list[Start]:
    """The starts of every spot: deletion, the steepest direction, the last best change, directions, the best draws.

    Arguments:
        spots, rows, ball_radii: the spots and their balls.
        heights: (len(rows), draws) of the random draws.
        steepest: (len(rows), dim), None without gradients.
        last: (len(rows), dim), the best change of the ball before; None in the first ball.
        count: how many starts there are at least; the best draws fill them up.
        directions: further directions to start in.
    """
    chosen = [Start(starts.deletions(spots, rows, ball_radii), DOWN)]
    if steepest is not None:
        chosen.append(Start(starts.scale_to_radius(steepest, ball_radii, rows), DOWN))
    if steepest is not None and not spots.objective.is_flip:  # for flips the margin only has to fall
        chosen.append(Start(starts.scale_to_radius(-steepest, ball_radii, rows), UP))
    if last is not None:
        chosen.append(Start(last, EITHER))
    if directions is not None:
        known = starts.known_directions(spots, rows, directions)
        chosen += [Start(starts.scale_to_radius(direction, ball_radii, rows), EITHER) for direction in known]
    draws = starts.best_draws(spots, rows, heights, ball_radii, max(count - len(chosen), 1))
    ways = _WAYS_OF_FLIPS if spots.objective.is_flip else _WAYS_OF_MARGINS
    return chosen + [Start(draw, way) for draw, way in zip(draws, cycle(ways), strict=False)]


def _try_starts(spots: Spots, best: BestChanges, rows: Integers, chosen: list[Start]) -> None:
    """Evaluate every start of every spot, without an ascent."""
    for start in chosen:
        for cut in spots.cuts(rows):
            try_changes(spots, best, rows[cut], start.deltas[cut])


def _ascend(
    spots: Spots,
    best: BestChanges,
    rows: Integers,
    ball_radii: Tensor,
    chosen: list[Start],
    settings: WorstSettings,
    found: BlockResult,
) -> None:
    """Ascend from every start of every spot, or of the most promising spots of each input."""
    groups, kept = np.arange(len(spots)), np.arange(len(rows))
    if settings.candidates:
        groups = spots.inputs
        kept = np.flatnonzero(_is_promising(spots, best, settings.candidates)[rows])
    ascent = Ascent(spots, best, ball_radii, settings.steps, groups)
    deltas = torch.stack([start.deltas[torch.from_numpy(kept)] for start in chosen], dim=1).flatten(0, 1)
    ways = torch.tensor([start.way for start in chosen]).repeat(len(kept))
    ascent.run(Climbers.begin(np.repeat(rows[kept], len(chosen)), deltas, ways))
    found.lost += ascent.lost
    found.flat += ascent.flat
    found.ascents += len(deltas)


def _is_promising(spots: Spots, best: BestChanges, count: int) -> NDArray[np.bool_]:
    """(spots,) true for the ``count`` spots of each input with the best change so far."""
    order = np.lexsort((-best.heights, -best.values, spots.inputs))  # by input, then from better to worse
    _, first, owner = np.unique(spots.inputs[order], return_index=True, return_inverse=True)
    rank = np.arange(len(order)) - first[owner]  # among the spots of the same input
    is_promising = np.zeros(len(order), dtype=bool)
    is_promising[order[rank < count]] = True
    return is_promising


def gradient_problem(spots: Spots) -> str | None:
    """Why the model cannot be ascended; None if it can."""
    if not spots.objective.can_ascend:
        return f"the response {spots.objective.response.describe()} has nothing to ascend"
    row = np.zeros(1, dtype=np.int64)
    try:
        uphill_gradient(spots, BestChanges(spots), row, 0.01 * spots.directions(row, row))
    except (FailureError, RuntimeError) as error:
        reason = str(error)
        if "does not require grad" in reason or "not have been used in the graph" in reason:
            return "its outputs do not depend on the token in a way that PyTorch can differentiate"
        return reason.removeprefix(f"{spots.function.name} ")
    return None


def draw_counts(draws: int) -> list[int]:
    """1, 2, 4, ... up to ``draws``, and ``draws`` itself.

    >>> draw_counts(12)
    [1, 2, 4, 8, 12]
    """
    return [2**power for power in range(draws.bit_length()) if 2**power < draws] + [draws]


def expected_maxima(values: Floats, counts: list[int]) -> Floats:
    """The expected largest of k draws, for each k of ``counts``: the mean over all choices of k of the K draws.

        sum over j of  v_(j) C(j - 1, k - 1) / C(K, k),   v_(1) <= ... <= v_(K)

    The share of v_(K) is k / K, and that of v_(j - 1) is (j - k) / (j - 1) times that of v_(j). So no binomial number
    is needed: of a million draws, each has hundreds of thousands of digits.

    For k = 1 it is the mean and for k = K the maximum; it never falls with k. Draws that are NaN are left out. If k is
    larger than the number of draws that are left, it is their maximum.

    >>> expected_maxima(np.array([[3.0, 1.0, 2.0]]), [1, 2, 3])[:, 0].round(4).tolist()
    [2.0, 2.6667, 3.0]

    Arguments:
        values: (rows, K).
        counts: values of k, increasing. The result is (counts, rows).
    """
    found = np.full((len(counts), len(values)), np.nan)
    left = np.isfinite(values).sum(axis=1)
    for size in (int(size) for size in np.unique(left) if size):
        rows = np.flatnonzero(left == size)
        ordered = np.sort(values[rows], axis=1)[:, :size]  # NaN is sorted last
        places = np.arange(size, 1, -1)
        for place, count in enumerate(min(count, size) for count in counts):
            ratios = np.maximum(places - count, 0) / (places - 1)
            weights = np.cumprod(np.append(count / size, ratios))[::-1]
            found[place, rows] = ordered @ weights
    largest = np.where(np.isfinite(values), values, -np.inf).max(axis=1)
    rising: Floats = np.minimum(np.maximum.accumulate(found), largest)  # no rounding above the largest
    return rising
