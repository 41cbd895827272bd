"""MLP-Mixer on bits."""

import torch
from torch import Tensor, nn

from jostle.base import checks
from jostle.boolean.networks import register
from jostle.boolean.networks.parts import ACTIVATIONS, check_bits, embed_bits, feed_forward

READS = ("mean", "last")


@register("mixer")
class BooleanMixer(nn.Module):
    """Bit embedding -> blocks that mix positions, then channels -> LayerNorm -> pool -> Linear to the logit.

    Source: Tolstikhin et al. 2021, "MLP-Mixer" (2105.01601). No position embedding: each position has its
    own mixing weights.

    Default weights: embedding N(0, 1), all others as in torch's linear layers.

    Arguments:
        n: how many bits.
        depth: blocks.
        dim: channels of a position.
        position_dim: hidden width of the mixing of positions.
        mlp_dim: hidden width of the mixing of channels.
        activation: ``gelu`` in the paper; also ``relu``, ``tanh``, ``sigmoid``.
        read: ``mean`` over the positions (the paper) or the ``last`` position.
    """

    def __init__(
        self,
        *,
        n: int = 10,
        depth: int = 2,
        dim: int = 64,
        position_dim: int = 32,
        mlp_dim: int = 128,
        activation: str = "gelu",
        read: str = "mean",
    ) -> None:
        super().__init__()
        checks.sizes(n=n, depth=depth, dim=dim, position_dim=position_dim, mlp_dim=mlp_dim)
        checks.choice("activation", activation, ACTIVATIONS)
        checks.choice("read", read, READS)
        self.n, self.read = n, read
        self.symbols = nn.Parameter(torch.randn(2, dim))
        blocks = [BooleanMixerBlock(n, dim, position_dim, mlp_dim, activation) for _ in range(depth)]
        self.blocks = nn.Sequential(*blocks)
        self.norm = nn.LayerNorm(dim)
        self.readout = nn.Linear(dim, 1)

    def forward(self, bits: Tensor) -> Tensor:
        """Bits to logits, (batch, n) of -1 and 1 -> (batch,)."""
        check_bits(bits, self.n)
        tokens = self.norm(self.blocks(embed_bits(bits, self.symbols)))  # (batch, n, dim)
        pooled = tokens.mean(dim=1) if self.read == "mean" else tokens[:, -1]  # (batch, dim)
        logits: Tensor = self.readout(pooled).squeeze(-1)
        return logits


class BooleanMixerBlock(nn.Module):
    """x + mix of positions(norm(x)), then x + mix of channels(norm(x)); (batch, n, dim) in and out."""

    def __init__(self, n: int, dim: int, position_dim: int, mlp_dim: int, activation: str) -> None:
        super().__init__()
        self.position_norm, self.position_mlp = nn.LayerNorm(dim), feed_forward(n, position_dim, activation)
        self.channel_norm, self.channel_mlp = nn.LayerNorm(dim), feed_forward(dim, mlp_dim, activation)

    def forward(self, tokens: Tensor) -> Tensor:
        """One block, (batch, n, dim) -> (batch, n, dim)."""
        tokens = tokens + self.position_mlp(self.position_norm(tokens).mT).mT
        mixed: Tensor = tokens + self.channel_mlp(self.channel_norm(tokens))
        return mixed
