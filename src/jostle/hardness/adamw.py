"""AdamW on one tensor that holds the weights of several networks, each with a learning rate of its own."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

BETAS, EPS = (0.9, 0.999), 1e-8


@dataclass
class AdamW:
    """Loshchilov and Hutter (1711.05101), each operation in the order of ``torch.optim.AdamW``.

    Everything is done number by number, so networks that share the tensor do not know of each other. A network whose
    lr is 0 stays as it is.

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
    def step(self, weights: Tensor, gradient: Tensor, lr: Tensor, weight_decay: float) -> None:
        """One step of ``weights`` (networks, columns), in place, with one lr a network, (networks, 1)."""
        self.steps += 1
        first, second = BETAS
        weights.mul_(1 - lr * weight_decay)
        self.mean.lerp_(gradient, 1 - first)
        self.square.mul_(second).addcmul_(gradient, gradient, value=1 - second)
        scale = self.square.sqrt().div_(math.sqrt(1 - second**self.steps)).add_(EPS)
        weights.addcdiv_(self.mean * (lr / (1 - first**self.steps)), scale, value=-1.0)
