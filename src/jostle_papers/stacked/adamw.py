"""AdamW on one tensor that holds the weights of several networks."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

BETAS, EPS = (0.9, 0.999), 1e-8


@dataclass
class StackedAdamW:
    """Loshchilov and Hutter (1711.05101), each operation in the order of ``torch.optim.AdamW``.

    All operations are elementwise, so networks that share the tensor do not influence each other. Without weight decay
    it gives the bits of ``torch.optim.Adam``.

    Arguments:
        mean, square: moving averages of the gradient and of its square, shaped like the weights.
        steps: done so far.
    """

    mean: Tensor
    square: Tensor
    steps: int = 0

    @classmethod
    def start(cls, weights: Tensor) -> "StackedAdamW":
        """The optimiser before its first step."""
        return cls(torch.zeros_like(weights), torch.zeros_like(weights))

    @torch.no_grad()
    def step(
        self,
        weights: Tensor,
        gradient: Tensor,
        lr: Tensor | float,
        weight_decay: float,
        betas: tuple[float, float] = BETAS,
        eps: float = EPS,
    ) -> None:
        """One step of ``weights`` (networks, columns), in place.

        Arguments:
            weights, gradient: (networks, columns).
            lr: one learning rate, or one for each network, (networks, 1). A network with lr 0 stays as it is.
            weight_decay, betas, eps: the same for all networks.
        """
        self.steps += 1
        first, second = betas
        weights.mul_(1 - lr * weight_decay)
        self.mean.lerp_(gradient, 1 - first)
        self.square.mul_(second).addcmul_(gradient, gradient, value=1 - second)
        size = lr / (1 - first**self.steps)
        scale = self.square.sqrt().div_(math.sqrt(1 - second**self.steps)).add_(eps)
        if isinstance(size, Tensor):
            weights.addcdiv_(self.mean * size, scale, value=-1.0)
        else:
            weights.addcdiv_(self.mean, scale, value=-size)
