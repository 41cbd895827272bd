"""The encoder of paper 2 (2402.09963): post-norm blocks on bits and positions, read at the last bit.

It takes (batch, tokens) of -1 and 1 and returns one number for each string. ``jostle.boolean.networks`` has other
networks on bits, each for one length, to be studied with random weights; this is the network that the paper trains.
"""

import copy

import torch
from torch import Tensor, nn

from jostle.base import checks
from jostle.base.errors import UsageError
from jostle.models import register_bits


def check_strings(bits: Tensor, longest: int, name: str = "bits") -> None:
    """Raise unless ``bits`` is a batch of strings, (batch, tokens), not empty and not longer than ``longest``."""
    if bits.ndim != 2 or not 1 <= bits.shape[1] <= longest:
        raise UsageError(
            f"{name} of shape {tuple(bits.shape)} must be (batch, tokens) with 1 to {longest} tokens; pass a larger "
            "max_length for longer strings"
        )


@register_bits("bit-encoder")
class BitEncoder(nn.Module):
    """Bit and position side by side -> ``depth`` post-norm blocks -> Linear at the last bit: a number for each string.

    Paper 2 (2402.09963): two layers, two heads, dim 128, a feed-forward layer as wide as a token, ReLU, no dropout, no
    mask, no final norm; 199,425 parameters without positions. Bits and positions have dim / 2 numbers each, from
    N(0, 1). Queries, keys and values start from U(-1, 1) sqrt(3 / (2 dim)), other matrices from
    U(-1, 1) / sqrt(inputs), attention biases from 0. All blocks start from the same weights, since torch's encoder, of
    which the released code is made, copies one layer.

    Every block is evaluated at all tokens, so that ``jostle.landscape.layernorm_blowup`` sees all of them;
    ``jostle_papers.p2402_09963.hardness`` trains the same function faster.

    >>> network = BitEncoder(max_length=5, dim=8)
    >>> tuple(network(torch.ones(7, 5)).shape), tuple(network(torch.ones(7, 3)).shape)
    ((7,), (7,))

    Arguments:
        max_length: most bits of a string; as many positions are learned.
        dim: of a token, even: half is the bit, half the position.
        depth: blocks.
        heads: of attention; must divide dim.
        mlp_dim: hidden width of the feed-forward layers; dim unless given.
        norm_eps: added to the variance in LayerNorm.
        equal_blocks: whether all blocks start from the same weights.
    """

    def __init__(
        self,
        *,
        max_length: int = 10,
        dim: int = 128,
        depth: int = 2,
        heads: int = 2,
        mlp_dim: int | None = None,
        norm_eps: float = 1e-5,
        equal_blocks: bool = True,
    ) -> None:
        super().__init__()
        mlp_dim = dim if mlp_dim is None else mlp_dim
        checks.sizes(max_length=max_length, dim=dim, depth=depth, heads=heads, mlp_dim=mlp_dim)
        checks.number("norm_eps", norm_eps, least=0)
        checks.truth("equal_blocks", equal_blocks)
        check_even(dim)
        self.max_length = max_length
        self.symbols = nn.Parameter(torch.randn(2, dim // 2))  # of -1 and of 1
        self.positions = nn.Parameter(torch.randn(max_length, dim // 2))
        blocks = [BitEncoderBlock(dim, heads, mlp_dim, norm_eps) for _ in range(1 if equal_blocks else depth)]
        self.blocks = nn.ModuleList(blocks + [copy.deepcopy(blocks[0]) for _ in range(depth - len(blocks))])
        self.readout = nn.Linear(dim, 1)

    def forward(self, bits: Tensor) -> Tensor:
        """Strings to numbers, (batch, tokens) of -1 and 1 -> (batch,)."""
        check_strings(bits, self.max_length)
        tokens = join_positions((bits > 0).long(), self.symbols, self.positions)
        for block in self.blocks:
            tokens = block(tokens)
        outputs: Tensor = self.readout(tokens[:, -1]).squeeze(-1)
        return outputs


class BitEncoderBlock(nn.Module):
    """norm(x + attention(x)), then norm(x + mlp(x)); tokens in, tokens out."""

    def __init__(self, dim: int, heads: int, mlp_dim: int, norm_eps: float) -> None:
        super().__init__()
        self.attention = BitAttention(dim, heads)
        self.attention_norm = nn.LayerNorm(dim, norm_eps)
        self.mlp = nn.Sequential(nn.Linear(dim, mlp_dim), nn.ReLU(), nn.Linear(mlp_dim, dim))
        self.mlp_norm = nn.LayerNorm(dim, norm_eps)

    def forward(self, tokens: Tensor) -> Tensor:
        """One block, (batch, tokens, dim) -> (batch, tokens, dim)."""
        mixed = self.attention_norm(tokens + self.attention(tokens, tokens))
        after: Tensor = self.mlp_norm(mixed + self.mlp(mixed))
        return after


class BitAttention(nn.Module):
    """Softmax attention of tokens to others, with the scores written out, so that torch can map it over weights."""

    def __init__(self, dim: int, heads: int) -> None:
        super().__init__()
        if dim % heads:
            raise UsageError(f"dim={dim} must be a multiple of heads={heads}")
        self.heads = heads
        self.to_query, self.to_key, self.to_value = nn.Linear(dim, dim), nn.Linear(dim, dim), nn.Linear(dim, dim)
        self.to_out = nn.Linear(dim, dim)
        for layer in (self.to_query, self.to_key, self.to_value):
            nn.init.xavier_uniform_(layer.weight, gain=0.5**0.5)  # as one matrix of 3 dim rows would be drawn
        for layer in (self.to_query, self.to_key, self.to_value, self.to_out):
            nn.init.zeros_(layer.bias)

    def forward(self, tokens: Tensor, others: Tensor, *, is_causal: bool = False) -> Tensor:
        """``tokens`` (batch, tokens, dim) gather from ``others``; if causal, token i from the first i + 1."""
        query = self._by_head(self.to_query(tokens))  # (batch, heads, tokens, dim / heads)
        key, value = self._by_head(self.to_key(others)), self._by_head(self.to_value(others))
        scores = query @ key.mT * key.shape[-1] ** -0.5  # (batch, heads, tokens, others)
        if is_causal:
            later = torch.ones(scores.shape[-2:], dtype=torch.bool, device=scores.device).triu(1)
            scores = scores.masked_fill(later, -torch.inf)
        gathered: Tensor = self.to_out((scores.softmax(dim=-1) @ value).transpose(1, 2).flatten(2))
        return gathered

    def _by_head(self, vectors: Tensor) -> Tensor:
        return vectors.reshape(*vectors.shape[:2], self.heads, -1).transpose(1, 2)


def join_positions(ids: Tensor, symbols: Tensor, positions: Tensor) -> Tensor:
    """Tokens (batch, tokens, dim): the vector of each symbol, and next to it the vector of its position."""
    return torch.cat([symbols[ids], positions[: ids.shape[1]].expand(len(ids), -1, -1)], dim=2)


def check_even(dim: int) -> None:
    """Raise unless bit and position can have half of a token each."""
    if dim % 2:
        raise UsageError(f"dim={dim} must be even: half of a token is the bit, half the position")
