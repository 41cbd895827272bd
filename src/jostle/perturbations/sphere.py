"""A step of fixed length in a random direction."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from torch import Tensor
from torch.linalg import vector_norm

from jostle.perturbations.perturbation import PERTURBATIONS, Perturbation, must_be_at_least_zero, must_be_real, normals
from jostle.specs import written


@PERTURBATIONS.register("sphere")
@dataclass(frozen=True)
class Sphere(Perturbation):
    """token + radius * u with u uniform on the unit sphere: the average-case twin of paper 3's ball (2402.02969).

    Arguments:
        radius: the length of the step.
        relative: whether ``radius`` is in units of the token's own norm, as in paper 3.
    """

    radius: float
    relative: bool = False

    def __post_init__(self) -> None:
        must_be_at_least_zero("radius", self.radius, "Sphere")

    @property
    def is_deterministic(self) -> bool:
        return self.radius == 0

    @property
    def moves_nothing(self) -> bool:
        return self.radius == 0

    def check(self, token: Tensor) -> None:
        must_be_real(self, token)

    def apply(self, tokens: Tensor, uniforms: NDArray[np.float64]) -> Tensor:
        if self.radius == 0:
            return tokens
        direction = normals(uniforms, tokens)  # (batch, dim)
        step: Tensor = self.radius * direction / vector_norm(direction, dim=1, keepdim=True)
        return tokens + (step * vector_norm(tokens, dim=1, keepdim=True) if self.relative else step)

    def describe(self) -> str:
        return f"sphere:radius={written(self.radius)}" + (",relative=true" if self.relative else "")
