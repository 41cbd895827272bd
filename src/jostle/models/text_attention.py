"""Attention of the text models: softmax, ReLU, linear or uniform, without padding."""

import torch
from torch import Tensor, nn

from jostle.base import checks
from jostle.base.errors import UsageError

ATTENTIONS = ("softmax", "relu", "linear", "uniform")


class TextAttention(nn.Module):
    """Multi-head attention, A v with A made from the scores s = q k^T / sqrt(dim / heads).

    ``softmax``: A = softmax(s) (Vaswani et al. 2017, 1706.03762). ``relu``: A = relu(s), not normalised, as in paper
    1's (2403.06925) released code; with ``normalise``, A = relu(s) / n, where n is the number of keys that the query
    sees (Wortsman et al. 2023, 2309.08586). It cannot be divided by the sum of its row, which is 0 where no score is
    positive. ``linear``: A = phi(q) phi(k)^T with phi(x) = elu(x) + 1, each row divided by its sum, which is positive
    (Katharopoulos et al. 2020, 2006.16236); computed as phi(q) (phi(k)^T v), so the cost grows with the number of
    tokens and not with its square. ``uniform``: A = 1 / n, so that queries and keys have no influence: a control.

    Arguments:
        dim: width of a token; a multiple of ``heads``.
        heads: number of heads.
        kind: ``softmax``, ``relu``, ``linear`` or ``uniform``.
        normalise: for ``relu`` only, see above.
        dropout: share of A set to 0 in training; ``linear`` and ``uniform`` never have A and drop nothing.
    """

    def __init__(
        self, dim: int, heads: int, *, kind: str = "softmax", normalise: bool = False, dropout: float = 0.0
    ) -> None:
        super().__init__()
        checks.choice("attention", kind, ATTENTIONS)
        if dim % heads:
            raise UsageError(f"dim={dim} must be a multiple of heads={heads}")
        if normalise and kind != "relu":
            raise UsageError(f"normalise=True is for attention='relu', got attention={kind!r}, which always is")
        self.heads, self.kind, self.normalise, self.dropout = heads, kind, normalise, dropout
        # Separate, because the last block of a model asks for one token only.
        self.to_queries = nn.Linear(dim, dim)
        self.to_keys_values = nn.Linear(dim, 2 * dim)
        self.to_out = nn.Linear(dim, dim)

    def keys_values(self, tokens: Tensor) -> tuple[Tensor, Tensor]:
        """Keys and values of tokens (batch, keys, dim), each (batch, heads, keys, dim / heads)."""
        keys, values = self.to_keys_values(tokens).chunk(2, dim=-1)
        return self._split(keys), self._split(values)

    def forward(self, tokens: Tensor, keys: Tensor, values: Tensor, visible: Tensor | None) -> Tensor:
        """Tokens look at keys and take values, (batch, queries, dim) -> (batch, queries, dim).

        Arguments:
            tokens: (batch, queries, dim).
            keys, values: from ``keys_values``.
            visible: booleans that broadcast to (batch, heads, queries, keys), true where a query may look, with at
                least one key for each; None for everywhere. For ``linear`` it must be the same for all queries.
        """
        mixed = self.mix(self._split(self.to_queries(tokens)), keys, values, visible)
        joined: Tensor = self.to_out(mixed.transpose(1, 2).flatten(start_dim=2))
        return joined

    def mix(self, queries: Tensor, keys: Tensor, values: Tensor, visible: Tensor | None) -> Tensor:
        """A v; all of shape (batch, heads, queries or keys, dim / heads)."""
        dropout = self.dropout if self.training else 0.0
        if self.kind == "softmax":
            return nn.functional.scaled_dot_product_attention(queries, keys, values, visible, dropout)
        if self.kind == "linear":
            return mix_linearly(queries, keys, values, visible)
        if self.kind == "uniform":
            return mix_uniformly(queries, values, visible)
        weights = torch.relu(queries @ keys.mT) * queries.shape[-1] ** -0.5  # (batch, heads, queries, keys)
        if visible is not None:
            weights = weights.masked_fill(~visible, 0.0)
        if self.normalise:
            weights = weights / (keys.shape[-2] if visible is None else visible.sum(dim=-1, keepdim=True))
        return nn.functional.dropout(weights, dropout) @ values

    def extra_repr(self) -> str:
        """The settings that the shapes of the weights do not show."""
        return f"heads={self.heads}, kind={self.kind!r}, normalise={self.normalise}"

    def _split(self, tokens: Tensor) -> Tensor:
        batch, count, dim = tokens.shape
        return tokens.reshape(batch, count, self.heads, dim // self.heads).transpose(1, 2)


def mix_uniformly(queries: Tensor, values: Tensor, visible: Tensor | None) -> Tensor:
    """The mean of the visible values for each query, (batch, heads, queries, width).

    >>> values = torch.tensor([[[[1.0], [3.0]]]])
    >>> mix_uniformly(values, values, torch.tensor([[[[True, False]]]])).flatten().tolist()
    [1.0, 1.0]
    """
    if visible is None:
        return values.mean(dim=-2, keepdim=True).expand_as(queries)
    weights = visible / visible.sum(dim=-1, keepdim=True)  # (batch, 1, 1 or queries, keys)
    return (weights.to(values.dtype) @ values).expand_as(queries)


def mix_linearly(queries: Tensor, keys: Tensor, values: Tensor, visible: Tensor | None) -> Tensor:
    """phi(q_i) . sum_j phi(k_j) v_j^T / phi(q_i) . sum_j phi(k_j), where j runs over the visible keys.

    Arguments:
        queries: (batch, heads, queries, width).
        keys, values: (batch, heads, keys, width).
        visible: (batch, 1, 1, keys), or None for all.

    >>> ones = torch.ones(1, 1, 2, 1)
    >>> mix_linearly(ones, ones, torch.tensor([[[[1.0], [3.0]]]], dtype=ones.dtype), None).flatten().tolist()
    [2.0, 2.0]
    """
    queries, keys = nn.functional.elu(queries) + 1, nn.functional.elu(keys) + 1
    if visible is not None:
        keys = keys.masked_fill(~visible.mT, 0.0)
    total = queries @ keys.sum(dim=-2)[..., None]  # (batch, heads, queries, 1)
    # Positive, but exp of a very negative query can round to 0; then the numerator is 0 as well.
    return queries @ (keys.mT @ values) / total.clamp_min(torch.finfo(total.dtype).tiny)
