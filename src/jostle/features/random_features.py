"""Random features of all words at once: one random layer on the flattened input. Paper 3 (2402.02969), Eq. 3.1."""

import math
from collections.abc import Callable

import torch
from torch import Tensor

from jostle.features.feature_map import FeatureMap, OneWord, check_shape, check_words, gaussian, register
from jostle.models.sizes import check_choice, check_positive

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {  # all of them with slopes of at most 1
    "relu": torch.relu,
    "tanh": torch.tanh,
    "identity": torch.Tensor.clone,
}
_HELD = 2**28  # bytes


@register("rf")
class RandomFeatures(FeatureMap):
    """phi(X) = sigma(V flat(X)) with V_ij independent N(0, 1/(n d)), so that V flat(X) has variance 1: k features.

    V = [V_1 .. V_n] is made of one block (k, d) for each word. A block is drawn from its own generator whenever it is
    asked for, so V is never there as a whole unless it is small. ``DrawnFeatures`` is much faster where a few inputs
    and one position are all that is asked about.

    Arguments:
        num_tokens, dim: n and d.
        width: k; n d by default, as in the released code.
        activation: sigma: ``relu``, ``tanh`` or ``identity``.
        seed: of V.
        held: bytes up to which all of V is kept between calls.
    """

    def __init__(
        self,
        *,
        num_tokens: int,
        dim: int,
        width: int | None = None,
        activation: str = "relu",
        seed: int = 0,
        held: int = _HELD,
    ) -> None:
        super().__init__()
        width = num_tokens * dim if width is None else width
        check_positive(num_tokens=num_tokens, dim=dim, width=width)
        check_choice("activation", activation, ACTIVATIONS)
        self.num_tokens, self.dim, self.width, self.activation, self.seed = num_tokens, dim, width, activation, seed
        self._kept: dict[int, Tensor] | None = {} if 8 * width * num_tokens * dim <= held else None

    def block(self, position: int) -> Tensor:
        """V_i, (k, d) in float64."""
        if self._kept is not None and position in self._kept:
            return self._kept[position]
        std = (self.num_tokens * self.dim) ** -0.5
        drawn = gaussian(self.width, self.dim, std=std, seed=self.seed, name=f"rf/{position}")
        if self._kept is not None:
            self._kept[position] = drawn
        return drawn

    def sums(self, words: Tensor) -> Tensor:
        """V flat(X), (batch, n, d) -> (batch, k)."""
        check_shape(words, self.num_tokens, self.dim)
        total = words.new_zeros(len(words), self.width)
        for position in range(self.num_tokens):
            total = total + words[:, position] @ self.block(position).to(words).T
        return total

    def forward(self, words: Tensor) -> Tensor:
        """Features, (batch, n, d) -> (batch, k)."""
        return ACTIVATIONS[self.activation](self.sums(words))

    def one_word(self, words: Tensor, position: int) -> "MovedBlock":
        """Features in O(k d) for each changed word, where computing them again takes O(k n d)."""
        check_words(words, position)
        sums = self.sums(words[None])[0]
        return MovedBlock(words[position], sums, self.block(position).to(words), self.activation)


def wide_change(num_tokens: int, radius: float = 1.0) -> tuple[float, float]:
    """What a random change of one word does to many ReLU features: relative change and angle in radians.

    For Delta of norm radius sqrt(d), orthogonal to the word as random ones nearly are, V flat(X) and V flat(X^i(Delta))
    are Gaussian with variances 1 and s^2 = 1 + radius^2 / n and covariance 1. With t = arccos(1 / s) and Cho and Saul's
    (2009) k(t) = (sin t + (pi - t) cos t) / pi

        relative change = sqrt(1 + s^2 - 2 s k(t)),     angle = arccos k(t),

    both about radius / sqrt(n). A Gaussian read-out changes its sign with probability angle / pi.

    >>> [round(number, 4) for number in wide_change(100)]
    [0.0989, 0.0986]

    Arguments:
        num_tokens: n.
        radius: in units of sqrt(d).
    """
    check_positive(num_tokens=num_tokens)
    square = 1 + radius**2 / num_tokens
    turn = math.atan(radius / math.sqrt(num_tokens))
    kernel = (math.sin(turn) + (math.pi - turn) * math.cos(turn)) / math.pi
    return math.sqrt(max(0.0, 1 + square - 2 * math.sqrt(square) * kernel)), math.acos(kernel)


class MovedBlock(OneWord):
    """sigma(V flat(X) + V_i Delta): O(k d) for each change.

    Arguments:
        word: (d,).
        sums: V flat(X), (k,).
        block: V_i, (k, d).
        activation: sigma.
    """

    def __init__(self, word: Tensor, sums: Tensor, block: Tensor, activation: str = "relu") -> None:
        self._sums, self._block, self._sigma = sums, block, ACTIVATIONS[activation]
        super().__init__(word, self._sigma(sums))

    def features(self, changes: Tensor) -> Tensor:
        return self._sigma(self._sums + changes @ self._block.T)

    def upper_bound(self, length: float) -> float:
        """No change of this length gives a relative change above ||V_i||_op * length / ||phi(X)||, as sigma has slopes
        of at most 1."""
        squares = self._block.new_zeros(len(self.word), len(self.word), dtype=torch.float64)
        for rows in torch.split(self._block, 2**14):
            squares += rows.double().T @ rows.double()
        return math.sqrt(float(torch.linalg.eigvalsh(squares)[-1])) * length / self.norm
