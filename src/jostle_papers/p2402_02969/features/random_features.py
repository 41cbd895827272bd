"""Random features: random layers on the flattened input. Paper 3 (2402.02969), Eq. 3.1.

``RandomFeatures`` has one layer, ``DeepRandomFeatures`` several. ``DrawnFeatures`` are random features of given inputs,
drawn with the right joint law and without the matrix V (k x n d).
"""

import math
from collections.abc import Callable

import torch
from torch import Tensor

from jostle.base import checks
from jostle.base.errors import UsageError
from jostle_papers.p2402_02969.features.feature_map import (
    FeatureMap,
    OneWord,
    check_shape,
    check_words,
    gaussian,
    generator,
    register,
)
from jostle_papers.p2402_02969.features.lazy_gaussian import LazyGaussian

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {  # all have slopes of at most 1
    "relu": torch.relu,
    "tanh": torch.tanh,
    "identity": torch.Tensor.clone,
}
_HELD = 2**28  # bytes of V that are kept
_ROWS = 2**12  # of V_i at once


@register("rf")
class RandomFeatures(FeatureMap):
    """phi(X) = sigma(V flat(X)) with V_ij independent N(0, 1/(n d)), so that V flat(X) has variance 1: k features.

    V = [V_1 .. V_n] is made of one block (k, d) for each word. A block is drawn from its own generator whenever it is
    needed, so V is never in memory as a whole unless it is small. ``DrawnFeatures`` is much faster for a few inputs
    and one position.

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
        checks.sizes(num_tokens=num_tokens, dim=dim, width=width)
        checks.choice("activation", activation, ACTIVATIONS)
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
        """||V_i||_op * length / ||phi(X)||: no change of this length gives a larger relative change.

        The reason is that sigma has slopes of at most 1.
        """
        squares = self._block.new_zeros(len(self.word), len(self.word), dtype=torch.float64)
        for rows in torch.split(self._block, 2**14):
            squares += rows.double().T @ rows.double()
        return math.sqrt(float(torch.linalg.eigvalsh(squares)[-1])) * length / self.norm


class DrawnFeatures:
    """sigma(V flat(X)) of N inputs, and of all inputs that differ from one of them in the word at one position.

    A row v of V has D = n d independent entries N(0, 1/D). Only Z v is needed, Z (N, D) the inputs, and v_i, its block
    for the word that moves. Z v is Gaussian with covariance K = Z Z^T / D, and given it v_i is Gaussian with

        mean Z_i^T K^+ (Z v) / D   and covariance   (I - Z_i^T K^+ Z_i / D) / D,

    where Z_i (N, d) are the words at the position. So k (N + d) numbers have the law that k n d would give: for
    n = 150 and d = 768 one input takes 0.35 GB in float32, where V has 106 GB in float64.

    Every object is a fresh V. Where several positions of one V are wanted, use ``RandomFeatures``.

    >>> words = torch.ones(3, 10, 4)
    >>> words[1:] *= -1
    >>> drawn = DrawnFeatures(words, position=2, activation="identity")
    >>> drawn.features.shape, bool(torch.allclose(drawn.features[0], -drawn.features[1]))
    (torch.Size([3, 40]), True)

    Arguments:
        words: (N, n, d); all random numbers have its dtype.
        position: of the word that may move.
        width: k; n d by default.
        activation: sigma: ``relu``, ``tanh`` or ``identity``.
        seed: of all random numbers.
    """

    def __init__(
        self, words: Tensor, position: int, *, width: int | None = None, activation: str = "relu", seed: int = 0
    ) -> None:
        if words.ndim != 3 or len(words) == 0:
            raise UsageError(f"words must be inputs of shape (inputs, num_tokens, dim), got {tuple(words.shape)}")
        check_words(words[0], position)
        checks.choice("activation", activation, ACTIVATIONS)
        self._size = words[0].numel()
        self.width = self._size if width is None else width
        checks.sizes(width=self.width)
        self._words, self._activation, self._seed = words[:, position], activation, seed
        flat = words.flatten(1).double()
        values, vectors = torch.linalg.eigh(flat @ flat.T / self._size)
        kept = values > len(values) * torch.finfo(torch.float64).eps * values[-1]  # repeated inputs add no rank
        self._values, self._vectors = values[kept], vectors[:, kept]
        drawn = gaussian(len(self._values), self.width, std=1.0, seed=seed, name="drawn/sums")  # (rank, k)
        self._drawn = drawn.to(words.dtype)
        self.sums = ((self._vectors * self._values.sqrt()) @ drawn).to(words.dtype)  # (N, k): V flat(X)
        self._block: Tensor | None = None

    @property
    def features(self) -> Tensor:
        """Features of the inputs as they are, (N, k)."""
        return ACTIVATIONS[self._activation](self.sums)

    @property
    def block(self) -> Tensor:
        """V_i, (k, d), given V flat(X) of all inputs."""
        if self._block is None:
            self._block = self._draw_block()
        return self._block

    def one_word(self, index: int = 0) -> MovedBlock:
        """The features of input ``index`` as a function of its word at the position."""
        return MovedBlock(self._words[index], self.sums[index], self.block, self._activation)

    def _draw_block(self) -> Tensor:
        at_position = self._words.double()
        # K^+ = U diag(1 / values) U^T and Z v = U diag(sqrt(values)) drawn, so the mean is drawn^T loads / D.
        loads = (self._vectors / self._values.sqrt()).T @ at_position  # (rank, d)
        covariance = torch.eye(at_position.shape[1], dtype=torch.float64) - loads.T @ loads / self._size
        values, vectors = torch.linalg.eigh(covariance / self._size)
        root = (vectors * values.clamp(min=0).sqrt()).T.to(self.sums.dtype)  # (d, d)
        loads = (loads / self._size).to(self.sums.dtype)
        source = generator(self._seed, "drawn/block")
        block = torch.empty(self.width, len(root), dtype=self.sums.dtype)
        for start in range(0, self.width, _ROWS):
            rows = block[start : start + _ROWS]
            noise = torch.randn(rows.shape, generator=source, dtype=rows.dtype)
            torch.addmm(self._drawn[:, start : start + _ROWS].T @ loads, noise, root, out=rows)
        return block


@register("drf")
class DeepRandomFeatures(FeatureMap):
    """phi_0 = flat(X), phi_l = relu(V_l phi_(l-1)) for l = 1 .. L, with (V_l)_ij independent N(0, 2 / fan-in).

    The features are phi_L. At depth 1 it is ``RandomFeatures`` times sqrt(2), whose relative changes are the same.

    Differs: width and variance are the released code's (width n d, He's variance); the paper's text was not at hand.

    Arguments:
        num_tokens, dim: n and d.
        depth: L.
        width: k of all layers; n d by default.
        seed: of the matrices.
        lazy: draw only the products that are needed, with the same law (``LazyGaussian``). Then memory grows by 2
            vectors for each layer, input and gradient, instead of L k^2 numbers, and the random numbers of a seed
            depend on the order of the calls.
    """

    def __init__(
        self,
        *,
        num_tokens: int,
        dim: int,
        depth: int = 2,
        width: int | None = None,
        seed: int = 0,
        lazy: bool = False,
    ) -> None:
        super().__init__()
        width = num_tokens * dim if width is None else width
        checks.sizes(num_tokens=num_tokens, dim=dim, width=width, depth=depth)
        self.num_tokens, self.dim, self.is_lazy = num_tokens, dim, lazy
        self._layers: list[Tensor | LazyGaussian] = []
        for layer in range(depth):
            fan_in, name = width if layer else num_tokens * dim, f"drf/{layer}"
            std = (2 / fan_in) ** 0.5
            self._layers.append(
                LazyGaussian(width, fan_in, std=std, seed=seed, name=name)
                if lazy
                else gaussian(width, fan_in, std=std, seed=seed, name=name)
            )

    def forward(self, words: Tensor) -> Tensor:
        """Features, (batch, n, d) -> (batch, k)."""
        check_shape(words, self.num_tokens, self.dim)
        return self._from(words.flatten(1), 0)

    def one_word(self, words: Tensor, position: int) -> OneWord:
        """The first layer in O(k d) for each changed word if its matrix is in memory; the other layers in full."""
        check_words(words, position)
        first = self._layers[0]
        if isinstance(first, LazyGaussian):
            return super().one_word(words, position)
        check_shape(words, self.num_tokens, self.dim)
        columns = slice(position * self.dim, (position + 1) * self.dim)
        moved = MovedBlock(words[position], first.to(words) @ words.flatten(), first[:, columns].to(words))
        return _Deep(moved, self)

    def _from(self, features: Tensor, layer: int) -> Tensor:
        """The last features from those before layer number ``layer``, (batch, fan-in) -> (batch, k)."""
        for matrix in self._layers[layer:]:
            if isinstance(matrix, LazyGaussian):
                features = torch.relu(matrix.times(features))
            else:
                features = torch.relu(features @ matrix.to(features).T)
        return features


class _Deep(OneWord):
    """One word through the first layer by its block, and from there through all others."""

    def __init__(self, first: MovedBlock, network: DeepRandomFeatures) -> None:
        self._first, self._network = first, network
        super().__init__(first.word, network._from(first.clean[None], 1)[0])

    def features(self, changes: Tensor) -> Tensor:
        return self._network._from(self._first.features(changes), 1)


def wide_change(num_tokens: int, radius: float = 1.0) -> tuple[float, float]:
    """The limit of many ReLU features under a random change of one word: relative change and angle in radians.

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
    checks.sizes(num_tokens=num_tokens)
    square = 1 + radius**2 / num_tokens
    turn = math.atan(radius / math.sqrt(num_tokens))
    kernel = (math.sin(turn) + (math.pi - turn) * math.cos(turn)) / math.pi
    return math.sqrt(max(0.0, 1 + square - 2 * math.sqrt(square) * kernel)), math.acos(kernel)
