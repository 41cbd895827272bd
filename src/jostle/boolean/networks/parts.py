"""Layers and checks that several networks on bits share."""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from jostle.base.errors import UsageError

ACTIVATIONS: dict[str, Callable[[], nn.Module]] = {
    "relu": nn.ReLU,
    "gelu": nn.GELU,
    "tanh": nn.Tanh,
    "sigmoid": nn.Sigmoid,
}


def check_bits(bits: Tensor, n: int) -> None:
    """Raise unless ``bits`` is a batch of n bits, (batch, n)."""
    if bits.ndim != 2 or bits.shape[1] != n:
        raise UsageError(
            f"the network was built for a batch of {n} bits, (batch, {n}), got shape {tuple(bits.shape)}; "
            "pass n that matches"
        )


def embed_bits(bits: Tensor, table: Tensor) -> Tensor:
    """A vector for each bit: row 0 of ``table`` for -1, row 1 for +1; (batch, n) and (2, dim) to (batch, n, dim).

    Computed as (1 - x)/2 * row 0 + (1 + x)/2 * row 1, which is exact at -1 and 1, has a derivative in x and, unlike a
    look-up, is one matrix product for many networks at once.

    >>> embed_bits(torch.tensor([[-1.0, 1.0]]), torch.tensor([[5.0, 6.0], [7.0, 8.0]])).tolist()
    [[[5.0, 6.0], [7.0, 8.0]]]
    """
    x = bits.to(table.dtype)
    shares = torch.stack([1 - x, 1 + x], dim=-1) / 2  # (batch, n, 2)
    return shares @ table


def feed_forward(dim: int, hidden: int, activation: str) -> nn.Sequential:
    """Linear -> activation -> Linear on the last axis, dim -> hidden -> dim."""
    return nn.Sequential(nn.Linear(dim, hidden), ACTIVATIONS[activation](), nn.Linear(hidden, dim))
