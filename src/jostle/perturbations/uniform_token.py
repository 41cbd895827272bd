"""Replacement by a random token of a vocabulary."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from jostle.errors import UsageError
from jostle.perturbations.perturbation import PERTURBATIONS, Perturbation, numbers
from jostle.specs import written_list


@PERTURBATIONS.register("uniform-token")
@dataclass(frozen=True, eq=False)
class UniformToken(Perturbation):
    """A token drawn uniformly from a vocabulary, the present one included: paper 1 (2403.06925), Def. 4.1 and 4.2.

    Since the present token may return, parity under uniform bits has sensitivity 1/2 and not 1.

    Arguments:
        vocabulary: a number V, for token ids 0 .. V - 1; or the tokens themselves, (V,) or (V, dim).
    """

    vocabulary: int | Tensor | Sequence[Any] | ArrayLike

    def __post_init__(self) -> None:
        if isinstance(self.vocabulary, bool) or (isinstance(self.vocabulary, int) and self.vocabulary < 1):
            raise UsageError(f"vocabulary={self.vocabulary!r} of UniformToken must have at least one token")
        table = (
            torch.arange(self.vocabulary)
            if isinstance(self.vocabulary, int)
            else numbers("vocabulary", self.vocabulary, "UniformToken")
        )
        if table.dim() not in (1, 2) or len(table) == 0:
            raise UsageError(
                f"vocabulary of UniformToken must be (V,) or (V, dim) with V >= 1, not {tuple(table.shape)}"
            )
        object.__setattr__(self, "_table", table.reshape(len(table), -1))  # (V, dim)

    @property
    def table(self) -> Tensor:
        """The vocabulary as (V, dim)."""
        table: Tensor = self._table  # type: ignore[attr-defined]
        return table

    def num_uniforms(self, dim: int) -> int:  # noqa: ARG002
        return 1

    def check(self, token: Tensor) -> None:
        if self.table.shape[1] != token.shape[1]:
            raise UsageError(
                f"vocabulary of UniformToken has tokens of {self.table.shape[1]} numbers, the inputs' tokens have "
                f"{token.shape[1]}"
            )

    def apply(self, tokens: Tensor, uniforms: NDArray[np.float64]) -> Tensor:
        chosen = (uniforms[:, 0] * len(self.table)).astype(np.int64)
        return self.table[torch.from_numpy(chosen)].to(tokens.dtype)

    def describe(self) -> str:
        if isinstance(self.vocabulary, int):
            return f"uniform-token:{self.vocabulary}"
        if self.table.shape[1] == 1 and len(self.table) <= 8:
            return f"uniform-token:{written_list(self.table[:, 0].tolist())}"
        return f"uniform-token:<{self.table.shape[0]} tokens of {self.table.shape[1]} numbers>"
