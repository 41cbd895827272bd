"""AdamW on one tensor that holds the weights of several networks."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from jostle.grokking.designs import Design


@dataclass
class AdamW:
    """Loshchilov and Hutter (1711.05101), each operation in the order of ``torch.optim.AdamW``.

    Everything is done number by number, so networks that share the tensor do not know of each other.

    Arguments:
        mean, square: moving averages of the gradient and of its square, like the weights.
        steps: done so far.
    """

    mean: Tensor
    square: Tensor
    steps: int = 0

    @classmethod
    def start(cls, weights: Tensor) -> "AdamW":
        """Before the first step."""
        return cls(torch.zeros_like(weights), torch.zeros_like(weights))

    @torch.no_grad()
    def step(self, weights: Tensor, gradient: Tensor, design: Design) -> None:
        """One step of ``weights``, in place."""
        self.steps += 1
        first, second = design.betas
        weights.mul_(1 - design.lr * design.weight_decay)
        self.mean.lerp_(gradient, 1 - first)
        self.square.mul_(second).addcmul_(gradient, gradient, value=1 - second)
        size = design.lr / (1 - first**self.steps)
        scale = self.square.sqrt().div_(math.sqrt(1 - second**self.steps)).add_(design.eps)
        weights.addcdiv_(self.mean, scale, value=-size)
