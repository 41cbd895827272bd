"""What is ascended and what is counted: for most responses the same number, for flips the margin and the flip.

Projected gradient ascent in the ball around each token, many at once.
"""

import math
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.linalg import vector_norm

from jostle.sampling.plans import Integers
from jostle.worst.cells import Cells, Floats


class Best:
    """For each cell the largest response seen, the change that gives it, and how high it got.

    A larger response is better, and of equal responses the one that is higher. Nothing is ever given up, so what was
    found in a small ball counts in a larger one.

    Attributes:
        values, heights: (cells,) the response and the number that is ascended; at first those of no change.
        deltas: (cells, dim) the change.
        is_seen: (cells,) whether any change of the cell had a finite response.
        predictions: (cells,) for flips, what is predicted after the change.
    """

    def __init__(self, cells: Cells) -> None:
        references = cells.references(np.arange(len(cells)))
        self.objective = cells.objective
        self.values: Floats = np.zeros(len(cells))
        self.heights: Floats = self.objective.clean_height(references).numpy().copy()
        self.deltas = torch.zeros_like(cells.clean)
        self.is_seen = np.zeros(len(cells), dtype=bool)
        self.predictions: Integers = np.zeros(len(cells), dtype=np.int64)
        if self.objective.is_flip:
            self.predictions = references[:, 0].long().numpy().copy()

    def take(
        self, rows: Integers, deltas: Tensor, values: Floats, heights: Floats, outputs: Tensor
    ) -> NDArray[np.bool_]:
        """Keep what is better than before; a cell may occur several times. Returns which of them were finite."""
        finite = outputs.reshape(len(outputs), -1).isfinite().all(dim=1).numpy() & np.isfinite(values)
        kept = np.flatnonzero(finite)
        self.is_seen[rows[kept]] = True
        order = kept[np.lexsort((heights[kept], values[kept], rows[kept]))]  # best of each cell last
        last = order[np.append(rows[order][1:] != rows[order][:-1], True)] if len(order) else order
        row, value, height = rows[last], values[last], heights[last]
        is_better = (value > self.values[row]) | ((value == self.values[row]) & (height > self.heights[row]))
        row, last = row[is_better], last[is_better]
        self.values[row], self.heights[row] = values[last], heights[last]
        chosen = torch.from_numpy(last)
        self.deltas[torch.from_numpy(row)] = deltas.detach()[chosen]
        if self.objective.is_flip:
            self.predictions[row] = self.objective.response.reference(outputs[chosen]).numpy()
        return finite


FIRST_STEP = 0.3  # in units of the radius
_STRAIGHT = 1e-6
_RUNGS = (0.25, 0.5)  # of the steps: after which the lower half of a token's trials ends


@dataclass(frozen=True)
class Climbers:
    """Trials: where each is, in whose ball, which way it goes, after how many steps, and how high it has been."""

    rows: Integers
    deltas: Tensor
    ways: Tensor
    times: Integers
    tops: Floats

    @classmethod
    def begin(cls, rows: Integers, deltas: Tensor, ways: Tensor) -> "Climbers":
        """Trials before their first step."""
        return cls(rows, deltas, ways, np.zeros(len(rows), dtype=np.int64), np.full(len(rows), -np.inf))

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, kept: slice | NDArray[np.bool_]) -> "Climbers":
        chosen = kept if isinstance(kept, slice) else torch.from_numpy(kept)
        return Climbers(self.rows[kept], self.deltas[chosen], self.ways[chosen], self.times[kept], self.tops[kept])

    def joined(self, others: "Climbers") -> "Climbers":
        """These and others."""
        return Climbers(
            np.concatenate([self.rows, others.rows]),
            torch.cat([self.deltas, others.deltas]),
            torch.cat([self.ways, others.ways]),
            np.concatenate([self.times, others.times]),
            np.concatenate([self.tops, others.tops]),
        )


class Ascent:
    """From each start, ``steps`` normalised steps uphill inside the ball, the best iterate kept.

        delta <- projection onto the ball of radius rho of  delta + s_t rho g / ||g||

    with g the gradient of the height with respect to the token and s_t = 0.3 (1 + cos(pi t / steps)) / 2. A trial
    (cell, start) ends after its last step; after a quarter and after half of them, if it has not been as high as the
    middle one of its cell's trials; where g is zero or not finite; where delta is on the sphere and g points straight
    out, which is where it would stay; and, when flips are asked for, as soon as any trial of its group has flipped. Its
    place in the batch goes to the next trial, so that batches stay full.

    Attributes:
        lost, flat: trials that ended at a gradient that is not finite, or is zero.

    Arguments:
        cells, best: what is moved, and where findings go.
        reach: (cells,) the radius of each ball, in the units of the tokens.
        steps: how many.
        groups: (cells,) cells of one group end together at a flip.
    """

    def __init__(self, cells: Cells, best: Best, reach: Tensor, steps: int, groups: Integers) -> None:
        self.cells, self.best, self.reach, self.steps, self.groups = cells, best, reach, steps, groups
        self.lost = self.flat = 0
        self._rungs: dict[int, dict[int, list[float]]] = {math.ceil(share * steps): {} for share in _RUNGS}
        self._is_over = np.zeros(int(groups.max(initial=-1)) + 1, dtype=bool)
        self._close()

    def run(self, waiting: Climbers) -> None:
        """Ascend with all of these trials; those of a cell stand side by side."""
        active = waiting[:0]
        while len(waiting) or len(active):
            while len(waiting) and len(active) < self.cells.room(int(waiting.rows[0])):
                places = self.cells.room(int(waiting.rows[0])) - len(active)
                active, waiting = active.joined(self._still_open(waiting[:places])), waiting[places:]
            if len(active):
                active = self._stepped(active)

    def _stepped(self, climbers: Climbers) -> Climbers:
        """The trials one step further, without those that end."""
        rows, deltas = climbers.rows, climbers.deltas
        if (climbers.times == self.steps).all():
            measured(self.cells, self.best, rows, deltas)
            self._close()
            return climbers[:0]
        gradient, heights = climbed(self.cells, self.best, rows, deltas, climbers.ways)  # (trials, dim), (trials,)
        uphill, is_usable = unit(gradient)
        self._count(gradient, is_usable)
        reach = self.reach[torch.from_numpy(rows)].to(deltas.dtype)[:, None]
        shares = torch.from_numpy(FIRST_STEP * 0.5 * (1 + np.cos(math.pi * climbers.times / self.steps)))
        moved = within(deltas + shares.to(deltas.dtype)[:, None] * reach * uphill, reach)
        stays = _points_out(deltas, uphill, reach)
        ahead = replace(climbers, deltas=moved, times=climbers.times + 1, tops=np.fmax(climbers.tops, heights))
        self._close()
        goes_on = (is_usable & ~stays).numpy() & (climbers.times < self.steps) & self._is_high(ahead)
        return self._still_open(ahead[goes_on])

    def _is_high(self, climbers: Climbers) -> NDArray[np.bool_]:
        """Which trials are, at a rung, among the upper half of those of their cell that have come there."""
        high = np.ones(len(climbers), dtype=bool)
        for time, rung in self._rungs.items():
            there = np.flatnonzero(climbers.times == time)
            for place in there:
                rung.setdefault(int(climbers.rows[place]), []).append(float(climbers.tops[place]))
            for place in there:
                high[place] = climbers.tops[place] >= _upper_median(rung[int(climbers.rows[place])])
        return high

    def _count(self, gradient: Tensor, is_usable: Tensor) -> None:
        if not bool(is_usable.all()):
            zero = int((gradient == 0).all(dim=1).sum())
            self.flat, self.lost = self.flat + zero, self.lost + int((~is_usable).sum()) - zero

    def _close(self) -> None:
        """Note which groups have flipped."""
        if self.cells.objective.is_flip:
            self._is_over[self.groups[self.best.values > 0]] = True

    def _still_open(self, climbers: Climbers) -> Climbers:
        is_open = ~self._is_over[self.groups[climbers.rows]]
        return climbers if is_open.all() else climbers[is_open]


def climbed(
    cells: Cells, best: Best, rows: Integers, deltas: Tensor, ways: Tensor | None = None
) -> tuple[Tensor, Floats]:
    """The gradient (trials, dim) uphill at ``deltas``, each its own way, and the height (trials,) that counts."""
    references = cells.references(rows)
    with torch.enable_grad():
        moved = deltas.detach().requires_grad_()
        outputs = cells.outputs(rows, moved)
        height = cells.objective.height(references, outputs, ways)
        gradient = cells.function.gradient(height, moved)
    return gradient, _note(cells, best, rows, deltas, outputs.detach())[1]


def measured(cells: Cells, best: Best, rows: Integers, deltas: Tensor) -> tuple[Floats, Floats]:
    """Response and height (trials,) at ``deltas``, without gradients; NaN where they are not finite."""
    return _note(cells, best, rows, deltas, cells.outputs(rows, deltas))


def _note(cells: Cells, best: Best, rows: Integers, deltas: Tensor, outputs: Tensor) -> tuple[Floats, Floats]:
    references = cells.references(rows)
    values = cells.objective.change(references, outputs).numpy()
    heights = cells.objective.height(references, outputs).numpy() if cells.objective.is_flip else values
    finite = best.take(rows, deltas, values, heights, outputs)
    return np.where(finite, values, np.nan), np.where(finite, heights, np.nan)


def unit(vectors: Tensor) -> tuple[Tensor, Tensor]:
    """Vectors (batch, dim) over their norms, and which have one: others, zero or not finite, become zero."""
    largest = vectors.abs().amax(dim=1, keepdim=True)
    is_usable = (largest.isfinite() & (largest > 0))[:, 0]
    scaled = torch.where(is_usable[:, None], vectors / largest, 0.0)  # first by the largest: squares may underflow
    return scaled / vector_norm(scaled, dim=1, keepdim=True).clamp(min=1.0), is_usable


def within(deltas: Tensor, reach: Tensor) -> Tensor:
    """``deltas`` (batch, dim), those that are longer than ``reach`` (batch, 1) shortened to it."""
    size = vector_norm(deltas, dim=1, keepdim=True)
    return torch.where(size > reach, deltas * (reach / size), deltas)


def _points_out(deltas: Tensor, uphill: Tensor, reach: Tensor) -> Tensor:
    """(batch,) where a step along the unit vectors ``uphill`` would be undone by the projection."""
    along = (deltas * uphill).sum(dim=1, keepdim=True)
    return (along >= reach * (1 - _STRAIGHT))[:, 0]


def _upper_median(heights: list[float]) -> float:
    """The lowest of the upper half, the middle one included."""
    return sorted(heights)[len(heights) // 2]
