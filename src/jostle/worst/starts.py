"""Where an ascent begins: random draws, deletion, the steepest direction, known directions, the best so far."""

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
import torch
from torch import Tensor
from torch.linalg import vector_norm

from jostle.base.errors import UsageError
from jostle.sampling.plans import Integers
from jostle.tokens import Rows
from jostle.worst.ascent import BestChanges, shorten_to, try_changes, unit_vectors, uphill_gradient
from jostle.worst.objective import DOWN
from jostle.worst.spots import Floats, GradientFunction, Spots

Directions = Callable[[Integers, Integers], Tensor]
"""From inputs and positions, (n,) each, to directions (n, any number, dim)."""

_NEAR = 0.01  # of the radius: where the response is about linear
_TURNS = 3


class Start(NamedTuple):
    """One start of each spot.

    Arguments:
        deltas: (spots, dim) the changes to start from.
        way: which way a margin goes from there: ``DOWN``, ``UP``, ``EITHER`` or one of ``AIMS``.
    """

    deltas: Tensor
    way: int


@runtime_checkable
class OffersDirections(Protocol):
    """A model that knows directions in which a change of one token moves it far. Any model can have this method."""

    def starting_directions(self, tokens: Tensor, position: int) -> Tensor:
        """Directions (any number, dim) of any length for the token at ``position`` of one input (tokens, dim)."""


def try_draws(spots: Spots, best: BestChanges, rows: Integers, ball_radii: Tensor, draws: int) -> tuple[Floats, Floats]:
    """Responses and heights (len(rows), draws) of random changes on the sphere around each token.

    They are the draws of ``Sphere`` and ``Grid(draws)`` with the same seed. NaN where a response is not finite.
    """
    owner, draw = np.repeat(rows, draws), np.tile(np.arange(draws), len(rows))
    values, heights = np.empty(len(owner)), np.empty(len(owner))
    for cut in spots.cuts(owner):
        deltas = scale_to_radius(spots.directions(owner[cut], draw[cut]), ball_radii, owner[cut])
        values[cut], heights[cut] = try_changes(spots, best, owner[cut], deltas)
    return values.reshape(-1, draws), heights.reshape(-1, draws)


def best_draws(spots: Spots, rows: Integers, heights: Floats, ball_radii: Tensor, count: int) -> list[Tensor]:
    """The ``count`` best random changes of each spot, best first: a list of (len(rows), dim).

    Arguments:
        spots, rows: the spots.
        heights: (len(rows), draws) of ``try_draws``.
        ball_radii: (spots,) the radius of each ball.
        count: how many.
    """
    ranked = np.argsort(-np.where(np.isnan(heights), -np.inf, heights), axis=1, kind="stable")[:, :count]
    return [scale_to_radius(spots.directions(rows, draw), ball_radii, rows) for draw in ranked.T]


def deletions(spots: Spots, rows: Integers, ball_radii: Tensor) -> Tensor:
    """The change that makes each token zero, or brings it as close to zero as the ball allows."""
    chosen = torch.from_numpy(rows)
    return shorten_to(-spots.clean[chosen], ball_radii[chosen].to(spots.clean.dtype)[:, None])


def steepest_directions(spots: Spots, best: BestChanges, rows: Integers, ball_radii: Tensor) -> Tensor:
    """The unit direction (len(rows), dim) in which the response grows fastest near each clean token.

    Three gradients at changes of a hundredth of the radius, each in the direction of the last gradient. For a margin
    this is minus its gradient. For the norm of the change of many outputs it is a power iteration towards the top
    singular vector of their Jacobian, the direction that moves all outputs together. Where there is no gradient, the
    direction stays the random one of the beginning.
    """
    found = torch.empty(len(rows), spots.clean.shape[1], dtype=spots.clean.dtype)
    for cut in spots.cuts(rows):
        part = rows[cut]
        directions = spots.directions(part, np.zeros(len(part), dtype=np.int64))
        for _ in range(_TURNS):
            near = _NEAR * scale_to_radius(directions, ball_radii, part)
            gradient, _ = uphill_gradient(spots, best, part, near, torch.full((len(part),), DOWN))
            uphill, is_usable = unit_vectors(gradient)
            directions = torch.where(is_usable[:, None], uphill, directions)
        found[cut] = directions
    return found


def directions_of_model(function: GradientFunction) -> Directions | None:
    """The directions that a model offers for its rows, see ``OffersDirections``; None if it offers none."""
    model: Any = function.model
    if not isinstance(model, OffersDirections) or not isinstance(function.inputs.view, Rows):
        return None

    def directions(inputs: Integers, positions: Integers) -> Tensor:
        found: list[Tensor] = []
        for index, position in zip(inputs, positions, strict=True):
            tokens = function.inputs.batch(np.asarray([index]))[function.inputs.key][0]
            found.append(model.starting_directions(tokens, int(position)))
        return torch.stack(found)

    return directions


def known_directions(spots: Spots, rows: Integers, directions: Directions) -> list[Tensor]:
    """Directions from the user or the model, both ways, as unit vectors: a list of (len(rows), dim)."""
    answer = directions(spots.inputs[rows], spots.tokens[rows])
    dim = spots.clean.shape[1]
    is_tensor = isinstance(answer, Tensor) and answer.is_floating_point()
    if not is_tensor or answer.dim() != 3 or (len(answer), answer.shape[2]) != (len(rows), dim):
        found = tuple(answer.shape) if isinstance(answer, Tensor) else type(answer).__name__
        raise UsageError(
            f"directions(inputs, positions) gave {found} for {len(rows)} tokens; expected real numbers of shape "
            f"({len(rows)}, any number of directions, {dim})"
        )
    units = [unit_vectors(answer[:, number].detach().cpu().to(spots.clean))[0] for number in range(answer.shape[1])]
    return [sign * unit for unit in units for sign in (1.0, -1.0)]


def stretch_best(best: BestChanges, rows: Integers, ball_radii: Tensor) -> Tensor:
    """The best change so far, lengthened to the radius of this ball; zero where there is none."""
    deltas = best.deltas[torch.from_numpy(rows)]
    size = vector_norm(deltas, dim=1, keepdim=True)
    return scale_to_radius(deltas / torch.where(size > 0, size, 1.0), ball_radii, rows)


def scale_to_radius(directions: Tensor, ball_radii: Tensor, rows: Integers) -> Tensor:
    """Unit ``directions`` (len(rows), dim) scaled to the radius of the ball of their spot."""
    return directions * ball_radii[torch.from_numpy(rows)].to(directions.dtype)[:, None]
