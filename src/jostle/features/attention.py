"""Random attention features: one layer of attention with random scores and without values. Paper 3, Eq. 3.3.

Here: the maps as they are defined. ``attention_update`` has what one moved word changes in them.
"""

import functools
import math
from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from jostle.features.attention_update import KINDS, MovedWord, Products, weights
from jostle.features.feature_map import FeatureMap, OneWord, check_words, gaussian, register
from jostle.models.sizes import check_choice, check_positive


@register("raf")
class RandomAttention(FeatureMap):
    """phi(X) = A(S) X (2402.02969) with scores S = X W X^T / sqrt(d) and W_ij independent N(0, 1/d): n d features.

    A row is a query and a column a key. A(S) is by ``attention``

    - ``softmax``: exp(S_ji) / sum_m exp(S_jm), the paper's RAF;
    - ``relu``: max(S_ji, 0) / sum_m max(S_jm, 0), a row without a positive score being 0;
    - ``linear``: S_ji / n.

    With ``rank`` the scores are factorised as in transformers, W = W_Q W_K^T with W_Q, W_K of shape (d, rank) and
    entries of variance 1 / sqrt(d rank), so that those of W have variance 1/d again.

    Differs: of the ReLU map only the released code is known, which divides by the sum of the row; linear attention
    divides by n to be of the size of a mean, which changes no relative change.

    Arguments:
        dim: d.
        num_tokens: not needed, since attention takes inputs of any length; here so that all maps are made alike.
        attention: ``softmax``, ``relu`` or ``linear``.
        rank: of the factorised scores; None for one full matrix W.
        seed: of W.
    """

    weight: Tensor

    def __init__(
        self,
        *,
        dim: int,
        num_tokens: int | None = None,  # noqa: ARG002 - see above
        attention: str = "softmax",
        rank: int | None = None,
        seed: int = 0,
    ) -> None:
        super().__init__()
        check_positive(dim=dim)
        check_choice("attention", attention, KINDS)
        self.dim, self.attention = dim, attention
        if rank is None:
            weight = gaussian(dim, dim, std=dim**-0.5, seed=seed, name="attention")
        else:
            check_positive(rank=rank)
            query, key = (
                gaussian(dim, rank, std=(dim * rank) ** -0.25, seed=seed, name=f"attention/{part}")
                for part in ("query", "key")
            )
            weight = query @ key.T
        self.register_buffer("weight", weight)

    def scores(self, words: Tensor) -> Tensor:
        """S = X W X^T / sqrt(d), (..., n, d) -> (..., n, n)."""
        return words @ self.weight.to(words.dtype) @ words.mT / math.sqrt(self.dim)

    def forward(self, words: Tensor) -> Tensor:
        """Features, (batch, n, d) -> (batch, n d), row after row."""
        return (weights(self.scores(words), self.attention) @ words).flatten(-2)

    def one_word(self, words: Tensor, position: int) -> OneWord:
        """Features in O(n d + d^2) for each changed word, where computing them again takes O(n^2 d + n d^2)."""
        return next(iter(self.one_words(words, [position])))

    def one_words(self, words: Tensor, positions: Sequence[int]) -> Iterator[OneWord]:
        """The same for several positions of one input, which share X W, W X^T and the scores."""
        check_words(words)
        products = Products(words, self.weight.to(words.dtype))
        for position in positions:
            check_words(words, position)
            yield MovedWord(products, position, self.attention, lambda: self.own_direction)

    @functools.cached_property
    def own_direction(self) -> Tensor:
        """The unit vector v with the largest v^T W v, (d,): a word along it attends to itself."""
        symmetric = (self.weight + self.weight.T) / 2
        direction: Tensor = torch.linalg.eigh(symmetric).eigenvectors[:, -1]
        return direction


register("raf-relu")(functools.partial(RandomAttention, attention="relu"))
register("raf-linear")(functools.partial(RandomAttention, attention="linear"))


@register("raf-qk")
def factorised(*, dim: int, num_tokens: int | None = None, rank: int | None = None, seed: int = 0) -> RandomAttention:
    """Softmax attention with W = W_Q W_K^T, of full rank by default."""
    return RandomAttention(dim=dim, num_tokens=num_tokens, rank=dim if rank is None else rank, seed=seed)
