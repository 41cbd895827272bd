"""The search through growing balls around some tokens, and what was found put where it belongs."""

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import cycle
from math import comb

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from jostle.base.errors import FailureError
from jostle.sampling.plans import Integers
from jostle.tokens import Inputs
from jostle.worst import starts
from jostle.worst.ascent import Ascent, Best, Climbers, climbed, measured
from jostle.worst.cells import AIMS, DOWN, EITHER, UP, Cells, Floats, GradientFunction
from jostle.worst.result import WorstCase, WorstSettings
from jostle.worst.starts import Directions

Start = tuple[Tensor, int]

_WAYS_OF_FLIPS = (*AIMS, DOWN)
_WAYS_OF_MARGINS = (AIMS[0], UP, *AIMS[1:], DOWN)


@dataclass(frozen=True)
class Effort:
    """How hard to search.

    Arguments:
        radii: increasing.
        draws: random changes of each token and radius.
        starts: how many starts an ascent has, at least.
        steps: of each.
        candidates: at how many positions of an input to ascend, the most promising ones; None for all.
        directions: further starts, see ``worst_case``.
    """

    radii: tuple[float, ...]
    draws: int
    starts: int
    steps: int
    candidates: int | None = None
    directions: Directions | None = None


@dataclass
class Found:
    """What a search found, by radius and cell; NaN where no response was finite."""

    values: Floats  # (radii, cells)
    heights: Floats  # (radii, cells)
    deltas: Tensor  # (radii, cells, dim)
    predictions: Integers  # (radii, cells)
    mean: Floats  # (radii, cells)
    max_of: Floats  # (numbers of draws, radii, cells)
    lost: int = 0
    flat: int = 0
    failed: int = 0
    ascents: int = field(default=0)


def draw_counts(draws: int) -> list[int]:
    """1, 2, 4, ... up to ``draws``, and ``draws`` itself.

    >>> draw_counts(12)
    [1, 2, 4, 8, 12]
    """
    return [2**power for power in range(draws.bit_length()) if 2**power < draws] + [draws]


def expected_maxima(values: Floats, counts: list[int]) -> Floats:
    """The mean over all choices of k of the draws of the largest of them, for each k of ``counts``: (counts, cells).

        sum over j of  v_(j) C(j - 1, k - 1) / C(K, k),   v_(1) <= ... <= v_(K)

    For k = 1 it is the mean and for k = K the maximum; it never falls with k. Draws that are NaN are left out, and a k
    beyond what is left is all of it.

    >>> expected_maxima(np.array([[3.0, 1.0, 2.0]]), [1, 2, 3])[:, 0].round(4).tolist()
    [2.0, 2.6667, 3.0]
    """
    found = np.full((len(counts), len(values)), np.nan)
    left = np.isfinite(values).sum(axis=1)
    for size in (int(size) for size in np.unique(left) if size):
        rows = np.flatnonzero(left == size)
        ordered = np.sort(values[rows], axis=1)[:, :size]  # NaN is sorted last
        for place, count in enumerate(min(count, size) for count in counts):
            total = comb(size, count)
            weights = [comb(below, count - 1) / total for below in range(size)]
            found[place, rows] = ordered @ np.asarray(weights)
    largest = np.where(np.isfinite(values), values, -np.inf).max(axis=1)
    rising: Floats = np.minimum(np.maximum.accumulate(found), largest)  # no rounding above the largest
    return rising


def gradient_problem(cells: Cells) -> str | None:
    """Why the model cannot be ascended, or None if it can."""
    if not cells.objective.can_ascend:
        return f"the response {cells.objective.response.describe()} has nothing to ascend"
    row = np.zeros(1, dtype=np.int64)
    try:
        climbed(cells, Best(cells), row, 0.01 * cells.directions(row, row))
    except (FailureError, RuntimeError) as error:
        reason = str(error)
        if "does not require grad" in reason or "not have been used in the graph" in reason:
            return "its outputs do not depend on the token in a way that PyTorch can differentiate"
        return reason.removeprefix(f"{cells.function.name} ")
    return None


def search(cells: Cells, effort: Effort, has_gradient: bool, tell: Callable[[float], None]) -> Found:
    """Search the balls around ``cells``, from the smallest to the largest, each from where the last one ended.

    Arguments:
        cells: whole inputs.
        effort: how hard.
        has_gradient: whether to ascend.
        tell: told the share that is done.
    """
    counts, shape = draw_counts(effort.draws), (len(effort.radii), len(cells))
    best = Best(cells)
    found = Found(
        values=np.zeros(shape),
        heights=np.zeros(shape),
        deltas=torch.zeros(*shape, cells.clean.shape[1], dtype=cells.clean.dtype),
        predictions=np.zeros(shape, dtype=np.int64),
        mean=np.zeros(shape),
        max_of=np.zeros((len(counts), *shape)),
    )
    rows = np.flatnonzero(cells.norms.numpy() > 0)  # others have nowhere to go
    steepest: Tensor | None = None
    for level, radius in enumerate(effort.radii):
        reach = radius * cells.norms
        if radius > 0 and len(rows):
            last = starts.stretched(best, rows, reach) if level and effort.radii[level - 1] > 0 else None
            values, heights = starts.drawn(cells, best, rows, reach, effort.draws)
            maxima = expected_maxima(values, counts)
            found.mean[level, rows], found.max_of[:, level, rows] = maxima[0], maxima
            found.failed += int(np.isnan(values).sum())
            if has_gradient and steepest is None:
                steepest = starts.steepest(cells, best, rows, reach)
            begun = _starts(cells, rows, reach, heights, [steepest, last], effort)
            _climb(cells, best, rows, reach, begun, effort, has_gradient, found)
        is_known = best.is_seen | (reach.numpy() == 0)
        found.values[level], found.heights[level] = np.where(is_known, best.values, np.nan), best.heights
        found.deltas[level], found.predictions[level] = best.deltas, best.predictions
        tell((level + 1) / len(effort.radii))
    return found


def _starts(
    cells: Cells, rows: Integers, reach: Tensor, heights: Floats, known: list[Tensor | None], effort: Effort
) -> list[Start]:
    """The starts of every cell, (len(rows), dim) each, and which way a margin goes from there.

    ``known`` are the steepest direction and the best change of the ball before, None where there is none.
    """
    steepest, last = known
    chosen: list[Start] = [(starts.deletion(cells, rows, reach), DOWN)]
    if steepest is not None:
        chosen.append((starts.at_reach(steepest, reach, rows), DOWN))
    if steepest is not None and not cells.objective.is_flip:  # of a margin that is to fall, one way is down
        chosen.append((starts.at_reach(-steepest, reach, rows), UP))
    if last is not None:
        chosen.append((last, EITHER))
    if effort.directions is not None:
        given = starts.given(cells, rows, effort.directions)
        chosen += [(starts.at_reach(way, reach, rows), EITHER) for way in given]
    best_draws = starts.top_draws(cells, rows, heights, reach, max(effort.starts - len(chosen), 1))
    ways = _WAYS_OF_FLIPS if cells.objective.is_flip else _WAYS_OF_MARGINS
    return [*chosen, *zip(best_draws, cycle(ways), strict=False)]


def _climb(
    cells: Cells,
    best: Best,
    rows: Integers,
    reach: Tensor,
    begun: list[Start],
    effort: Effort,
    has_gradient: bool,
    found: Found,
) -> None:
    """Ascend from every start of every cell, or of the most promising ones; without gradients, only look at them."""
    if not has_gradient or effort.candidates is not None:
        for start, _ in begun:
            for cut in cells.cuts(rows):
                measured(cells, best, rows[cut], start[cut])
    if not has_gradient:
        return
    groups = np.arange(len(cells)) if effort.candidates is None else cells.inputs
    kept = np.arange(len(rows))
    if effort.candidates is not None:
        kept = np.flatnonzero(_promising(cells, best, effort.candidates)[rows])
    ascent = Ascent(cells, best, reach, effort.steps, groups)
    deltas = torch.stack([start[torch.from_numpy(kept)] for start, _ in begun], dim=1).flatten(0, 1)
    ways = torch.tensor([way for _, way in begun]).repeat(len(kept))
    ascent.run(Climbers.begin(np.repeat(rows[kept], len(begun)), deltas, ways))
    found.lost, found.flat = found.lost + ascent.lost, found.flat + ascent.flat
    found.ascents += len(deltas)


def _promising(cells: Cells, best: Best, count: int) -> NDArray[np.bool_]:
    """(cells,) true for the ``count`` cells of each input that are best so far."""
    order = np.lexsort((-best.heights, -best.values, cells.inputs))
    inputs = cells.inputs[order]
    first = np.append(True, inputs[1:] != inputs[:-1])
    rank = np.arange(len(order)) - np.maximum.accumulate(np.where(first, np.arange(len(order)), 0))
    chosen = np.zeros(len(order), dtype=bool)
    chosen[order[rank < count]] = True
    return chosen


class Gathered:
    """The arrays of a result while it is made, by radius, input and position, NaN where nothing was looked at.

    Attributes:
        problem: why there are no gradients; None if there are.
    """

    def __init__(self, inputs: Inputs, settings: WorstSettings, dim: int) -> None:
        self.inputs, self.settings = inputs, settings
        self.counts = draw_counts(settings.draws)
        shape = (len(settings.radii), len(inputs), inputs.num_tokens)
        self.values, self.margins, self.mean = (np.full(shape, np.nan) for _ in range(3))
        self.max_of: Floats = np.full((len(self.counts), *shape), np.nan)
        self.predictions = np.zeros(shape, dtype=np.int64)
        self.clean_predictions = np.zeros(len(inputs), dtype=np.int64)
        self.changes = np.zeros((*shape, dim), dtype=np.float32)
        self.problem: str | None = None
        self._lost = self._flat = self._failed = self._ascents = self._still = self._cells = 0

    @property
    def is_anything_known(self) -> bool:
        """Whether some response is finite."""
        return bool(np.isfinite(self.values).any())

    def add(self, cells: Cells, found: Found) -> None:
        """Put what was found for these cells in its place."""
        at = (slice(None), cells.inputs, self.inputs.profile_positions(cells.inputs, cells.tokens))
        self.values[at], self.mean[at], self.changes[at] = found.values, found.mean, found.deltas.numpy()
        self.max_of[(slice(None), *at)] = found.max_of
        self.margins[at], self.predictions[at] = -found.heights, found.predictions
        if cells.objective.is_flip:
            self.clean_predictions[cells.inputs] = cells.references(np.arange(len(cells)))[:, 0].long().numpy()
        self._lost, self._flat = self._lost + found.lost, self._flat + found.flat
        self._failed, self._ascents = self._failed + found.failed, self._ascents + found.ascents
        self._still += int((cells.norms == 0).sum())
        self._cells += len(cells)

    def result(
        self, function: GradientFunction, settings: WorstSettings, seconds: float, origin: dict[str, str]
    ) -> WorstCase:
        """The result, once everything was added."""
        is_flip = settings.is_flip
        return WorstCase(
            name=function.name,
            settings=settings,
            values=self.values,
            changes=self.changes,
            mean=self.mean,
            max_of=self.max_of,
            margins=self.margins if is_flip else None,
            predictions=self.predictions if is_flip else None,
            clean_predictions=self.clean_predictions if is_flip else None,
            draw_counts=self.counts,
            positions=self.inputs.positions,
            has_gradient=self.problem is None,
            passes=function.passes,
            warnings=[*function.warnings, *self._warnings(function.name)],
            seconds=seconds,
            provenance=origin,
        )

    def _warnings(self, name: str) -> list[str]:
        found = []
        if self.problem is not None:
            found.append(
                f"{name} gives no gradients: {self.problem}; only draws and deletion were looked at, so the largest "
                "response may be far above what was found"
            )
        if self._still:
            found.append(
                f"{self._still:,} of {self._cells:,} tokens are zero, and a radius in units of their norm leaves them "
                "there: their response is 0; give relative=False for radii in absolute length"
            )
        if self._failed:
            found.append(
                f"{self._failed:,} random changes have no finite response (an output is NaN or infinite, or the change "
                "is undefined); they are left out"
            )
        if self._lost:
            found.append(f"{self._lost:,} of {self._ascents:,} ascents ended early at a gradient of NaN or infinity")
        if self._flat > self._ascents / 2:
            found.append(
                f"{self._flat:,} of {self._ascents:,} ascents ended at a gradient of exactly 0 (does {name} round, or "
                "saturate?): there the largest draw is all that is known"
            )
        return found
