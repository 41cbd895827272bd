"""Additive Gaussian noise, the perturbation of paper 1."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from jostle.perturbations.perturbation import PERTURBATIONS, Perturbation, must_be_at_least_zero, must_be_real, normals
from jostle.specs import written


@PERTURBATIONS.register("gaussian-noise")
@dataclass(frozen=True)
class GaussianNoise(Perturbation):
    """token + xi with xi ~ N(0, std^2 I): paper 1 (2403.06925), Section 4, for inputs that are not Boolean.

    Arguments:
        std: the standard deviation, never the variance (paper 1's sigma^2 = 15 is std = 3.87).
    """

    std: float

    def __post_init__(self) -> None:
        must_be_at_least_zero("std", self.std, "GaussianNoise")

    @property
    def is_deterministic(self) -> bool:
        return self.std == 0

    @property
    def moves_nothing(self) -> bool:
        return self.std == 0

    def check(self, token: Tensor) -> None:
        must_be_real(self, token)

    def apply(self, tokens: Tensor, uniforms: NDArray[np.float64]) -> Tensor:
        return tokens if self.std == 0 else tokens + self.std * normals(uniforms, tokens)

    def describe(self) -> str:
        return f"gaussian-noise:std={written(self.std)}"
