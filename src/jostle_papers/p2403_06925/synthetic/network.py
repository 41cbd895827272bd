"""Single-layer self-attention on one-hot tokens, the network of paper 1's Eq. 3."""

import torch
from torch import Tensor, nn

from jostle.base import checks
from jostle.base.errors import UsageError


class SelfAttention(nn.Module):
    """Phi(X) = <U, softmax(X W_Q W_K^T X^T) X W_V>, from tokens (batch, num_tokens) to logits (batch, 1).

    X holds the tokens as one-hot rows, (num_tokens, vocabulary); the softmax is over positions, without a factor.
    Source: paper 1 (2403.06925), Eq. 3. All weights start as N(0, scale^2).

    Differs: the paper prints U as a square matrix; the inner product needs (num_tokens, dim), which U has here.

    >>> network = SelfAttention(vocabulary=59, num_tokens=50, seed=0)
    >>> network(torch.zeros(2, 50, dtype=torch.int64)).shape, sum(weight.numel() for weight in network.parameters())
    (torch.Size([2, 1]), 13393)

    Arguments:
        vocabulary: M, different tokens.
        num_tokens: T, the length of a sequence.
        dim: of queries, keys and values; None for M.
        scale: standard deviation of all initial weights.
        seed: of the initial weights; another scale gives multiples of the same. Torch's own random state stays.
    """

    def __init__(
        self, *, vocabulary: int, num_tokens: int = 50, dim: int | None = None, scale: float = 0.1, seed: int = 0
    ) -> None:
        super().__init__()
        dim = vocabulary if dim is None else dim
        checks.sizes(vocabulary=vocabulary, num_tokens=num_tokens, dim=dim)
        checks.number("scale", scale, above=0)
        self.num_tokens, self.vocabulary = num_tokens, vocabulary
        source = torch.Generator().manual_seed(seed)
        self.output = nn.Parameter(scale * torch.randn(num_tokens, dim, generator=source))  # U
        self.value, self.query, self.key = (
            nn.Parameter(scale * torch.randn(vocabulary, dim, generator=source)) for _ in range(3)
        )

    @property
    def readout(self) -> Tensor:
        """U W_V^T, (num_tokens, vocabulary): the contribution of a position's attention to a token to the logit."""
        return self.output @ self.value.T

    @property
    def scores(self) -> Tensor:
        """W_Q W_K^T, (vocabulary, vocabulary): scores of the query of a token, by row, for the key of a token."""
        return self.query @ self.key.T

    def attention(self, tokens: Tensor) -> Tensor:
        """The attention of each position to each token of the vocabulary, (batch, num_tokens, vocabulary).

        It is the softmax over positions, summed over the positions with the same token. These have the same score, so
        the sum is the softmax of score + log(occurrences) over the vocabulary.
        """
        self._check(tokens)
        # Without one-hot matrices a training step on 100 sequences takes 0.9 ms; with them and the formula as printed,
        # 5 to 10 ms. Several networks at once gain nothing: the tensors of one step just fit into the cache.
        counts = torch.zeros(len(tokens), self.vocabulary, dtype=self.value.dtype, device=tokens.device)
        counts.scatter_add_(1, tokens, torch.ones_like(tokens, dtype=counts.dtype))
        asked = self.scores.index_select(0, tokens.reshape(-1)).reshape(*tokens.shape, self.vocabulary)
        return torch.softmax(asked + counts.log().unsqueeze(1), dim=-1)

    def forward(self, tokens: Tensor) -> Tensor:
        shares = self.attention(tokens).reshape(len(tokens), -1)
        return shares @ self.readout.reshape(-1, 1)

    def _check(self, tokens: Tensor) -> None:
        if tokens.ndim != 2 or tokens.shape[1] != self.num_tokens or tokens.is_floating_point():
            kind = str(tokens.dtype).removeprefix("torch.")
            raise UsageError(
                f"tokens of SelfAttention must be whole numbers, (batch, {self.num_tokens}), got "
                f"{tuple(tokens.shape)} of {kind}"
            )
        if len(tokens) and not 0 <= int(tokens.min()) <= int(tokens.max()) < self.vocabulary:
            raise UsageError(
                f"tokens of SelfAttention go from {int(tokens.min())} to {int(tokens.max())}; with "
                f"vocabulary={self.vocabulary} they must lie in 0 to {self.vocabulary - 1}"
            )
