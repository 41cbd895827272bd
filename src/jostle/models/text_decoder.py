"""Transformer decoders of texts: every token sees itself and those before it.

Radford et al. 2019, "Language models are unsupervised multitask learners" (GPT-2).
"""

import math

import torch
from torch import Tensor, nn

from jostle.base import checks
from jostle.models import register_text
from jostle.models.text_attention import TextAttention
from jostle.models.text_causal import CausalTextModel, Past, Prefix
from jostle.models.text_model import STD, TokenEmbedding, draw_weights, pick


@register_text("text-decoder")
class TextDecoder(CausalTextModel):
    """Words + positions -> ``depth`` causal pre-norm blocks -> last real token -> LayerNorm -> logits, without bias.

    The sizes are those of the GPT-2 that paper 1 (2403.06925, Appendix A.4) trains from scratch. Weights start from
    N(0, 0.02^2); the two layers of a block that add to the tokens start from a std smaller by sqrt(2 depth), as in
    GPT-2. A token that enters the first block has entries of about 0.03, so noise of a given std is far larger relative
    to it than in the other text models, which normalise their embeddings.

    Differs: the paper's code feeds padding and reads the classifier at the padding; here the last real token is read.
    In the last block only that token is computed.

    Arguments:
        vocabulary: number of ids; id 0 is padding.
        classes: logits; 1 for a binary task with a single logit.
        dim: width of a token; a multiple of ``heads``.
        depth: number of blocks.
        heads: attention heads in each block.
        mlp_dim: hidden width of the MLP in each block; 4 dim in GPT-2.
        max_length: most real tokens of a text; that many positions are learned.
        dropout: share of embeddings, attention weights and outputs of layers set to 0 in training.
    """

    memory_grows = True

    def __init__(
        self,
        *,
        vocabulary: int = 8000,
        classes: int = 2,
        dim: int = 256,
        depth: int = 4,
        heads: int = 8,
        mlp_dim: int = 1024,
        max_length: int = 512,
        dropout: float = 0.1,
    ) -> None:
        super().__init__()
        checks.sizes(vocabulary=vocabulary, classes=classes, dim=dim, depth=depth, heads=heads, mlp_dim=mlp_dim)
        checks.sizes(max_length=max_length)
        checks.number("dropout", dropout, least=0, below=1)
        self.embeddings = TokenEmbedding(
            vocabulary=vocabulary,
            dim=dim,
            max_length=max_length,
            dropout=dropout,
            has_positions=True,
            norm=nn.Identity(),
        )
        self.blocks = nn.ModuleList(TextDecoderBlock(dim, heads, mlp_dim, dropout) for _ in range(depth))
        self.norm = nn.LayerNorm(dim)
        self.classifier = nn.Linear(dim, classes, bias=False)
        draw_weights(self)
        for name, weight in self.named_parameters():
            if name.endswith(("to_out.weight", "mlp.2.weight")):
                nn.init.normal_(weight, std=STD / math.sqrt(2 * depth))

    def read(self, embedded: Tensor, lengths: Tensor, past: Past | None) -> tuple[Tensor, Past]:
        """The last real token, normalised, (batch, dim), and the keys and values of every block, old and new.

        ``past`` may end in one tensor more, (batch, tokens before): true for keys that are there for a row.
        """
        count = embedded.shape[1]
        seen = 0 if past is None else past[0].shape[2]
        keys = torch.arange(seen + count, device=embedded.device)
        visible = keys <= keys[seen:, None]  # (tokens, keys)
        # There is no padding before the last real token of a row: it sees all real tokens.
        real = None if (lengths == count).all() else (keys < seen + lengths[:, None])[:, None, None]
        if past is not None and len(past) % 2:  # (batch, seen), and all new keys
            old = nn.functional.pad(past[-1], (0, count), value=True)[:, None, None]
            visible, real = visible & old, old if real is None else real & old
        tokens, kept = embedded, list[Tensor]()
        *blocks, last = self.blocks
        for number, block in enumerate(blocks):
            tokens, new = block(tokens, visible, _of_block(past, number))
            kept += new
        tokens, new = last(tokens, real, _of_block(past, len(blocks)), lengths - 1)
        return self.norm(tokens[:, 0]), (*kept, *new)

    def recall(self, prefix: Prefix, positions: Tensor, rows: Tensor) -> Past | None:
        """Keys and values up to the last of the positions and, if positions differ, which keys come before each."""
        longest = int(positions.max())
        past = prefix.pasts[longest]
        if past is None:
            return None
        chosen = tuple(part[rows] for part in past)
        if (positions == longest).all():
            return chosen
        return *chosen, torch.arange(longest, device=positions.device) < positions[:, None]

    def remember(self, embedded: Tensor, lengths: Tensor) -> tuple[Past | None, ...]:  # noqa: ARG002
        """The state before each token: keys and values of one pass, cut there without copies."""
        batch, length, _ = embedded.shape
        _, past = self.read(embedded, torch.full((batch,), length, device=embedded.device), None)
        cuts = (tuple(part[:, :, :position] for part in past) for position in range(1, length))
        return None, *cuts


class TextDecoderBlock(nn.Module):
    """Pre-norm block: x + attention(norm(x)), then x + mlp(norm(x)); tokens in, tokens out, keys and values kept."""

    def __init__(self, dim: int, heads: int, mlp_dim: int, dropout: float) -> None:
        super().__init__()
        self.attention_norm = nn.LayerNorm(dim)
        self.attention = TextAttention(dim, heads, dropout=dropout)
        self.mlp_norm = nn.LayerNorm(dim)
        # The approximation of GELU by tanh, as in GPT-2.
        self.mlp = nn.Sequential(nn.Linear(dim, mlp_dim), nn.GELU(approximate="tanh"), nn.Linear(mlp_dim, dim))
        self.drop = nn.Dropout(dropout)

    def forward(
        self, tokens: Tensor, visible: Tensor | None, past: Past | None, reader: Tensor | None = None
    ) -> tuple[Tensor, Past]:
        """One block, (batch, tokens, dim) -> (batch, tokens, dim), or (batch, 1, dim) with a reader; keys and values.

        Arguments:
            tokens: (batch, tokens, dim).
            visible: which keys, old and new, each token may look at, (tokens, keys) or (batch, 1, 1, keys); None: all.
            past: keys and values of the tokens before, each (batch, heads, tokens before, dim / heads), or None.
            reader: the one token of each row whose output is wanted, (batch,), or None for all of them.
        """
        normed = self.attention_norm(tokens)
        kept: Past = self.attention.keys_values(normed)
        if past is not None:
            kept = tuple(torch.cat(pair, dim=2) for pair in zip(past, kept, strict=True))
        if reader is not None:
            tokens, normed = pick(tokens, reader)[:, None], pick(normed, reader)[:, None]
        tokens = tokens + self.drop(self.attention(normed, *kept, visible))
        return tokens + self.drop(self.mlp(self.mlp_norm(tokens))), kept


def _of_block(past: Past | None, number: int) -> Past | None:
    return None if past is None else past[2 * number : 2 * number + 2]
