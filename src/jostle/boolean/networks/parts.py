"""What several networks on bits share: reading the bits and the names of the activations.

Random weights by a rule that is the same for every architecture, and the seed of each network of an ensemble.
"""

import hashlib
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor, nn

from jostle.base import checks
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

    Written as (1 - x)/2 * row 0 + (1 + x)/2 * row 1, which is exact at -1 and 1, has a derivative in x and, unlike a
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


Draw = Callable[[Tensor, float, torch.Generator], Tensor]

INITS: dict[str, Draw] = {
    "uniform": lambda weight, scale, source: nn.init.uniform_(weight, -scale, scale, generator=source),
    "gaussian": lambda weight, scale, source: nn.init.normal_(weight, 0.0, scale, generator=source),
    "xavier-uniform": lambda weight, scale, source: nn.init.xavier_uniform_(weight, scale, generator=source),
    "xavier-normal": lambda weight, scale, source: nn.init.xavier_normal_(weight, scale, generator=source),
}
NAMES = ("default", *INITS)
LARGEST_SCALE = 100  # far beyond it a variance in LayerNorm overflows float32, which returns 0 without a warning


def check_init(init: str, scale: float) -> None:
    """Raise unless ``init`` is known and ``scale`` is a positive number that it uses."""
    checks.choice("init", init, NAMES)
    if isinstance(scale, bool) or not isinstance(scale, int | float | np.number) or not 0 < scale <= LARGEST_SCALE:
        raise UsageError(f"scale must be a number above 0 and up to {LARGEST_SCALE}, got {scale!r}")
    if init == "default" and scale != 1:
        raise UsageError(f"scale={scale!r} has no meaning with init='default'; leave it out, or choose another init")


def redraw(network: nn.Module, init: str, scale: float = 1.0, *, seed: int) -> None:
    """Draw every weight of ``network`` anew, in place.

    ``uniform``: U(-scale, scale). ``gaussian``: N(0, scale^2). ``xavier-uniform`` and ``xavier-normal``: Glorot and
    Bengio 2010, with gain ``scale`` (embeddings are matrices too). ``default``: nothing changes. Biases become 0;
    gains and shifts of normalisations and the parameters that a module lists in ``keeps`` stay. The rule for
    ``uniform`` and ``gaussian`` is that of Bhattamishra et al. 2023, who take scale 10.

    Arguments:
        seed: the weights are a function of the architecture, ``init``, ``scale`` and this number.
    """
    check_init(init, scale)
    if init == "default":
        return
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for module in network.modules():
            if isinstance(module, nn.LayerNorm):
                continue
            keeps: frozenset[str] = getattr(module, "keeps", frozenset())
            for name, parameter in module.named_parameters(recurse=False):
                if name == "bias":
                    parameter.zero_()
                elif name not in keeps:
                    INITS[init](parameter, scale, generator)


def seed_of(seed: int, purpose: str, index: int) -> int:
    """The seed of thing number ``index``: 63 bits that depend on these three and on nothing else.

    >>> seed_of(0, "weights", 1) == seed_of(0, "weights", 1), seed_of(0, "weights", 1) == seed_of(1, "weights", 0)
    (True, False)
    """
    digest = hashlib.sha256(f"{int(seed)}/{purpose}/{int(index)}".encode()).digest()
    return int.from_bytes(digest[:8], "big") >> 1
