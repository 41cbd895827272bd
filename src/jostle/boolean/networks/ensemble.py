"""Many networks of one architecture evaluated at once."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn
from torch.func import functional_call, stack_module_state, vmap

State = tuple[dict[str, Tensor], dict[str, Tensor]]

_VALUES_AT_ONCE = 2**17  # of the widest layer: half a megabyte in float32 stays in a core's cache
_SMALL = 2**13  # a network with fewer values of its widest layer, over all inputs, costs calls and not arithmetic
_MOST = 64  # small networks at once


def best_batch(network: nn.Module, rows: int, n: int) -> int:
    """How many networks like this one are best evaluated at once at so many inputs of n bits.

    Measured on one core: at n = 4 and dim 16, 64 at once are 1 (mlp, mixer) to 4 times (lstm) as fast as one by one,
    since the calls cost more than the arithmetic; at n = 6 and dim 32 it makes little difference; at n = 10 and
    dim 64 the products of stacked matrices take 1 (lstm, state-space) to 2.5 times (transformer) as long.
    """
    return _MOST if rows * _width(network, n) <= _SMALL else 1


def logits(networks: Sequence[nn.Module], inputs: Tensor) -> Tensor:
    """The logit of every network at every input: (networks, rows), without gradients.

    The weights are stacked and the forward pass is mapped over them (a single network is simply called), a piece of
    the inputs at a time, so that memory does not grow with the number of inputs.

    Arguments:
        networks: modules of one architecture and of equal sizes, on bits.
        inputs: (rows, n), the same for all networks, or (networks, rows, n), those of each.
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
    """About how many values the widest layer has for one input: the longest side of a weight, at each token."""
    return (n + 1) * max(max(parameter.shape) for parameter in network.parameters() if parameter.ndim)
