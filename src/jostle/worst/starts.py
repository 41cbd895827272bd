"""Where the ascent begins: draws, deletion, the steepest direction, directions that are given, and the last best."""

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor
from torch.linalg import vector_norm

from jostle.base.errors import UsageError
from jostle.sampling.plans import Integers
from jostle.tokens import Rows
from jostle.worst.ascent import Best, climbed, measured, unit, within
from jostle.worst.cells import DOWN, Cells, Floats, GradientFunction

Directions = Callable[[Integers, Integers], Tensor]

_NEAR = 0.01  # of the radius: where the response is about linear
_TURNS = 3


def drawn(cells: Cells, best: Best, rows: Integers, reach: Tensor, draws: int) -> tuple[Floats, Floats]:
    """Responses and heights (len(rows), draws) of random changes on the sphere of radius ``reach`` around each token.

    They are the draws of ``Sphere`` and ``Grid(draws)`` with the same seed; NaN where they are not finite.
    """
    owner, draw = np.repeat(rows, draws), np.tile(np.arange(draws), len(rows))
    values, heights = np.empty(len(owner)), np.empty(len(owner))
    for cut in cells.cuts(owner):
        deltas = at_reach(cells.directions(owner[cut], draw[cut]), reach, owner[cut])
        values[cut], heights[cut] = measured(cells, best, owner[cut], deltas)
    return values.reshape(-1, draws), heights.reshape(-1, draws)


def at_reach(directions: Tensor, reach: Tensor, rows: Integers) -> Tensor:
    """Unit ``directions`` (len(rows), dim) as changes as long as the radius of their cells."""
    return directions * reach[torch.from_numpy(rows)].to(directions.dtype)[:, None]


def deletion(cells: Cells, rows: Integers, reach: Tensor) -> Tensor:
    """The change that makes each token zero, or brings it as near to zero as the ball allows."""
    return within(-cells.clean[torch.from_numpy(rows)], reach[torch.from_numpy(rows)].to(cells.clean.dtype)[:, None])


def steepest(cells: Cells, best: Best, rows: Integers, reach: Tensor) -> Tensor:
    """The unit direction (len(rows), dim) in which the response of each cell grows fastest near its clean token.

    Three gradients at changes of a hundredth of the radius, each along the last. For a margin it is minus its
    gradient; for the norm of the change of many outputs it is a power iteration towards the top singular vector of
    their Jacobian, the direction that moves all of them at once. Where there is no gradient it stays the random one it
    began with.
    """
    found = torch.empty(len(rows), cells.clean.shape[1], dtype=cells.clean.dtype)
    for cut in cells.cuts(rows):
        part = rows[cut]
        directions = cells.directions(part, np.zeros(len(part), dtype=np.int64))
        for _ in range(_TURNS):
            near = _NEAR * at_reach(directions, reach, part)
            uphill, is_usable = unit(climbed(cells, best, part, near, torch.full((len(part),), DOWN))[0])
            directions = torch.where(is_usable[:, None], uphill, directions)
        found[cut] = directions
    return found


def suggested(function: GradientFunction) -> Directions | None:
    """Directions that a feature map knows of itself, ``one_word(words, position).directions()``; None for others."""
    one_word = getattr(function.model, "one_word", None)
    if not callable(one_word) or not isinstance(function.inputs.view, Rows):
        return None

    def directions(inputs: Integers, positions: Integers) -> Tensor:
        found: list[Tensor] = []
        for index, position in zip(inputs, positions, strict=True):
            words = function.inputs.batch(np.asarray([index]))[function.inputs.key][0]
            found.append(one_word(words, int(position)).directions())
        return torch.stack(found)

    return directions


def given(cells: Cells, rows: Integers, directions: Directions) -> list[Tensor]:
    """The user's directions, both ways, as unit vectors: a list of (len(rows), dim)."""
    answer = directions(cells.inputs[rows], cells.tokens[rows])
    dim = cells.clean.shape[1]
    is_tensor = isinstance(answer, Tensor) and answer.is_floating_point()
    if not is_tensor or answer.dim() != 3 or (len(answer), answer.shape[2]) != (len(rows), dim):
        found = tuple(answer.shape) if isinstance(answer, Tensor) else type(answer).__name__
        raise UsageError(
            f"directions(inputs, positions) gave {found} for {len(rows)} tokens; expected real numbers of shape "
            f"({len(rows)}, any number of directions, {dim})"
        )
    ways = [unit(answer[:, number].detach().cpu().to(cells.clean))[0] for number in range(answer.shape[1])]
    return [sign * way for way in ways for sign in (1.0, -1.0)]


def top_draws(cells: Cells, rows: Integers, heights: Floats, reach: Tensor, count: int) -> list[Tensor]:
    """The changes of the ``count`` best draws of each cell, best first: a list of (len(rows), dim)."""
    ranked = np.argsort(-np.where(np.isnan(heights), -np.inf, heights), axis=1, kind="stable")[:, :count]
    return [at_reach(cells.directions(rows, draw), reach, rows) for draw in ranked.T]


def stretched(best: Best, rows: Integers, reach: Tensor) -> Tensor:
    """The best change so far, as long as the radius now is; zero where there is none."""
    deltas = best.deltas[torch.from_numpy(rows)]
    size = vector_norm(deltas, dim=1, keepdim=True)
    return at_reach(deltas / torch.where(size > 0, size, 1.0), reach, rows)
