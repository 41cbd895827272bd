"""Replacement by a given token."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from jostle.errors import UsageError
from jostle.perturbations.perturbation import PERTURBATIONS, Perturbation, numbers
from jostle.specs import written, written_list


@PERTURBATIONS.register("replace-by")
@dataclass(frozen=True, eq=False)
class ReplaceBy(Perturbation):
    """The token becomes a given one: zero (occlusion), a mask token, a mean patch. Deterministic.

    Arguments:
        token: one number for all parts of the token, or (dim,) numbers.
    """

    token: float | Tensor | Sequence[Any] | ArrayLike

    def __post_init__(self) -> None:
        value = numbers("token", self.token, "ReplaceBy").reshape(-1)
        if value.numel() == 0 or (value.is_floating_point() and not value.isfinite().all()):
            raise UsageError(f"token={self.token!r} of ReplaceBy must be finite numbers, at least one")
        object.__setattr__(self, "_value", value)

    @property
    def is_deterministic(self) -> bool:
        return True

    @property
    def value(self) -> Tensor:
        """The new token, (dim,) or (1,)."""
        value: Tensor = self._value  # type: ignore[attr-defined]
        return value

    def check(self, token: Tensor) -> None:
        if not token.is_floating_point() and (self.value.to(token.dtype) != self.value).any():
            raise UsageError(f"token={self.token!r} of ReplaceBy does not fit tokens of type {token.dtype}")
        if self.value.numel() not in (1, token.shape[1]):
            raise UsageError(
                f"token of ReplaceBy has {self.value.numel()} numbers, the inputs' tokens have {token.shape[1]}"
            )

    def apply(self, tokens: Tensor, uniforms: NDArray[np.float64]) -> Tensor:  # noqa: ARG002
        return self.value.to(tokens.dtype).expand_as(tokens)

    def describe(self) -> str:
        if self.value.numel() == 1:
            return f"replace-by:{written(self.value.item())}"
        listed = written_list(self.value.tolist()) if self.value.numel() <= 8 else f"<{self.value.numel()} numbers>"
        return f"replace-by:{listed}"
