"""The removal of a token."""

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from jostle.errors import UsageError
from jostle.perturbations.perturbation import PERTURBATIONS, Perturbation


@PERTURBATIONS.register("deletion")
@dataclass(frozen=True)
class Deletion(Perturbation):
    """The token becomes padding, and the text closes up: one token less, one more padding. Deterministic.

    For token ids, with ``tokens=Words()``.

    >>> Deletion(pad=1).apply(torch.tensor([[7], [8]]), np.empty((2, 0))).tolist()
    [[1], [1]]

    Arguments:
        pad: the id of padding; by default the one that pads the inputs, or that the model calls its own.
    """

    pad: int | None = None

    def __post_init__(self) -> None:
        if self.pad is not None and (isinstance(self.pad, bool) or not isinstance(self.pad, int) or self.pad < 0):
            raise UsageError(f"pad={self.pad!r} of Deletion must be a token id, 0 or larger")

    @property
    def is_deterministic(self) -> bool:
        return True

    @property
    def closes_up(self) -> bool:
        return True

    def check(self, token: Tensor) -> None:
        if token.is_floating_point() or token.shape[1] != 1:
            raise UsageError("perturbation=deletion needs token ids: use tokens=words, and inputs of whole numbers")

    def apply(self, tokens: Tensor, uniforms: NDArray[np.float64]) -> Tensor:  # noqa: ARG002
        return torch.full_like(tokens, self.pad or 0)

    def describe(self) -> str:
        return "deletion" if self.pad is None else f"deletion:pad={self.pad}"
