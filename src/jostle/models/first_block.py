"""The first block of a transformer in pieces, so that a change of few tokens can be followed through it.

A model without a causal order mixes all tokens in its first block. Yet what enters that block is made token by token,
and so is all of its attention up to the sums over tokens. ``PairScores`` gives what a pair of tokens adds to these
sums; ``sampling.first_blocks`` remembers the sums of clean inputs and exchanges what a changed token adds.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn


@dataclass(frozen=True)
class PairScores:
    """Softmax attention in terms of the tokens x that it sees: each head has a matrix for scores and one for values.

    Token i gets the mean of V_h x_j over the tokens j, weighted by exp(x_i (M_h x_j) + c_h x_j), for each head h; what
    it gives out is the sum of these means over the heads, and a constant. So no token needs a query, key or value of
    its own. What all scores of a row have in common is left out, since a softmax does not depend on it.

    Arguments:
        scores: M, (heads, dim, dim).
        biases: c, (heads, dim).
        values: V, (heads, dim, dim).
        constant: (dim,).
        sees_itself: whether j = i is among the tokens.
        share: of the multiplications of the model, about how many are those up to the end of this attention.
        head_width: the width of a query.
    """

    scores: Tensor
    biases: Tensor
    values: Tensor
    constant: Tensor
    sees_itself: bool
    share: float
    head_width: int

    @classmethod
    def of(
        cls,
        projections: Sequence[tuple[Tensor, Tensor | None]],
        out: nn.Linear,
        heads: int,
        scale: float | Tensor,
        share: float,
        *,
        sees_itself: bool = True,
    ) -> "PairScores":
        """From the layers of a usual attention.

        Arguments:
            projections: weights (heads * width, dim) and biases of queries, keys and values.
            out: the layer after the heads are joined.
            heads: number of heads.
            scale: of the product of a query and a key.
            share, sees_itself: see above.
        """
        # In double precision, since these products stand for two steps that were each rounded once.
        (to_q, on_q), (to_k, _), (to_v, on_v) = (_of_heads(*each, heads) for each in projections)
        to_out = out.weight.detach().double().view(len(out.weight), heads, -1)  # (dim, heads, width)
        scale = torch.as_tensor(scale).detach().double()
        constant = torch.einsum("dhe,he->d", to_out, on_v)
        if out.bias is not None:
            constant = constant + out.bias.detach()
        return cls(
            scores=(scale * torch.einsum("hed,hef->hdf", to_q, to_k)).to(out.weight),
            biases=(scale * torch.einsum("he,hef->hf", on_q, to_k)).to(out.weight),
            values=torch.einsum("dhe,hef->hdf", to_out, to_v).to(out.weight),
            constant=constant.to(out.weight),
            sees_itself=sees_itself,
            share=share,
            head_width=to_q.shape[1],
        )


class FirstBlockModel(nn.Module, ABC):
    """A transformer that takes its first attention apart: of texts, a ``TextModel``, or of images, see below."""

    @abstractmethod
    def first_attention(self) -> PairScores | None:
        """The attention of the first block; None if it is of another kind, or if no block follows."""

    @abstractmethod
    def before_attention(self, tokens: Tensor) -> Tensor:
        """What the first attention sees of the tokens that enter the first block, (..., dim) -> (..., dim)."""

    @abstractmethod
    def after_attention(self, tokens: Tensor, attended: Tensor, real: Tensor | None) -> Tensor:
        """The logits, (batch, classes).

        Arguments:
            tokens: what enters the first block, (batch, tokens, dim).
            attended: what the first attention gives out, (batch, tokens, dim).
            real: for texts, which tokens are no padding, (batch, tokens); the first is none.
        """


class FirstBlockImages(FirstBlockModel):
    """One of images: each token is made from a choice of pixels.

    Attributes:
        channels, image_size: of an image.
        leading: how many tokens there are before those made from pixels.
    """

    channels: int
    image_size: int
    leading: int = 0

    @abstractmethod
    def cut(self, images: Tensor) -> Tensor:
        """The pixels that each token is made from, zeros beyond the border, (batch, tokens - leading, numbers)."""

    @abstractmethod
    def place(self, pixels: Tensor, numbers: Tensor) -> Tensor:
        """Tokens from their pixels (..., numbers) and their numbers (...), -> (..., dim)."""

    @abstractmethod
    def enter(self, images: Tensor) -> Tensor:
        """All tokens that enter the first block, (batch, tokens, dim)."""


def products(*modules: nn.Module) -> int:
    """About how many multiplications these modules take for a token: the weights of their linear layers."""
    layers = (layer for module in modules for layer in module.modules() if isinstance(layer, nn.Linear))
    return sum(layer.weight.numel() for layer in layers)


def _of_heads(weight: Tensor, bias: Tensor | None, heads: int) -> tuple[Tensor, Tensor]:
    """Weights (heads, width, dim) and biases (heads, width) of a projection, in double precision."""
    by_head = weight.detach().double().view(heads, -1, weight.shape[1])
    return by_head, by_head.new_zeros(by_head.shape[:2]) if bias is None else bias.detach().double().view(heads, -1)
