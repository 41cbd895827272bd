"""Norms of a token, what may stand in their place, and where they stand.

A norm gives every token about the same length, whatever its length was. The choice is an option of those networks of
the zoo that mix tokens, so that two networks can differ in their norms and in nothing else.
"""

import torch
from torch import Tensor, nn

from jostle.base import checks

NORMS = ("layer", "rms", "dyt", "none")
PLACES = ("everywhere", "tokens", "blocks")
START = 0.5  # alpha of a fresh ``DynamicTanh``, as in its paper


class DynamicTanh(nn.Module):
    """weight * tanh(alpha x) + bias, number by number: Zhu et al. 2025, "Transformers without normalization".

    (2503.10622.) It bounds every number of a token, as a norm does, but looks at no other number: a token is not
    divided by its length. ``alpha``, one number, is learned.

    >>> DynamicTanh(2)(torch.tensor([[0.0, 1000.0]])).tolist()
    [[0.0, 1.0]]
    """

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.alpha = nn.Parameter(torch.tensor(START, dtype=torch.get_default_dtype()))
        self.weight = nn.Parameter(torch.ones(dim))
        self.bias = nn.Parameter(torch.zeros(dim))

    def forward(self, tokens: Tensor) -> Tensor:
        """(..., dim) -> (..., dim)."""
        bounded: Tensor = self.weight * torch.tanh(self.alpha * tokens) + self.bias
        return bounded


class Norms:
    """The norms of one network: their kind, and whether a place has them.

    Arguments:
        kind: ``layer`` (LayerNorm, Ba et al. 2016, 1607.06450), ``rms`` (RMSNorm, Zhang and Sennrich 2019, 1910.07467),
            ``dyt`` (``DynamicTanh``) or ``none``.
        place: ``tokens``, only where tokens are made from the input; ``blocks``, only in the blocks and after the last
            one; or ``everywhere``.
    """

    def __init__(self, kind: str, place: str) -> None:
        self.kind = checks.choice("norm", kind, NORMS)
        self.place = checks.choice("norm_place", place, PLACES)

    def on_tokens(self, dim: int) -> nn.Module:
        """The norm of ``dim`` numbers where tokens are made, or nothing."""
        return nn.Identity() if self.place == "blocks" else make_norm(self.kind, dim)

    def in_blocks(self, dim: int) -> nn.Module:
        """The norm of ``dim`` numbers in a block, or nothing."""
        return nn.Identity() if self.place == "tokens" else make_norm(self.kind, dim)


def make_norm(kind: str, dim: int) -> nn.Module:
    """A norm over the last ``dim`` numbers; for ``none`` it changes nothing.

    RMSNorm has LayerNorm's eps of 1e-5 here, as a token may be all zeros.

    >>> make_norm("rms", 2)(torch.tensor([[3.0, 3.0]])).round(decimals=4).tolist()
    [[1.0, 1.0]]
    """
    if kind == "layer":
        return nn.LayerNorm(dim)
    if kind == "rms":
        return nn.RMSNorm(dim, eps=1e-5)
    return DynamicTanh(dim) if kind == "dyt" else nn.Identity()
