"""Projected gradient ascent for one word: many starts at once, the best iterate kept.

It knows nothing of networks and inputs: what is ascended is a function of the changes of one word.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from jostle.errors import UsageError


@dataclass(frozen=True, eq=False)
class Ascent:
    """The best that was found from each start.

    Arguments:
        changes: (starts, dim), each no longer than asked.
        values: of the objective there, (starts,).
    """

    changes: Tensor
    values: Tensor

    @property
    def best(self) -> int:
        """Which start led highest."""
        return int(self.values.argmax())


def ascend(
    objective: Callable[[Tensor], Tensor], starts: Tensor, length: float, *, steps: int = 200, step: float = 0.3
) -> Ascent:
    """Maximise ``objective`` over changes no longer than ``length``, from each start.

    A step goes along the gradient, step * length * (1 + cos(pi t / steps)) / 2 far, and back into the ball, which is
    centred on the word as it is. Where the gradient is 0 or no number the change stays. The value of every iterate
    counts, the first one included, so that the result is never below the best start.

    >>> squares = lambda changes: (changes * torch.tensor([1.0, 3.0])).square().sum(1)
    >>> found = ascend(squares, torch.tensor([[1.0, 0.1]]), length=2.0)
    >>> [round(float(number), 6) for number in (found.values[0], found.changes[0].norm())]
    [36.0, 2.0]

    Arguments:
        objective: (count, dim) -> (count,), each value of its own row only, differentiable.
        starts: (count, dim); longer ones are put on the ball.
        length: the radius of the ball.
        steps: gradients.
        step: the first step in units of the radius.
    """
    if starts.ndim != 2 or len(starts) == 0 or not math.isfinite(length) or length < 0:
        raise UsageError(f"ascent needs starts (count, dim) and a finite length, got {tuple(starts.shape)}, {length}")
    changes = _inside(starts.detach(), length)
    best, values = changes, torch.full_like(changes[:, 0], -math.inf)
    for turn in range(steps + 1):
        asked = changes.clone().requires_grad_(turn < steps)
        found = objective(asked)
        better = found.detach() > values
        values = torch.where(better, found.detach(), values)
        best = torch.where(better[:, None], changes, best)
        if turn == steps:
            break
        (gradient,) = torch.autograd.grad(found.sum(), asked)
        size = torch.linalg.vector_norm(gradient, dim=1, keepdim=True)
        usable = size.isfinite() & (size > 0)
        rate = step * length * (1 + math.cos(math.pi * turn / steps)) / 2
        direction = torch.where(usable, gradient / torch.where(usable, size, 1.0), 0.0)
        changes = _inside(changes + rate * direction, length)
    return Ascent(best, values)


def _inside(changes: Tensor, length: float) -> Tensor:
    """The nearest changes that are no longer than ``length``."""
    sizes = torch.linalg.vector_norm(changes, dim=1, keepdim=True)
    inside: Tensor = changes * torch.where(sizes > length, length / sizes.clamp(min=1e-300), 1.0)
    return inside
