"""Multi-layer perceptrons on bits."""

from itertools import pairwise

from torch import Tensor, nn

from jostle.base import checks
from jostle.boolean.networks import register
from jostle.boolean.networks.parts import ACTIVATIONS, check_bits


@register("mlp")
class BooleanMLP(nn.Module):
    """(Linear -> activation) ``depth`` times, then Linear to the logit; the input is the vector of bits.

    Default weights and biases: those of torch's linear layer, U(-1, 1) / sqrt(number of inputs).

    Arguments:
        n: how many bits.
        depth: hidden layers.
        width: of every hidden layer.
        activation: ``relu``, ``gelu``, ``tanh`` or ``sigmoid``.
    """

    def __init__(self, *, n: int = 10, depth: int = 2, width: int = 64, activation: str = "relu") -> None:
        super().__init__()
        checks.sizes(n=n, depth=depth, width=width)
        checks.choice("activation", activation, ACTIVATIONS)
        self.n = n
        layers: list[nn.Module] = []
        for inputs, outputs in pairwise([n, *[width] * depth]):
            layers += [nn.Linear(inputs, outputs), ACTIVATIONS[activation]()]
        self.layers = nn.Sequential(*layers)
        self.readout = nn.Linear(width, 1)

    def forward(self, bits: Tensor) -> Tensor:
        """Bits to logits, (batch, n) of -1 and 1 -> (batch,)."""
        check_bits(bits, self.n)
        hidden = self.layers(bits.to(self.readout.weight.dtype))  # (batch, width)
        logits: Tensor = self.readout(hidden).squeeze(-1)
        return logits
