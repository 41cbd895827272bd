"""Small finite networks whose wide limits are the kernels of this package.

All parameters are standard normal and all scales stand in the forward pass (the parameterisation of Jacot et al. 2018),
so that ``empirical.empirical_ntk`` and ``empirical.empirical_ck`` tend to ``kernel_spectrum`` and ``attention_gram`` as
the networks widen. For one hidden or attention layer their means over seeds agree at every width; deeper, up to order
1 / width. Softmax attention has no such kernel here: its empirical kernels are all there is.
"""

import math

import torch
from torch import Tensor, nn

from jostle.boolean.kernels.arguments import whole
from jostle.boolean.kernels.attention import READOUTS, default_scale
from jostle.boolean.kernels.recursions import Layers
from jostle.boolean.kernels.zonal import checked_layers
from jostle.registry import unknown_name

_PHI = {"relu": torch.relu, "erf": torch.erf}
_KINDS = "linear", "softmax"


class FiniteMlp(nn.Module):
    """h <- phi(sqrt(w / fan-in) W h + sqrt(b) bias), depth times, then a linear readout: ``recursions.mlp``.

    Arguments:
        n: bits.
        width: of every hidden layer.
        depth, activation, weight_variance, bias_variance: as in ``kernel_spectrum``.
        seed: of the parameters.
    """

    def __init__(
        self,
        n: int,
        *,
        width: int,
        depth: int = 1,
        activation: str = "relu",
        weight_variance: float | None = None,
        bias_variance: float = 0.0,
        seed: int,
    ) -> None:
        super().__init__()
        n, width = whole("n", n), whole("width", width)
        self.layers = checked_layers(depth, activation, weight_variance, bias_variance)
        depth = self.layers.depth
        self.phi = _PHI[activation]
        generator = torch.Generator().manual_seed(seed)
        self.weights = nn.ParameterList(_normal(generator, n if i == 0 else width, width) for i in range(depth))
        self.biases = nn.ParameterList(_normal(generator, width) for _ in range(depth))
        self.readout = _normal(generator, width + 1)

    def features(self, x: Tensor) -> Tensor:
        """(batch, n) to (batch, width + 1), scaled for a readout with standard normal weights."""
        hidden = x
        for weight, bias in zip(self.weights, self.biases, strict=True):
            hidden = self.phi(_affine(hidden, weight, bias, self.layers))
        scaled = hidden * math.sqrt(self.layers.weight_variance / hidden.shape[-1])
        return torch.cat([scaled, torch.full_like(scaled[:, :1], math.sqrt(self.layers.bias_variance))], dim=1)

    def forward(self, x: Tensor) -> Tensor:
        """(batch, n) to (batch,)."""
        return self.features(x) @ self.readout


class FiniteAttention(nn.Module):
    """Attention over T tokens of d bits, with an optional dense layer after each, then a linear readout.

    The logit of positions a and i in one head is (Q x_a)'(K x_i), of variance near 1. Linear attention multiplies it by
    scale^(-1/2); softmax attention takes the softmax over i. The heads' outputs are added. No residuals, no norms.

    Arguments:
        tokens, dim: T and d; inputs have T d bits.
        width: of the values and of the dense layers.
        heads, head_dim: of the queries and keys; the mean over seeds of a single layer depends on neither.
        kind: ``linear`` or ``softmax``.
        depth, readout, activation, weight_variance, bias_variance: as in ``attention_gram``.
        seed: of the parameters.
    """

    def __init__(
        self,
        tokens: int,
        dim: int,
        *,
        width: int,
        heads: int,
        head_dim: int = 4,
        kind: str = "linear",
        depth: int = 1,
        readout: str = "flatten",
        activation: str | None = None,
        weight_variance: float | None = None,
        bias_variance: float = 0.0,
        seed: int,
    ) -> None:
        super().__init__()
        for argument, value, known in (("attention", kind, _KINDS), ("readout", readout, READOUTS)):
            if value not in known:
                raise unknown_name(argument, value, known)
        width, heads, head_dim = whole("width", width), whole("heads", heads), whole("head_dim", head_dim)
        self.tokens, self.dim, self.kind, self.pools = tokens, dim, kind, readout == "mean"
        self.scale = default_scale(tokens, dim)
        self.layers = checked_layers(depth, activation, weight_variance, bias_variance)
        depth = self.layers.depth
        self.phi = _PHI[activation] if activation is not None else None
        generator = torch.Generator().manual_seed(seed)
        sizes = [dim] + [width] * (depth - 1)
        self.queries = nn.ParameterList(_normal(generator, heads, size, head_dim) for size in sizes)
        self.keys = nn.ParameterList(_normal(generator, heads, size, head_dim) for size in sizes)
        self.values = nn.ParameterList(_normal(generator, heads, size, width) for size in sizes)
        dense = depth if activation is not None else 0
        self.weights = nn.ParameterList(_normal(generator, width, width) for _ in range(dense))
        self.biases = nn.ParameterList(_normal(generator, width) for _ in range(dense))
        self.readout = _normal(generator, width if self.pools else tokens * width)

    def features(self, x: Tensor) -> Tensor:
        """(batch, n) to (batch, tokens * width) or (batch, width), scaled for a standard normal readout."""
        hidden = x.reshape(len(x), self.tokens, self.dim)  # (batch, T, d)
        for layer in range(self.layers.depth):
            hidden = self._attend(hidden, self.queries[layer], self.keys[layer], self.values[layer])
            if self.phi is not None:
                hidden = self.phi(_affine(hidden, self.weights[layer], self.biases[layer], self.layers))
        found = hidden.mean(1) if self.pools else hidden.flatten(1)
        return found / math.sqrt(found.shape[-1])

    def forward(self, x: Tensor) -> Tensor:
        """(batch, n) to (batch,)."""
        return self.features(x) @ self.readout

    def _attend(self, hidden: Tensor, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        size, head_dim = query.shape[-2:]
        heads = hidden[:, None] / math.sqrt(size)  # (batch, 1, T, size)
        logits = (heads @ query) @ (heads @ key).transpose(-1, -2) / math.sqrt(head_dim)  # (batch, heads, T, T)
        attention = logits / math.sqrt(self.scale) if self.kind == "linear" else logits.softmax(-1)
        return (attention @ (heads @ value)).sum(1) / math.sqrt(len(query))  # (batch, T, width)


def _affine(hidden: Tensor, weight: Tensor, bias: Tensor, layers: Layers) -> Tensor:
    scaled = hidden @ weight * math.sqrt(layers.weight_variance / hidden.shape[-1])
    return scaled + math.sqrt(layers.bias_variance) * bias


def _normal(generator: torch.Generator, *shape: int) -> nn.Parameter:
    return nn.Parameter(torch.randn(*shape, generator=generator))
