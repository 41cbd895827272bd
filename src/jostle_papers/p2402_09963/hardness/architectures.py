"""The networks of a ``HardnessDesign`` by name, made from those of ``jostle.models`` and ``jostle.boolean.networks``.

Paper 2's law is proved for transformers. The other networks have about as many weights, with and without norms, so that
the same plan can train them and the same measures apply. To add one, decorate a function with ``register``: from n,
dim, depth and heads to a module from (batch, n) of -1 and 1 to (batch,), of layers that ``torch.func.vmap`` can map
over weights.
"""

from collections.abc import Callable
from typing import Protocol

from torch import Tensor, nn
from torch.func import functional_call, vmap

from jostle.base.errors import UsageError
from jostle.base.registry import Registry
from jostle.boolean.networks.lstm import BooleanLSTM
from jostle.boolean.networks.mlp import BooleanMLP
from jostle.boolean.networks.state_space import BooleanStateSpace
from jostle.models.bit_encoder import BitEncoder, check_even
from jostle_papers.p2402_09963.hardness import passes
from jostle_papers.p2402_09963.hardness.passes import Weights

WIDER = 4  # width of an MLP's layers as a multiple of dim: it then has about as many weights as the other networks


class Builder(Protocol):
    """A registered function that makes networks."""

    def __call__(self, n: int, *, dim: int, depth: int, heads: int) -> nn.Module:
        """An untrained network for n bits, with weights from torch's random state and in its default type."""


ARCHITECTURES = Registry[Builder]("architecture")
names = ARCHITECTURES.names
register = ARCHITECTURES.register


@register("transformer")
def transformer(n: int, *, dim: int, depth: int, heads: int) -> nn.Module:
    """Paper 2's ``BitEncoder``: post-norm, read at the last bit; also reads shorter strings."""
    return BitEncoder(max_length=n, dim=dim, depth=depth, heads=heads)


@register("transformer-without-norm")
def transformer_without_norm(n: int, *, dim: int, depth: int, heads: int) -> nn.Module:
    """``transformer`` with the same weights and without its layer norms: x + attention(x), x + mlp(x)."""
    network = BitEncoder(max_length=n, dim=dim, depth=depth, heads=heads)
    for block in network.blocks:
        block.attention_norm, block.mlp_norm = nn.Identity(), nn.Identity()
    return network


@register("mlp")
def mlp(n: int, *, dim: int, depth: int, heads: int) -> nn.Module:  # noqa: ARG001
    """``depth`` hidden ReLU layers of 4 dim on the vector of bits."""
    return BooleanMLP(n=n, depth=depth, width=WIDER * dim)


@register("mlp-with-norm")
def mlp_with_norm(n: int, *, dim: int, depth: int, heads: int) -> nn.Module:  # noqa: ARG001
    """``mlp`` with the same weights and a LayerNorm between every hidden linear layer and its ReLU."""
    network = BooleanMLP(n=n, depth=depth, width=WIDER * dim)
    parts: list[nn.Module] = []
    for layer in network.layers:
        parts += [layer, nn.LayerNorm(WIDER * dim)] if isinstance(layer, nn.Linear) else [layer]
    network.layers = nn.Sequential(*parts)
    return network


@register("lstm")
def lstm(n: int, *, dim: int, depth: int, heads: int) -> nn.Module:  # noqa: ARG001
    """``depth`` LSTM layers of ``dim`` with biases, read at the last state; no norm; also reads shorter strings."""
    return BooleanLSTM(n=n, depth=depth, dim=dim, hidden=dim, bias=True)


@register("state-space")
def state_space(n: int, *, dim: int, depth: int, heads: int) -> nn.Module:  # noqa: ARG001
    """``depth`` selective state-space blocks of 2 dim channels, each after an RMSNorm, read at the last bit.

    A channel remembers 4 numbers. Its class has 8 by default; strings are short, and half of them takes half the time.
    """
    return BooleanStateSpace(n=n, depth=depth, dim=dim, state=4)


def takes_shorter(architecture: str) -> bool:
    """Whether a network for n bits also reads shorter strings, as a curriculum needs."""
    return architecture in _ENCODERS + _RECURRENT


def check_sizes(architecture: str, *, dim: int, depth: int, heads: int) -> None:
    """Raise for sizes that an encoder cannot have, before it is made; other networks take all sizes."""
    if architecture not in _ENCODERS:
        return
    if depth < 2:
        raise UsageError(f"depth={depth} must be at least 2: the first block and the last are computed in special ways")
    check_even(dim)
    if dim % heads:
        raise UsageError(f"dim={dim} must be a multiple of heads={heads}")


def evaluation(architecture: str, template: nn.Module, heads: int) -> Callable[[Weights, Tensor], Tensor]:
    """Outputs (networks, batch) as a function of weights, each (networks, ...), and strings (networks, batch, tokens).

    Encoders are computed by ``passes``. Other networks are mapped over their weights by torch's ``vmap``; a single
    network is called.

    Arguments:
        architecture: by name.
        template: a network of these sizes; its weights are not used.
        heads: of attention.
    """
    if architecture in _ENCODERS:
        return lambda weights, bits: passes.outputs(weights, bits, heads)

    def call(weights: dict[str, Tensor], bits: Tensor) -> Tensor:
        # These take strings of every length, though their classes check the length they were made for.
        if isinstance(template, BooleanLSTM | BooleanStateSpace):
            template.n = bits.shape[-1]
        found: Tensor = functional_call(template, weights, (bits,))
        return found

    def outputs(weights: Weights, bits: Tensor) -> Tensor:
        if len(bits) == 1:  # plain products are faster than stacked ones
            return call({name: weight[0] for name, weight in weights.items()}, bits[0]).unsqueeze(0)
        return vmap(call)(dict(weights), bits)

    return outputs


_ENCODERS = ("transformer", "transformer-without-norm")
_RECURRENT = ("lstm", "state-space")
