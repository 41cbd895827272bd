"""Random features of given inputs, drawn with the right joint law and without the matrix V (k x n d)."""

import torch
from torch import Tensor

from jostle.errors import UsageError
from jostle.features.feature_map import check_words, gaussian, generator
from jostle.features.random_features import ACTIVATIONS, MovedBlock
from jostle.models.sizes import check_choice, check_positive

_ROWS = 2**12  # of V_i at once


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
        words: (N, n, d); its dtype is that of all that is drawn.
        position: of the word that may move.
        width: k; n d by default.
        activation: sigma: ``relu``, ``tanh`` or ``identity``.
        seed: of all that is drawn.
    """

    def __init__(
        self, words: Tensor, position: int, *, width: int | None = None, activation: str = "relu", seed: int = 0
    ) -> None:
        if words.ndim != 3 or len(words) == 0:
            raise UsageError(f"words must be inputs of shape (inputs, num_tokens, dim), got {tuple(words.shape)}")
        check_words(words[0], position)
        check_choice("activation", activation, ACTIVATIONS)
        self._size = words[0].numel()
        self.width = self._size if width is None else width
        check_positive(width=self.width)
        self._words, self._activation, self._seed = words[:, position], activation, seed
        flat = words.flatten(1).double()
        values, vectors = torch.linalg.eigh(flat @ flat.T / self._size)
        kept = values > len(values) * torch.finfo(torch.float64).eps * values[-1]  # repeated inputs have no more
        self._values, self._vectors = values[kept], vectors[:, kept]
        drawn = gaussian(len(self._values), self.width, std=1.0, seed=seed, name="drawn/sums")  # (rank, k)
        self._drawn = drawn.to(words.dtype)
        self.sums = ((self._vectors * self._values.sqrt()) @ drawn).to(words.dtype)  # (N, k): V flat(X)
        self._block: Tensor | None = None

    @property
    def features(self) -> Tensor:
        """Of the inputs as they are, (N, k)."""
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
