"""Transformer encoders on bits, read at one position."""

import torch
from torch import Tensor, nn

from jostle.base import checks
from jostle.base.errors import UsageError
from jostle.boolean.networks import register
from jostle.boolean.networks.parts import check_bits, embed_bits, feed_forward

NORMS = ("post", "pre")
POSITIONS = ("concatenated", "added", "none")
READS = ("end", "last")
ATTENTIONS = ("softmax", "relu", "linear")


@register("transformer")
class BooleanTransformer(nn.Module):
    """Bit and position embedding -> blocks of attention and feed-forward ReLU layer -> Linear at the read position.

    Every token sees every token. ``read="end"`` appends an end symbol with an embedding and a position of its own
    and reads there (the follow-up 2606.08768); ``read="last"`` reads at the last bit x_n (the code of paper 2,
    2402.09963). The last block is evaluated at the read position only: the result is the same, in less time.

    With ``read="last"`` it is the encoder of paper 2's code (there dim 128, two heads, depth 2, feed-forward width
    equal to dim). Default weights are those of torch's encoder layer: embeddings N(0, 1); queries, keys and values
    U(-1, 1) sqrt(3 / (2 dim)), other matrices U(-1, 1) / sqrt(number of inputs); attention biases 0.

    Differs: torch's encoder copies one layer, so that paper 2's blocks start from equal weights; here each
    block has its own.

    Arguments:
        n: how many bits.
        depth: blocks.
        dim: of a token; even if positions are concatenated (half of it is the bit, half the position).
        heads: of attention; must divide dim.
        mlp_dim: hidden width of the feed-forward layer; dim unless given.
        norm: ``post`` (after each residual sum; no final one) or ``pre`` (before each sublayer, and a final one).
        norm_eps: added to the variance in LayerNorm; may be 0.
        positions: learned, ``concatenated`` with or ``added`` to the bit's embedding, or ``none``.
        read: ``end`` or ``last``, see above.
        attention: ``softmax``, ``relu`` or ``linear``, see ``BooleanAttention``.
    """

    def __init__(
        self,
        *,
        n: int = 10,
        depth: int = 2,
        dim: int = 64,
        heads: int = 2,
        mlp_dim: int | None = None,
        norm: str = "post",
        norm_eps: float = 1e-5,
        positions: str = "concatenated",
        read: str = "end",
        attention: str = "softmax",
    ) -> None:
        super().__init__()
        mlp_dim = dim if mlp_dim is None else mlp_dim
        checks.sizes(n=n, depth=depth, dim=dim, heads=heads, mlp_dim=mlp_dim)
        checks.choice("norm", norm, NORMS)
        checks.choice("positions", positions, POSITIONS)
        checks.choice("read", read, READS)
        if positions == "concatenated" and dim % 2:
            raise UsageError(f"dim={dim} must be even: half is the bit, half the position; or pass positions='added'")
        self.n, self.position_kind = n, positions
        self.has_end = read == "end"
        part = dim // 2 if positions == "concatenated" else dim
        self.symbols = nn.Parameter(torch.randn(2 + self.has_end, part))  # -1, +1 and the end symbol
        self.positions = None if positions == "none" else nn.Parameter(torch.randn(n + self.has_end, part))
        self.blocks = nn.ModuleList(
            BooleanTransformerBlock(dim, heads, mlp_dim, norm == "pre", norm_eps, attention) for _ in range(depth)
        )
        self.norm = nn.LayerNorm(dim, norm_eps) if norm == "pre" else nn.Identity()
        self.readout = nn.Linear(dim, 1)

    def embed(self, bits: Tensor) -> Tensor:
        """Tokens before the first block, (batch, n) -> (batch, tokens, dim); tokens is n, or n + 1 with an end."""
        tokens = embed_bits(bits, self.symbols[:2])
        if self.has_end:
            tokens = torch.cat([tokens, self.symbols[2].expand(len(bits), 1, -1)], dim=1)
        if self.positions is None:
            return tokens
        if self.position_kind == "added":
            return tokens + self.positions
        return torch.cat([tokens, self.positions.expand(len(bits), -1, -1)], dim=2)

    def forward(self, bits: Tensor) -> Tensor:
        """Bits to logits, (batch, n) of -1 and 1 -> (batch,)."""
        check_bits(bits, self.n)
        tokens = self.embed(bits)
        *first, last = self.blocks
        for block in first:
            tokens = block(tokens, tokens.shape[1])
        end = last(tokens, 1)[:, 0]  # (batch, dim)
        logits: Tensor = self.readout(self.norm(end)).squeeze(-1)
        return logits


class BooleanTransformerBlock(nn.Module):
    """Attention and a feed-forward layer, each with a residual and a LayerNorm after the sum or before the sublayer."""

    def __init__(self, dim: int, heads: int, mlp_dim: int, is_pre: bool, norm_eps: float, attention: str) -> None:
        super().__init__()
        self.is_pre = is_pre
        self.attention_norm, self.mlp_norm = nn.LayerNorm(dim, norm_eps), nn.LayerNorm(dim, norm_eps)
        self.attention = BooleanAttention(dim, heads, attention)
        self.mlp = feed_forward(dim, mlp_dim, "relu")

    def forward(self, tokens: Tensor, rows: int) -> Tensor:
        """The block's output at the last ``rows`` tokens, (batch, tokens, dim) -> (batch, rows, dim)."""
        if self.is_pre:
            mixed = tokens[:, -rows:] + self.attention(self.attention_norm(tokens), rows)
            after: Tensor = mixed + self.mlp(self.mlp_norm(mixed))
            return after
        mixed = self.attention_norm(tokens[:, -rows:] + self.attention(tokens, rows))
        normed: Tensor = self.mlp_norm(mixed + self.mlp(mixed))
        return normed


class BooleanAttention(nn.Module):
    """Multi-head attention, A v with A made from the scores s = q k^T / sqrt(dim / heads).

    ``softmax``: A = softmax(s). ``relu``: A = relu(s) / tokens. ``linear``: A = s / tokens. The scores are written
    out because torch's fused attention has no batching rule: vmap would evaluate it network by network.
    """

    def __init__(self, dim: int, heads: int, kind: str = "softmax") -> None:
        super().__init__()
        checks.choice("attention", kind, ATTENTIONS)
        if dim % heads:
            raise UsageError(f"dim={dim} must be a multiple of heads={heads}")
        self.heads, self.kind = heads, kind
        self.to_query, self.to_key, self.to_value = nn.Linear(dim, dim), nn.Linear(dim, dim), nn.Linear(dim, dim)
        self.to_out = nn.Linear(dim, dim)
        for layer in (self.to_query, self.to_key, self.to_value):
            nn.init.xavier_uniform_(layer.weight, gain=0.5**0.5)  # as one matrix of 3 dim rows would be drawn
            nn.init.zeros_(layer.bias)
        nn.init.zeros_(self.to_out.bias)

    def forward(self, tokens: Tensor, rows: int) -> Tensor:
        """What the last ``rows`` tokens gather from all tokens, (batch, tokens, dim) -> (batch, rows, dim)."""
        query = self.by_head(self.to_query(tokens[:, -rows:]))  # (batch, heads, rows, dim / heads)
        key, value = self.by_head(self.to_key(tokens)), self.by_head(self.to_value(tokens))
        scores = query @ key.mT * key.shape[-1] ** -0.5  # (batch, heads, rows, tokens)
        if self.kind == "softmax":
            weights = scores.softmax(dim=-1)
        else:
            weights = (scores.relu() if self.kind == "relu" else scores) / tokens.shape[1]
        gathered: Tensor = self.to_out((weights @ value).transpose(1, 2).flatten(2))  # (batch, rows, dim)
        return gathered

    def by_head(self, vectors: Tensor) -> Tensor:
        """(batch, tokens, dim) -> (batch, heads, tokens, dim / heads)."""
        batch, tokens, _ = vectors.shape
        return vectors.reshape(batch, tokens, self.heads, -1).transpose(1, 2)
