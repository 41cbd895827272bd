"""Ensembles: many networks of one architecture, their random weights and their evaluation at once.

``redraw`` draws weights by one rule for all architectures, ``seed_of`` gives each network its own seed, and
``all_logits`` evaluates many networks at many inputs.
"""

import hashlib
from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn
from torch.func import functional_call, stack_module_state, vmap

from jostle.base import checks
from jostle.base.errors import UsageError
from jostle.base.randomness import torch_seed

State = tuple[dict[str, Tensor], dict[str, Tensor]]

_VALUES_AT_ONCE = 2**17  # of the widest layer: half a megabyte in float32 stays in a core's cache
_SMALL = 2**13  # below this number of values of the widest layer, over all inputs, calls cost more than arithmetic
_MOST = 64  # small networks at once

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
    checks.number("scale", scale, above=0, most=LARGEST_SCALE)
    if init == "default" and scale != 1:
        raise UsageError(f"scale={scale!r} has no meaning with init='default'; leave it out, or choose another init")


def redraw(network: nn.Module, init: str, scale: float = 1.0, *, seed: int) -> None:
    """Replace every weight of ``network``, in place, by a random one.

    ``uniform``: U(-scale, scale). ``gaussian``: N(0, scale^2). ``xavier-uniform`` and ``xavier-normal``: Glorot and
    Bengio 2010, with gain ``scale`` (embeddings are matrices too). ``default``: nothing changes. Biases become 0.
    Gains and shifts of normalisations stay, and so do the parameters that a module lists in ``keeps``. The rule for
    ``uniform`` and ``gaussian`` is that of Bhattamishra et al. 2023, who take scale 10.

    Arguments:
        seed: the weights are a function of the architecture, ``init``, ``scale`` and this number.
    """
    check_init(init, scale)
    if init == "default":
        return
    generator = torch.Generator().manual_seed(torch_seed(seed))
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
    """The seed of network number ``index``, 63 bits: a function of the three arguments alone.

    >>> seed_of(0, "weights", 1) == seed_of(0, "weights", 1), seed_of(0, "weights", 1) == seed_of(1, "weights", 0)
    (True, False)
    """
    digest = hashlib.sha256(f"{int(seed)}/{purpose}/{int(index)}".encode()).digest()
    return int.from_bytes(digest[:8], "big") >> 1


def best_batch(network: nn.Module, rows: int, n: int) -> int:
    """The fastest number of networks like this one to evaluate at once, at ``rows`` inputs of n bits.

    Measured on one core: at n = 4 and dim 16, 64 at once are 1 (mlp, mixer) to 4 times (lstm) as fast as one by one,
    since the calls cost more than the arithmetic; at n = 6 and dim 32 it makes little difference; at n = 10 and
    dim 64 the products of stacked matrices take 1 (lstm, state-space) to 2.5 times (transformer) as long.
    """
    return _MOST if rows * _width(network, n) <= _SMALL else 1


def all_logits(networks: Sequence[nn.Module], inputs: Tensor) -> Tensor:
    """The logit of every network at every input: (networks, rows), without gradients.

    The weights are stacked and the forward pass is mapped over them (a single network is called as it is). Inputs are
    taken a piece at a time, so that memory does not grow with their number.

    Arguments:
        networks: modules of one architecture and of equal sizes, on bits.
        inputs: (rows, n), the same for all networks, or (networks, rows, n), one set for each network.
    """
    rows = max(1, _VALUES_AT_ONCE // (len(networks) * _width(networks[0], inputs.shape[-1])))
    with torch.no_grad():
        if len(networks) == 1:
            pieces = torch.split(inputs.reshape(-1, inputs.shape[-1]), rows)
            return torch.cat([networks[0](piece) for piece in pieces])[None]
        state = stack_module_state(list(networks))
        mapped = vmap(_call(networks[0]), in_dims=(0, None if inputs.ndim == 2 else 0))
        return torch.cat([mapped(state, piece) for piece in torch.split(inputs, rows, dim=-2)], dim=1)


def _call(template: nn.Module) -> Callable[[State, Tensor], Tensor]:
    """The forward pass as a function of parameters and buffers."""

    def call(state: State, inputs: Tensor) -> Tensor:
        found: Tensor = functional_call(template, state, (inputs,))
        return found

    return call


def _width(network: nn.Module, n: int) -> int:
    """About the number of values of the widest layer for one input: the longest side of a weight, at each token."""
    return (n + 1) * max(max(parameter.shape) for parameter in network.parameters() if parameter.ndim)
