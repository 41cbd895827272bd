"""A network with all that has no place in a row of weights: a weight under two names, and a buffer."""

import torch
from torch import Tensor, nn


class Tied(nn.Module):
    """Two layers with one matrix, and a gain for each of their channels that is not trained."""

    def __init__(self, n: int, dim: int) -> None:
        super().__init__()
        self.enter, self.first, self.second = nn.Linear(n, dim), nn.Linear(dim, dim), nn.Linear(dim, dim)
        self.second.weight = self.first.weight
        self.register_buffer("gains", torch.linspace(0.5, 1.5, dim))
        self.readout = nn.Linear(dim, 1)

    def forward(self, bits: Tensor) -> Tensor:
        """(batch, n) -> (batch,)."""
        hidden = self.enter(bits.to(self.gains.dtype)).tanh()
        hidden = (self.gains * self.first(hidden)).tanh()
        found: Tensor = self.readout(self.second(hidden).tanh()).squeeze(-1)
        return found
