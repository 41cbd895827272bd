"""Random attention features: one layer of attention with random scores and without values. Paper 3, Eq. 3.3.

``RandomAttention`` is the map. ``MovedWord`` is what one moved word changes in it, exactly and without computing
attention again. Of all words but word i, row j of the features is a mixture that does not depend on word i. Let b_j be
that mixture with weights that sum to 1, s_j the score of query j for the moved word x', and w_j(s_j) the share that x'
takes. Then

    row j of phi(X^i(Delta)) = (1 - w_j) b_j + w_j x'     for j other than i,

    softmax:  w_j = sigmoid(s_j - logsumexp over m of S_jm),
    relu:     w_j = max(s_j, 0) / (sum_m max(S_jm, 0) + max(s_j, 0)),

where m runs over the other words; in linear attention b_j loses no weight, w_j = s_j / n and 1 - w_j becomes 1. Only
row i, the moved word's own query, has new weights throughout. Our derivation; the tests compare it with the plain map.
"""

import functools
import math
from collections.abc import Callable, Iterator, Sequence

import torch
from torch import Tensor

from jostle.base import checks
from jostle_papers.p2402_02969.features.feature_map import FeatureMap, OneWord, check_words, gaussian, register

KINDS = ("softmax", "relu", "linear")
_SHARES = (2, 4, 8, 16)  # of rows that a constructed direction aims at: one half, one quarter, ..


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
        num_tokens: not used, since attention takes inputs of any length; here because all maps have this argument.
        attention: ``softmax``, ``relu`` or ``linear``.
        rank: of the factorised scores; None for one full matrix W.
        seed: of W.
    """

    weight: Tensor

    def __init__(
        self,
        *,
        dim: int,
        num_tokens: int | None = None,
        attention: str = "softmax",
        rank: int | None = None,
        seed: int = 0,
    ) -> None:
        super().__init__()
        checks.sizes(dim=dim)
        checks.choice("attention", attention, KINDS)
        self.dim, self.attention = dim, attention
        if rank is None:
            weight = gaussian(dim, dim, std=dim**-0.5, seed=seed, name="attention")
        else:
            checks.sizes(rank=rank)
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
def query_key_attention(
    *, dim: int, num_tokens: int | None = None, rank: int | None = None, seed: int = 0
) -> RandomAttention:
    """Softmax attention with W = W_Q W_K^T, of full rank by default."""
    return RandomAttention(dim=dim, num_tokens=num_tokens, rank=dim if rank is None else rank, seed=seed)


def weights(scores: Tensor, attention: str) -> Tensor:
    """A(S), (..., queries, keys) -> the same; ``attention`` is one of ``KINDS``."""
    if attention == "softmax":
        return scores.softmax(dim=-1)
    if attention == "linear":
        return scores / scores.shape[-1]
    positive = scores.relu()
    total = positive.sum(dim=-1, keepdim=True)
    return positive / torch.where(total > 0, total, 1.0)


class Products:
    """Products of one input that all its positions share.

    Arguments:
        words: (n, d).
        weight: W, (d, d).
    """

    def __init__(self, words: Tensor, weight: Tensor) -> None:
        self.words, self.scaled = words, weight / math.sqrt(words.shape[1])
        self.queries = words @ self.scaled  # (n, d): the score of query j for a word x is queries_j . x
        self.keys = words @ self.scaled.T  # (n, d): the score of a word x as a query for word m is keys_m . x
        self.scores = self.queries @ words.T  # (n, n)


class MovedWord(OneWord):
    """The features of attention as a function of one word: O(n d + d^2) for each change.

    Arguments:
        products: of the input.
        position: i.
        attention: one of ``KINDS``.
        own_direction: gives the direction (d,) in which a word attends to itself; called only by ``directions``.
    """

    def __init__(self, products: Products, position: int, attention: str, own_direction: Callable[[], Tensor]) -> None:
        words = products.words
        self.attention, self._position, self._length = attention, position, len(words)
        self._own_direction, self._scaled = own_direction, products.scaled
        is_other = torch.arange(len(words), device=words.device) != position
        self._others, self._queries, self._keys = (
            part[is_other] for part in (words, products.queries, products.keys)
        )  # (n - 1, d) each
        scores = products.scores[is_other][:, is_other]  # (n - 1, n - 1)
        self._rivals, self._base = self._without(scores)  # (n - 1,), (n - 1, d)
        word = words[position]
        self._share = self._shares(word[None])[0]  # (n - 1,)
        self._own = self._own_row(word[None])[0]  # (d,)
        self._gap = word - (torch.zeros_like(self._base) if attention == "linear" else self._base)  # (n - 1, d)
        self._gap_squares = self._gap.square().sum(dim=1)
        rows = self._rows(word[None], self._share[None])[0]
        super().__init__(word, torch.cat([rows[:position], self._own[None], rows[position:]]).flatten())

    def features(self, changes: Tensor) -> Tensor:
        moved = self.word + changes  # (count, d)
        rows = self._rows(moved, self._shares(moved))  # (count, n - 1, d)
        before, after = rows[:, : self._position], rows[:, self._position :]
        return torch.cat([before, self._own_row(moved)[:, None], after], dim=1).flatten(1)

    def squared_change(self, changes: Tensor) -> Tensor:
        """As in ``OneWord``, but without n d features for each change.

        Row j moves by (w_j - v_j) (x_i - b_j) + w_j Delta, where v_j is its share before, so its square needs only
        the product of Delta and x_i - b_j.
        """
        moved = self.word + changes
        share = self._shares(moved)  # (count, n - 1)
        gain = share - self._share
        crossed = 2 * gain * share * (changes @ self._gap.T)
        rows = gain.square() * self._gap_squares + crossed + share.square() * changes.square().sum(dim=1, keepdim=True)
        own = (self._own_row(moved) - self._own).square().sum(dim=1)
        return rows.sum(dim=1).clamp(min=0) + own  # rounding may leave less than 0

    def directions(self) -> Tensor:
        """Changes that raise the score of word i for many queries at once, (count, d).

        sum_j W^T x_j over all other words raises all scores when they are nearly orthogonal; over the queries whose
        share is largest already it raises those. Further: the opposite, and a word that attends to itself.
        """
        if self._length == 1:
            return self._own_direction().to(self.word.dtype)[None]
        order = self._share.argsort(descending=True)
        counts = [len(order), *(max(1, len(order) // share) for share in _SHARES)]
        sums = [self._queries[order[:count]].sum(dim=0) for count in counts]
        return torch.stack([*sums, -sums[0], self._own_direction().to(self.word.dtype)])

    def _without(self, scores: Tensor) -> tuple[Tensor, Tensor]:
        """The scores that the moved word competes with (n - 1,), and the mixture of all other words (n - 1, d)."""
        if self.attention == "softmax":
            return scores.logsumexp(dim=1), scores.softmax(dim=1) @ self._others
        if self.attention == "relu":
            return scores.relu().sum(dim=1), weights(scores, "relu") @ self._others
        return scores.new_zeros(len(scores)), scores @ self._others / self._length

    def _shares(self, moved: Tensor) -> Tensor:
        """w_j, (count, d) -> (count, n - 1)."""
        scores = moved @ self._queries.T
        if self.attention == "softmax":
            return (scores - self._rivals).sigmoid()
        if self.attention == "linear":
            return scores / self._length
        positive = scores.relu()
        total = self._rivals + positive
        return positive / torch.where(total > 0, total, 1.0)

    def _rows(self, moved: Tensor, share: Tensor) -> Tensor:
        """All rows but row i, (count, d) and (count, n - 1) -> (count, n - 1, d)."""
        kept = self._base if self.attention == "linear" else (1 - share)[:, :, None] * self._base
        return kept + share[:, :, None] * moved[:, None]

    def _own_row(self, moved: Tensor) -> Tensor:
        """Row i, (count, d) -> (count, d)."""
        to_itself = (moved @ self._scaled * moved).sum(dim=1, keepdim=True)
        share = weights(torch.cat([moved @ self._keys.T, to_itself], dim=1), self.attention)  # (count, n)
        return share[:, :-1] @ self._others + share[:, -1:] * moved
