"""The encoder-decoder of paper 2: bits in, a scratchpad out, one symbol after the other."""

import torch
from torch import Tensor, nn

from jostle.base import checks
from jostle.base.errors import UsageError
from jostle.models import register_bits
from jostle.models.bit_encoder import (
    BitAttention,
    BitEncoderBlock,
    check_even,
    check_strings,
    join_positions,
)

_BEGIN = 2  # the symbol before the first of a scratchpad


@register_bits("bit-scratchpad")
class BitScratchpad(nn.Module):
    """An encoder of the bits and a causal decoder of the scratchpad, both post-norm with a final norm.

    Paper 2 (2402.09963) trains it on y_i = x_1 xor ... xor x_i: each y_i follows from y_{i-1} and x_i, so that a step
    has a sensitivity of 2, where the last one without a scratchpad has n. dim 32, two layers on each side, two heads,
    feed-forward layers as wide as a token; 34,641 parameters without positions. Both sides share the vectors of the
    symbols (0, 1 and begin) and of the positions, side by side in a token; all matrices start from Glorot's uniform.

    The network is trained so that the number at place i is the symbol 0 or 1; above 0.5 it counts as 1. Bits and
    scratchpads are given and returned as -1 and 1.

    >>> network = BitScratchpad(max_length=6, dim=8)
    >>> bits = torch.ones(3, 6)
    >>> tuple(network(bits, bits).shape), tuple(network.generate(bits).shape)
    ((3, 6), (3, 6))

    Arguments:
        max_length: most bits of a string; one more position is learned.
        dim: of a token, even: half is the symbol, half the position.
        depth: blocks of the encoder, and as many of the decoder.
        heads: of attention; must divide dim.
        mlp_dim: hidden width of the feed-forward layers; dim unless given.
        norm_eps: added to the variance in LayerNorm.
    """

    def __init__(
        self,
        *,
        max_length: int = 10,
        dim: int = 32,
        depth: int = 2,
        heads: int = 2,
        mlp_dim: int | None = None,
        norm_eps: float = 1e-5,
    ) -> None:
        super().__init__()
        mlp_dim = dim if mlp_dim is None else mlp_dim
        checks.sizes(max_length=max_length, dim=dim, depth=depth, heads=heads, mlp_dim=mlp_dim)
        checks.number("norm_eps", norm_eps, least=0)
        check_even(dim)
        self.max_length = max_length
        self.symbols = nn.Parameter(torch.empty(3, dim // 2))  # of 0, of 1 and of begin
        self.positions = nn.Parameter(torch.empty(max_length + 1, dim // 2))
        self.encoder = nn.ModuleList(BitEncoderBlock(dim, heads, mlp_dim, norm_eps) for _ in range(depth))
        self.encoder_norm = nn.LayerNorm(dim, norm_eps)
        self.decoder = nn.ModuleList(BitDecoderBlock(dim, heads, mlp_dim, norm_eps) for _ in range(depth))
        self.decoder_norm = nn.LayerNorm(dim, norm_eps)
        self.readout = nn.Linear(dim, 1)
        self._draw()

    def forward(self, bits: Tensor, scratchpad: Tensor) -> Tensor:
        """The number at each place of the scratchpad, given those before it: (batch, tokens) -> (batch, tokens).

        Arguments:
            bits: (batch, tokens) of -1 and 1.
            scratchpad: the same shape, of -1 and 1; its last symbol is not looked at.
        """
        check_strings(bits, self.max_length)
        if scratchpad.shape != bits.shape:
            shapes = f"{tuple(scratchpad.shape)} and {tuple(bits.shape)}"
            raise UsageError(f"scratchpad and bits have shapes {shapes}; expected one symbol for each bit")
        return self._decode(self._encode(bits), scratchpad[:, :-1])

    @torch.no_grad()
    def generate(self, bits: Tensor) -> Tensor:
        """The scratchpad that the network writes itself, symbol by symbol, (batch, tokens) of -1 and 1."""
        check_strings(bits, self.max_length)
        encoded, written = self._encode(bits), bits[:, :0]
        for _ in range(bits.shape[1]):
            last = self._decode(encoded, written)[:, -1:]
            written = torch.cat([written, torch.where(last > 0.5, 1.0, -1.0).to(bits.dtype)], dim=1)
        return written

    def _encode(self, bits: Tensor) -> Tensor:
        tokens = join_positions((bits > 0).long(), self.symbols, self.positions)
        for block in self.encoder:
            tokens = block(tokens)
        encoded: Tensor = self.encoder_norm(tokens)
        return encoded

    def _decode(self, encoded: Tensor, written: Tensor) -> Tensor:
        """Numbers for the written symbols and for the next one, (batch, written + 1)."""
        begin = torch.full((len(written), 1), _BEGIN, device=written.device)
        ids = torch.cat([begin, (written > 0).long()], dim=1)
        tokens = join_positions(ids, self.symbols, self.positions)
        for block in self.decoder:
            tokens = block(tokens, encoded)
        numbers: Tensor = self.readout(self.decoder_norm(tokens)).squeeze(-1)
        return numbers

    def _draw(self) -> None:
        for name, parameter in self.named_parameters():
            if parameter.ndim > 1:
                # Queries, keys and values are one matrix of 3 dim rows in torch's layer, of which this is a part.
                is_part = any(part in name for part in ("to_query", "to_key", "to_value"))
                nn.init.xavier_uniform_(parameter, gain=0.5**0.5 if is_part else 1.0)


class BitDecoderBlock(nn.Module):
    """norm(x + causal attention(x)), norm(x + attention(x to the bits)), norm(x + mlp(x))."""

    def __init__(self, dim: int, heads: int, mlp_dim: int, norm_eps: float) -> None:
        super().__init__()
        self.attention, self.attention_norm = BitAttention(dim, heads), nn.LayerNorm(dim, norm_eps)
        self.reading, self.reading_norm = BitAttention(dim, heads), nn.LayerNorm(dim, norm_eps)
        self.mlp = nn.Sequential(nn.Linear(dim, mlp_dim), nn.ReLU(), nn.Linear(mlp_dim, dim))
        self.mlp_norm = nn.LayerNorm(dim, norm_eps)

    def forward(self, tokens: Tensor, encoded: Tensor) -> Tensor:
        """One block, (batch, written, dim) and (batch, tokens, dim) -> (batch, written, dim)."""
        tokens = self.attention_norm(tokens + self.attention(tokens, tokens, is_causal=True))
        tokens = self.reading_norm(tokens + self.reading(tokens, encoded))
        after: Tensor = self.mlp_norm(tokens + self.mlp(tokens))
        return after
