"""Long short-term memory on bits, read at its last state."""

import torch
from torch import Tensor, nn

from jostle.base import checks
from jostle.boolean.networks import register
from jostle.boolean.networks.parts import check_bits, embed_bits


@register("lstm")
class BooleanLSTM(nn.Module):
    """Bit embedding -> LSTM layers, first bit first -> Linear of the last state of the top layer.

    Source: Hochreiter and Schmidhuber 1997, with the forget gate of Gers et al. 2000. Bhattamishra et al. 2023
    ("Simplicity bias in transformers and their ability to learn sparse Boolean functions") take hidden 64, depth 2
    and no biases, as here.

    Default weights: embedding N(0, 1), layers U(-1, 1) / sqrt(hidden), read-out as in a linear layer of torch.

    Differs: one bias for each gate; torch's own LSTM has two, of which only the sum matters.

    Arguments:
        n: how many bits.
        depth: layers.
        dim: of the bit embedding.
        hidden: of the state of every layer.
        bias: whether the gates have biases.
    """

    def __init__(self, *, n: int = 10, depth: int = 2, dim: int = 64, hidden: int = 64, bias: bool = False) -> None:
        super().__init__()
        checks.sizes(n=n, depth=depth, dim=dim, hidden=hidden)
        self.n = n
        self.symbols = nn.Parameter(torch.randn(2, dim))
        widths = [dim, *[hidden] * (depth - 1)]
        self.layers = nn.Sequential(*[BooleanLSTMLayer(width, hidden, bias) for width in widths])
        self.readout = nn.Linear(hidden, 1)

    def forward(self, bits: Tensor) -> Tensor:
        """Bits to logits, (batch, n) of -1 and 1 -> (batch,)."""
        check_bits(bits, self.n)
        states = self.layers(embed_bits(bits, self.symbols))  # (batch, n, hidden)
        logits: Tensor = self.readout(states[:, -1]).squeeze(-1)
        return logits


class BooleanLSTMLayer(nn.Module):
    """One layer: c_t = f c_{t-1} + i g, h_t = o tanh(c_t), from h_0 = c_0 = 0.

    i, f, o = sigmoid and g = tanh of the four blocks, in the order i, f, g, o, of W x_t + U h_{t-1} + b.
    """

    def __init__(self, dim: int, hidden: int, bias: bool) -> None:
        super().__init__()
        reach = hidden**-0.5
        self.input_weight = nn.Parameter(torch.empty(4 * hidden, dim).uniform_(-reach, reach))
        self.state_weight = nn.Parameter(torch.empty(4 * hidden, hidden).uniform_(-reach, reach))
        self.bias = nn.Parameter(torch.empty(4 * hidden).uniform_(-reach, reach)) if bias else None

    def forward(self, inputs: Tensor) -> Tensor:
        """All states, (batch, steps, dim) -> (batch, steps, hidden)."""
        driven = nn.functional.linear(inputs, self.input_weight, self.bias)  # (batch, steps, 4 * hidden)
        cell = state = torch.zeros_like(driven[:, 0, : self.state_weight.shape[1]])  # (batch, hidden)
        states = []
        for step in range(inputs.shape[1]):
            gates = driven[:, step] + state @ self.state_weight.mT  # (batch, 4 * hidden)
            enter, keep, candidate, leave = gates.chunk(4, dim=-1)
            cell = keep.sigmoid() * cell + enter.sigmoid() * candidate.tanh()
            state = leave.sigmoid() * cell.tanh()
            states.append(state)
        return torch.stack(states, dim=1)
