"""An LSTM and a state-space model on bits that are fast to train: the same functions as in ``jostle.boolean.networks``.

The loops over bits there are for many networks at once without gradients. Their gradients are slow: the gradient of
indexing one bit is a tensor of all bits.
"""

import torch
from torch import Tensor, nn

from jostle.boolean.networks.lstm import BooleanLSTM, BooleanLSTMLayer
from jostle.boolean.networks.parts import check_bits, embed_bits
from jostle.boolean.networks.state_space import BooleanSelective, BooleanStateSpace
from jostle.models.ssm import scan


class BitLSTM(BooleanLSTM):
    """The LSTM of ``jostle.boolean.networks``, its layers by torch's own LSTM.

    Arguments:
        n: how many bits.
        depth: layers.
        dim: of the bit embedding.
        hidden: of the state of every layer.
    """

    def __init__(self, *, n: int, depth: int = 2, dim: int = 32, hidden: int = 34) -> None:
        super().__init__(n=n, depth=depth, dim=dim, hidden=hidden)

    def forward(self, bits: Tensor) -> Tensor:
        """Bits to logits, (batch, n) of -1 and 1 -> (batch,)."""
        check_bits(bits, self.n)
        inputs = embed_bits(bits, self.symbols)  # (batch, n, dim)
        weights: list[Tensor] = []
        for layer in self.layers:
            assert isinstance(layer, BooleanLSTMLayer)
            weights += [layer.input_weight, layer.state_weight]
        start = inputs.new_zeros(len(self.layers), len(inputs), self.readout.in_features)
        # No biases; one layer for each pair of weights; no dropout, not in training mode; one direction; batch first.
        found = torch.lstm(inputs, (start, start), weights, False, len(self.layers), 0.0, False, False, True)
        logits: Tensor = self.readout(found[0][:, -1]).squeeze(-1)
        return logits


class BitStateSpace(BooleanStateSpace):
    """The state-space model of ``jostle.boolean.networks``, its recurrence by ``jostle.models.ssm.scan``.

    Arguments:
        n: how many bits.
        depth: blocks.
        dim: of a token.
        state: numbers remembered for each channel.
    """

    def __init__(self, *, n: int, depth: int = 2, dim: int = 32, state: int = 4) -> None:
        super().__init__(n=n, depth=depth, dim=dim, state=state)
        self.mixers = nn.ModuleList(_Selective(dim, 2 * dim, state, 4) for _ in range(depth))


class _Selective(BooleanSelective):
    """The same layer with another loop."""

    def scan(self, driven: Tensor, step: Tensor, enter: Tensor, leave: Tensor) -> Tensor:
        return scan(driven, step, enter, leave, -self.log_decay.exp().mT)
