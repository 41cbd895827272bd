"""The flip of a bit."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from jostle.perturbations.perturbation import PERTURBATIONS, Perturbation, must_be_real


@PERTURBATIONS.register("sign-flip")
@dataclass(frozen=True)
class SignFlip(Perturbation):
    """-token: for bits of -1 and +1 the flip of paper 1 (2403.06925), Eq. 1. Deterministic."""

    @property
    def is_deterministic(self) -> bool:
        return True

    def check(self, token: Tensor) -> None:
        must_be_real(self, token)

    def apply(self, tokens: Tensor, uniforms: NDArray[np.float64]) -> Tensor:  # noqa: ARG002
        return -tokens

    def describe(self) -> str:
        return "sign-flip"
