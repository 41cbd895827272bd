"""Projected gradient ascent in the ball around each spot, many at once, and the best change that was found so far."""

import math
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.linalg import vector_norm

from jostle.sampling.plans import Integers
from jostle.worst.spots import Floats, Spots

FIRST_STEP = 0.3  # in units of the radius
_STRAIGHT = 1e-6  # how far from straight out of the ball a gradient may point where an ascent ends
_RUNGS = (0.25, 0.5)  # shares of the steps after which the lower half of a spot's ascents ends


class BestChanges:
    """For each spot the largest response so far, and the change that gives it.

    A larger response is better; of equal responses, the one with the larger height is better. The best is never given
    up, so a change that was found in a small ball counts in a larger one.

    Attributes:
        values, heights: (spots,) the response and the number that is ascended; at first those of no change.
        deltas: (spots, dim) the change.
        is_seen: (spots,) whether any change of the spot had a finite response.
        predictions: (spots,) for flips, the prediction after the change.
    """

    def __init__(self, spots: Spots) -> None:
        references = spots.references(np.arange(len(spots)))
        self.objective = spots.objective
        self.values: Floats = np.zeros(len(spots))
        self.heights: Floats = self.objective.clean_height(references).numpy().copy()
        self.deltas = torch.zeros_like(spots.clean)
        self.is_seen = np.zeros(len(spots), dtype=bool)
        self.predictions: Integers = np.zeros(len(spots), dtype=np.int64)
        if self.objective.is_flip:
            self.predictions = references[:, 0].long().numpy().copy()

    def take(
        self, rows: Integers, deltas: Tensor, values: Floats, heights: Floats, outputs: Tensor
    ) -> NDArray[np.bool_]:
        """Keep the changes that are better than the best so far. Returns which changes had a finite response.

        Arguments:
            rows: (changes,) the spot of each change; a spot may occur several times.
            deltas: (changes, dim).
            values, heights: (changes,) each.
            outputs: (changes, ...) of the model.
        """
        finite = outputs.reshape(len(outputs), -1).isfinite().all(dim=1).numpy() & np.isfinite(values)
        usable = np.flatnonzero(finite)
        self.is_seen[rows[usable]] = True
        # Sorted by spot, then from worse to better: the last change of each spot is its best one.
        order = usable[np.lexsort((heights[usable], values[usable], rows[usable]))]
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


def try_changes(spots: Spots, best: BestChanges, rows: Integers, deltas: Tensor) -> tuple[Floats, Floats]:
    """Responses and heights (changes,) of ``deltas``, without gradients; NaN where they are not finite."""
    return _evaluate(spots, best, rows, deltas, spots.outputs(rows, deltas))


def uphill_gradient(
    spots: Spots, best: BestChanges, rows: Integers, deltas: Tensor, ways: Tensor | None = None
) -> tuple[Tensor, Floats]:
    """The gradient (changes, dim) of the height at ``deltas``, and the heights (changes,) that changes are compared by.

    Arguments:
        spots, best: what is moved, and where the best changes are kept.
        rows: (changes,) the spot of each change.
        deltas: (changes, dim).
        ways: (changes,) which way each margin goes.
    """
    references = spots.references(rows)
    with torch.enable_grad():
        moved = deltas.detach().requires_grad_()
        outputs = spots.outputs(rows, moved)
        height = spots.objective.height(references, outputs, ways)
        gradient = spots.function.gradient(height, moved)
    return gradient, _evaluate(spots, best, rows, deltas, outputs.detach())[1]


def _evaluate(
    spots: Spots, best: BestChanges, rows: Integers, deltas: Tensor, outputs: Tensor
) -> tuple[Floats, Floats]:
    """Responses and heights of the changes that gave these outputs; the best ones are kept."""
    references = spots.references(rows)
    values = spots.objective.change(references, outputs).numpy()
    heights = spots.objective.height(references, outputs).numpy() if spots.objective.is_flip else values
    finite = best.take(rows, deltas, values, heights, outputs)
    return np.where(finite, values, np.nan), np.where(finite, heights, np.nan)


@dataclass(frozen=True)
class Climbers:
    """Ascents under way, one from each start.

    Arguments:
        rows: (climbers,) the spot of each.
        deltas: (climbers, dim) where it is.
        ways: (climbers,) which way its margin goes.
        times: (climbers,) how many steps it has made.
        tops: (climbers,) the largest height it has reached.
    """

    rows: Integers
    deltas: Tensor
    ways: Tensor
    times: Integers
    tops: Floats

    @classmethod
    def begin(cls, rows: Integers, deltas: Tensor, ways: Tensor) -> "Climbers":
        """Climbers before their first step."""
        return cls(rows, deltas, ways, np.zeros(len(rows), dtype=np.int64), np.full(len(rows), -np.inf))

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, part: slice | NDArray[np.bool_]) -> "Climbers":
        chosen = part if isinstance(part, slice) else torch.from_numpy(part)
        return Climbers(self.rows[part], self.deltas[chosen], self.ways[chosen], self.times[part], self.tops[part])

    def join(self, others: "Climbers") -> "Climbers":
        """These climbers, then the others."""
        return Climbers(
            np.concatenate([self.rows, others.rows]),
            torch.cat([self.deltas, others.deltas]),
            torch.cat([self.ways, others.ways]),
            np.concatenate([self.times, others.times]),
            np.concatenate([self.tops, others.tops]),
        )


class Ascent:
    """From each start, ``steps`` normalised steps uphill inside the ball; the best of all iterates is kept.

        delta <- projection onto the ball of radius rho of  delta + s_t rho g / ||g||

    with g the gradient of the height with respect to the token and s_t = 0.3 (1 + cos(pi t / steps)) / 2. A climber
    ends

    * after its last step;
    * after a quarter and after half of the steps, if its largest height is below the median of its spot's climbers;
    * where g is zero or not finite;
    * on the sphere where g points straight out of the ball, because it would stay there;
    * for flips, as soon as any climber of its group has flipped.

    Its place in the batch goes to the next climber, so that batches stay full.

    Attributes:
        lost, flat: how many climbers ended at a gradient that is not finite, or zero.

    Arguments:
        spots, best: what is moved, and where the best changes are kept.
        ball_radii: (spots,) the radius of each ball, in the units of the tokens.
        steps: how many.
        groups: (spots,) all climbers of the spots of one group end together at a flip.
    """

    def __init__(self, spots: Spots, best: BestChanges, ball_radii: Tensor, steps: int, groups: Integers) -> None:
        self.spots, self.best, self.ball_radii, self.steps, self.groups = spots, best, ball_radii, steps, groups
        self.lost = self.flat = 0
        self._heights_at: dict[int, dict[int, list[float]]] = {math.ceil(share * steps): {} for share in _RUNGS}
        self._has_flipped = np.zeros(int(groups.max(initial=-1)) + 1, dtype=bool)  # (groups,)
        self._note_flips()

    def run(self, waiting: Climbers) -> None:
        """Ascend with all of these climbers; those of one spot stand side by side."""
        active = waiting[:0]
        while len(waiting) or len(active):
            while len(waiting) and len(active) < self.spots.room(int(waiting.rows[0])):
                places = self.spots.room(int(waiting.rows[0])) - len(active)
                active, waiting = active.join(self._unflipped(waiting[:places])), waiting[places:]
            if len(active):
                active = self._step(active)

    def _step(self, climbers: Climbers) -> Climbers:
        """The climbers one step further, without those that end."""
        rows, deltas = climbers.rows, climbers.deltas
        if (climbers.times == self.steps).all():
            try_changes(self.spots, self.best, rows, deltas)
            self._note_flips()
            return climbers[:0]
        gradient, heights = uphill_gradient(self.spots, self.best, rows, deltas, climbers.ways)
        uphill, is_usable = unit_vectors(gradient)
        self._count_ends(gradient, is_usable)
        radii = self.ball_radii[torch.from_numpy(rows)].to(deltas.dtype)[:, None]
        shares = torch.from_numpy(FIRST_STEP * 0.5 * (1 + np.cos(math.pi * climbers.times / self.steps)))
        moved = shorten_to(deltas + shares.to(deltas.dtype)[:, None] * radii * uphill, radii)
        stays = _points_out(deltas, uphill, radii)
        ahead = replace(climbers, deltas=moved, times=climbers.times + 1, tops=np.fmax(climbers.tops, heights))
        self._note_flips()
        goes_on = (is_usable & ~stays).numpy() & (climbers.times < self.steps) & self._is_in_upper_half(ahead)
        return self._unflipped(ahead[goes_on])

    def _is_in_upper_half(self, climbers: Climbers) -> NDArray[np.bool_]:
        """Whether each climber that is at a rung is in the upper half of its spot's climbers that have come there.

        True for climbers that are not at a rung.
        """
        is_upper = np.ones(len(climbers), dtype=bool)
        for time, heights in self._heights_at.items():
            there = np.flatnonzero(climbers.times == time)
            for place in there:
                heights.setdefault(int(climbers.rows[place]), []).append(float(climbers.tops[place]))
            for place in there:
                is_upper[place] = climbers.tops[place] >= _upper_median(heights[int(climbers.rows[place])])
        return is_upper

    def _count_ends(self, gradient: Tensor, is_usable: Tensor) -> None:
        """Count the climbers that end here because of their gradient."""
        if not bool(is_usable.all()):
            zero = int((gradient == 0).all(dim=1).sum())
            self.flat += zero
            self.lost += int((~is_usable).sum()) - zero

    def _note_flips(self) -> None:
        """Note the groups that have flipped."""
        if self.spots.objective.is_flip:
            self._has_flipped[self.groups[self.best.values > 0]] = True

    def _unflipped(self, climbers: Climbers) -> Climbers:
        """The climbers of groups that have not flipped."""
        is_open = ~self._has_flipped[self.groups[climbers.rows]]
        return climbers if is_open.all() else climbers[is_open]


def unit_vectors(vectors: Tensor) -> tuple[Tensor, Tensor]:
    """Vectors (batch, dim) divided by their norms, and (batch,) whether they have a direction.

    Vectors without one, zero or not finite, become zero.
    """
    largest = vectors.abs().amax(dim=1, keepdim=True)
    is_usable = (largest.isfinite() & (largest > 0))[:, 0]
    scaled = torch.where(is_usable[:, None], vectors / largest, 0.0)  # first by the largest: squares may underflow
    return scaled / vector_norm(scaled, dim=1, keepdim=True).clamp(min=1.0), is_usable


def shorten_to(deltas: Tensor, radii: Tensor) -> Tensor:
    """``deltas`` (batch, dim), with those that are longer than their radius (batch, 1) shortened to it."""
    size = vector_norm(deltas, dim=1, keepdim=True)
    return torch.where(size > radii, deltas * (radii / size), deltas)


def _points_out(deltas: Tensor, uphill: Tensor, radii: Tensor) -> Tensor:
    """(batch,) whether the projection would undo a step along the unit vectors ``uphill``."""
    along = (deltas * uphill).sum(dim=1, keepdim=True)
    return (along >= radii * (1 - _STRAIGHT))[:, 0]


def _upper_median(heights: list[float]) -> float:
    """The lowest height of the upper half, which includes the middle one."""
    return sorted(heights)[len(heights) // 2]
