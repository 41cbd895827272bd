"""Transformer encoders of texts: every token sees every token.

Devlin et al. 2018, "BERT" (1810.04805), in the form of Liu et al. 2019, "RoBERTa" (1907.11692).
"""

import torch
from torch import Tensor, nn

from jostle.base import checks
from jostle.models import register_text
from jostle.models.first_block import FirstBlockModel, PairScores, products
from jostle.models.norms import Norms
from jostle.models.text_attention import TextAttention
from jostle.models.text_model import TextModel, TokenEmbedding, draw_weights, pick


@register_text("text-encoder")
class TextEncoder(TextModel, FirstBlockModel):
    """Words + positions -> LayerNorm -> ``depth`` post-norm blocks -> first token -> dense -> tanh -> logits.

    Width, depth, heads and the hidden width 3072 are those of the RoBERTa that paper 1 (2403.06925, Section 6) trains
    from scratch; with its vocabulary of 50,265 it has 20,427,266 parameters. Weights start from N(0, 0.02^2), biases
    from 0, as in RoBERTa.

    Differs: RoBERTa adds one vector for the type of a segment, the same for all tokens, and has two positions that are
    never used; without them there are 768 parameters less than in the paper. In the last block only the first token is
    computed, because only that one is read.

    Arguments:
        vocabulary: number of ids; id 0 is padding.
        classes: logits; 1 for a binary task with a single logit.
        dim: width of a token; a multiple of ``heads``.
        depth: number of blocks.
        heads: attention heads in each block.
        mlp_dim: hidden width of the MLP in each block.
        max_length: most real tokens of a text; that many positions are learned.
        dropout: share of embeddings, attention weights, outputs of layers and features set to 0 in training.
        attention: ``softmax``, ``relu``, ``linear`` or ``uniform``; see ``TextAttention``.
        normalise: whether ``relu`` attention is divided by the number of tokens; paper 1's is not.
        norm, norm_place: the kind of norms and where they are, see ``Norms``; papers have LayerNorm everywhere.
    """

    def __init__(
        self,
        *,
        vocabulary: int = 8000,
        classes: int = 2,
        dim: int = 256,
        depth: int = 4,
        heads: int = 8,
        mlp_dim: int = 3072,
        max_length: int = 512,
        dropout: float = 0.1,
        attention: str = "softmax",
        normalise: bool = False,
        norm: str = "layer",
        norm_place: str = "everywhere",
    ) -> None:
        super().__init__()
        checks.sizes(vocabulary=vocabulary, classes=classes, dim=dim, depth=depth, heads=heads, mlp_dim=mlp_dim)
        checks.sizes(max_length=max_length)
        checks.number("dropout", dropout, least=0, below=1)
        checks.truth("normalise", normalise)
        norms = Norms(norm, norm_place)
        self.embeddings = TokenEmbedding(
            vocabulary=vocabulary,
            dim=dim,
            max_length=max_length,
            dropout=dropout,
            has_positions=True,
            norm=norms.on_tokens(dim),
        )
        self.blocks = nn.ModuleList(
            TextEncoderBlock(
                TextAttention(dim, heads, kind=attention, normalise=normalise, dropout=dropout),
                dim,
                mlp_dim,
                dropout,
                norms,
            )
            for _ in range(depth)
        )
        self.dense = nn.Linear(dim, dim)
        self.drop = nn.Dropout(dropout)
        self.classifier = nn.Linear(dim, classes)
        draw_weights(self)

    def encode(self, embedded: Tensor, mask: Tensor) -> Tensor:
        """The first real token after the last block, through dense and tanh, (batch, dim)."""
        return self._read_first(embedded, mask, 0)

    def _read_first(self, tokens: Tensor, mask: Tensor, begin: int) -> Tensor:
        """The features from the tokens that enter block ``begin``, (batch, dim)."""
        visible = None if mask.all() else mask[:, None, None, :]  # (batch, 1, 1, length)
        for block in self.blocks[begin:-1]:
            tokens = block(tokens, visible)
        first = self.blocks[-1](tokens, visible, mask.byte().argmax(dim=1))[:, 0]  # (batch, dim)
        features: Tensor = self.drop(torch.tanh(self.dense(self.drop(first))))
        return features

    def first_attention(self) -> PairScores | None:
        """The attention of the first block, without its dropout."""
        first, last = self.blocks[0], self.blocks[-1]
        assert isinstance(first, TextEncoderBlock)
        assert isinstance(last, TextEncoderBlock)
        attention = first.attention
        if len(self.blocks) == 1 or attention.kind != "softmax":
            return None
        until = products(attention)
        share = until / (until + products(first.mlp, self.blocks[1:-1], last.attention.to_keys_values))
        both, dim = attention.to_keys_values, attention.to_out.in_features
        keys_values = zip(both.weight.chunk(2), both.bias.chunk(2), strict=True)
        projections = [(attention.to_queries.weight, attention.to_queries.bias), *keys_values]
        return PairScores.of(projections, attention.to_out, attention.heads, (dim // attention.heads) ** -0.5, share)

    def before_attention(self, tokens: Tensor) -> Tensor:
        """The tokens as they are: norms come after."""
        return tokens

    def after_attention(self, tokens: Tensor, attended: Tensor, real: Tensor | None) -> Tensor:
        """The rest of the first block and all that follows, (batch, length, dim) -> (batch, classes)."""
        block = self.blocks[0]
        assert isinstance(block, TextEncoderBlock)
        assert real is not None
        logits: Tensor = self.classifier(self._read_first(block.mix(tokens, attended), real, 1))
        return logits


class TextEncoderBlock(nn.Module):
    """Post-norm block: norm(x + attention(x)), then norm(x + mlp(x)); tokens in, tokens out."""

    def __init__(self, attention: TextAttention, dim: int, mlp_dim: int, dropout: float, norms: Norms) -> None:
        super().__init__()
        self.attention = attention
        self.attention_norm = norms.in_blocks(dim)
        self.mlp = nn.Sequential(nn.Linear(dim, mlp_dim), nn.GELU(), nn.Linear(mlp_dim, dim))
        self.mlp_norm = norms.in_blocks(dim)
        self.drop = nn.Dropout(dropout)

    def forward(self, tokens: Tensor, visible: Tensor | None, reader: Tensor | None = None) -> Tensor:
        """One block, (batch, tokens, dim) -> (batch, tokens, dim), or (batch, 1, dim) with a reader.

        Arguments:
            tokens: (batch, tokens, dim).
            visible: which tokens may be looked at, (batch, 1, 1, tokens), or None for all.
            reader: the one token of each row whose output is wanted, (batch,), or None for all of them.
        """
        keys, values = self.attention.keys_values(tokens)
        if reader is not None:
            tokens = pick(tokens, reader)[:, None]
        return self.mix(tokens, self.attention(tokens, keys, values, visible))

    def mix(self, tokens: Tensor, attended: Tensor) -> Tensor:
        """What comes after the attention, token by token; both (..., dim) -> (..., dim)."""
        tokens = self.attention_norm(tokens + self.drop(attended))
        mixed: Tensor = self.mlp_norm(tokens + self.drop(self.mlp(tokens)))
        return mixed
