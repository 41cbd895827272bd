"""What a token becomes: a pure function of the token and of uniform random numbers."""

import math
from abc import ABC, abstractmethod
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import special
from torch import Tensor

from jostle.errors import UsageError
from jostle.registry import Registry

PERTURBATIONS: Registry[type["Perturbation"]] = Registry(
    "perturbation",
    [
        f"jostle.perturbations.{name}"
        for name in ("gaussian_noise", "sphere", "sign_flip", "uniform_token", "replace_by", "deletion")
    ],
)


class Perturbation(ABC):
    """One way to move a token.

    A perturbation holds no random state. It says how many uniform numbers it needs for a token of a given size and
    turns (token, numbers) into the new token, so the same numbers give the same jostle for every model, and the same
    numbers at another strength give the same direction (common random numbers along a sweep).
    """

    @property
    def is_deterministic(self) -> bool:
        """Whether the new token is a function of the old one alone: then one draw says it all."""
        return False

    @property
    def moves_nothing(self) -> bool:
        """Whether every token stays what it is: noise of std 0, a step of length 0."""
        return False

    @property
    def closes_up(self) -> bool:
        """Whether the token goes and the others of its input move together."""
        return False

    def num_uniforms(self, dim: int) -> int:
        """How many uniform numbers the new value of one token of ``dim`` numbers takes."""
        return 0 if self.is_deterministic else dim

    def check(self, token: Tensor) -> None:  # noqa: B027
        """Raise if tokens like this one (1, dim) cannot be moved this way."""

    @abstractmethod
    def apply(self, tokens: Tensor, uniforms: NDArray[np.float64]) -> Tensor:
        """The new tokens (batch, dim) from the old ones and from ``uniforms`` (batch, num_uniforms)."""

    @abstractmethod
    def describe(self) -> str:
        """A spec that makes this perturbation again, e.g. ``gaussian-noise:std=1``."""


def normals(uniforms: NDArray[np.float64], like: Tensor) -> Tensor:
    """Standard normal numbers from uniform ones by the inverse distribution function, in the type of ``like``.

    One uniform number gives one normal number, element by element in float64, so the result does not depend on how
    many are converted together.
    """
    return torch.from_numpy(special.ndtri(uniforms)).to(dtype=like.dtype)


def numbers(name: str, value: Any, owner: str) -> Tensor:
    """``value`` as a tensor; anything that is not numbers is refused."""
    try:
        return torch.as_tensor(value)
    except (TypeError, ValueError, RuntimeError):
        raise UsageError(f"{name}={value!r} of {owner} must be numbers") from None


def must_be_real(perturbation: Perturbation, token: Tensor) -> None:
    """Raise if the tokens are integers, to which noise cannot be added."""
    if token.dtype == torch.uint8:
        raise UsageError(
            "inputs are uint8, as images from 0 to 255: scale them as the model expects them, for example "
            f"inputs.float() / 255, before {perturbation.describe()} is applied"
        )
    if not token.is_floating_point():
        kind = str(token.dtype).removeprefix("torch.")
        raise UsageError(
            f"perturbation={perturbation.describe()} needs real-valued tokens, but they are {kind}: use "
            "uniform-token or replace-by for token ids, or give embeddings"
        )


def must_be_at_least_zero(name: str, value: float, owner: str) -> None:
    """Raise unless ``value`` is a finite number >= 0."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not math.isfinite(value) or value < 0:
        raise UsageError(f"{name}={value!r} of {owner} must be a finite number, 0 or larger")
