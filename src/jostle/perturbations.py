"""What a token becomes: a pure function of the token and of uniform random numbers.

``GaussianNoise`` (paper 1's), ``Sphere`` (a step of fixed length in a random direction), ``SignFlip`` (a bit),
``UniformToken`` (a random token of a vocabulary), ``ReplaceBy`` (a given token), ``OtherInput`` (that of another
input), ``Deletion`` (none) and ``Correlated`` (a token that keeps a given correlation with the old one: noise
stability).
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from scipy import special
from torch import Tensor
from torch.linalg import vector_norm

from jostle.base import checks
from jostle.base.errors import UsageError
from jostle.base.registry import Registry
from jostle.base.specs import written, written_list

_MOST_TOKENS = 10_000_000  # of a vocabulary, whose numbers are listed

PERTURBATIONS: Registry[type["Perturbation"]] = Registry("perturbation", group="jostle.perturbations")


class Perturbation(ABC):
    """One way to change a token.

    A perturbation holds no random state. It says how many uniform numbers it needs for a token of a given size and
    turns (token, numbers) into the new token. So the same numbers give the same change for every model, and the same
    numbers at another strength give the same direction (common random numbers along a sweep).
    """

    # Whether the change is noise of some size, which tables take in units of each of their columns.
    has_size: ClassVar[bool] = False

    @property
    def is_deterministic(self) -> bool:
        """Whether the new token is a function of the old one alone, so that one draw is enough."""
        return False

    @property
    def moves_nothing(self) -> bool:
        """Whether every token stays as it is: noise of std 0, a step of length 0."""
        return False

    @property
    def closes_up(self) -> bool:
        """Whether the token is removed and the rest of its input closes up."""
        return False

    def num_uniforms(self, dim: int) -> int:
        """How many uniform numbers one token of ``dim`` numbers needs."""
        return 0 if self.is_deterministic else dim

    def check(self, token: Tensor) -> None:  # noqa: B027
        """Raise if tokens like this one (1, dim) cannot be changed this way."""

    def apply_in(self, units: tuple[Tensor, Tensor], tokens: Tensor, uniforms: NDArray[np.float64]) -> Tensor:
        """``apply`` in units of (mean, std), each a number or (batch, dim) of float64: noise only; others as they are.

        x + std (P(z) - z) with z = (x - mean) / std and P the perturbation. Where std is 0, x stays.
        """
        if not self.has_size:
            return self.apply(tokens, uniforms)
        mean, std = units
        scaled = (tokens.double() - mean) / torch.where(std > 0, std, 1.0)
        step = std * (self.apply(scaled, uniforms) - scaled)
        return torch.where(step == 0, tokens, (tokens.double() + step).to(tokens.dtype))

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


def as_numbers(name: str, value: Any) -> Tensor:
    """``value`` as a tensor; anything that is not numbers is refused."""
    try:
        return torch.as_tensor(value)
    except (TypeError, ValueError, RuntimeError):
        raise checks.wrong(name, value, "numbers") from None


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


@PERTURBATIONS.register("gaussian-noise")
@dataclass(frozen=True)
class GaussianNoise(Perturbation):
    """token + xi with xi ~ N(0, std^2 I): paper 1 (2403.06925), Section 4, for inputs that are not Boolean.

    Arguments:
        std: the standard deviation, never the variance (paper 1's sigma^2 = 15 is std = 3.87).
    """

    std: float
    has_size: ClassVar[bool] = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "std", checks.number("std", self.std, least=0))

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


@PERTURBATIONS.register("sphere")
@dataclass(frozen=True)
class Sphere(Perturbation):
    """token + radius * u with u uniform on the unit sphere: the average case of paper 3's ball (2402.02969).

    Arguments:
        radius: the length of the step.
        relative: whether ``radius`` is in units of the token's own norm, as in paper 3.
    """

    radius: float
    relative: bool = False
    has_size: ClassVar[bool] = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "radius", checks.number("radius", self.radius, least=0))
        checks.truth("relative", self.relative)

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
            raise checks.wrong("vocabulary", self.vocabulary, "the number of tokens, at least 1, or the tokens")
        if isinstance(self.vocabulary, int):
            checks.whole("vocabulary", self.vocabulary, most=_MOST_TOKENS)
        table = (
            torch.arange(self.vocabulary)
            if isinstance(self.vocabulary, int)
            else as_numbers("vocabulary", self.vocabulary)
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
        size = f" of {self.table.shape[1]} numbers" if self.table.shape[1] > 1 else ""
        return f"uniform-token:<{self.table.shape[0]} tokens{size}>"


@PERTURBATIONS.register("replace-by")
@dataclass(frozen=True, eq=False)
class ReplaceBy(Perturbation):
    """The token becomes a given one: zero (occlusion), a mask token, a mean patch. Deterministic.

    Arguments:
        token: one number for all parts of the token, or (dim,) numbers.
    """

    token: float | Tensor | Sequence[Any] | ArrayLike

    def __post_init__(self) -> None:
        value = as_numbers("token", self.token).reshape(-1)
        if value.numel() == 0 or (value.is_floating_point() and not value.isfinite().all()):
            raise checks.wrong("token", self.token, "finite numbers, at least one")
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


@PERTURBATIONS.register("other-input")
@dataclass(frozen=True)
class OtherInput(Perturbation):
    """The token at the same place of another input, drawn uniformly, the present one included.

    For tables this is the value that the column has in another row, the change behind permutation importance
    (Breiman, Random Forests, 2001, Section 10): it suits numbers and categories, and makes no value that does not
    occur. For images it is the patch at the same place of another image.
    """

    def num_uniforms(self, dim: int) -> int:  # noqa: ARG002
        return 1

    def rows(self, uniforms: NDArray[np.float64], count: int) -> NDArray[np.int64]:
        """The input of ``count`` that each token is taken from."""
        return (uniforms[:, 0] * count).astype(np.int64)

    def apply(self, tokens: Tensor, uniforms: NDArray[np.float64]) -> Tensor:  # noqa: ARG002
        raise UsageError(
            "perturbation=other-input takes tokens of inputs that are no texts: use uniform-token for texts, and "
            "measure, compare or sweep"
        )

    def describe(self) -> str:
        return "other-input"


@PERTURBATIONS.register("correlated")
@dataclass(frozen=True, eq=False)
class Correlated(Perturbation):
    """A rho-correlated copy, each number of the token on its own: the noise of noise stability (arXiv 2602.08287).

    * Real numbers, an Ornstein-Uhlenbeck step:  y = centre + rho (x - centre) + sqrt(1 - rho^2) std xi,  xi ~ N(0, 1).
      If x ~ N(centre, std^2), so is y, and their correlation is rho.
    * With a ``vocabulary``, ids or bits: y = x with probability rho, otherwise a token drawn uniformly from the
      vocabulary, the present one included. Bits (``vocabulary=(-1, 1)``) are so flipped with probability
      (1 - rho) / 2, as in the analysis of Boolean functions; they alone may have a negative rho.

    Move all tokens of an input with ``Whole()``, ``Words(whole=True)`` or ``Embeddings(whole=True)``;
    ``jostle.stability`` does so. With rho = 1 nothing moves, with rho = 0 nothing of the input is left. The same
    uniform numbers at another rho give the same xi, the same coins and the same new tokens.

    >>> coins_and_choices = np.array([[0.1, 0.5, 0.7, 0.9, 0.2, 0.2, 0.2, 0.9]])
    >>> Correlated(0.6, vocabulary=(-1, 1)).apply(torch.ones(1, 4), coins_and_choices).tolist()
    [[1.0, 1.0, -1.0, 1.0]]

    Arguments:
        rho: the correlation, from 0 to 1; from -1 for real numbers and bits.
        vocabulary: for ids or bits, a number V for ids 0 .. V - 1, or the tokens themselves, (V,).
        centre, std: mean and standard deviation of the real numbers: those that an OU process would leave as they are.
    """

    rho: float
    vocabulary: int | Tensor | Sequence[Any] | ArrayLike | None = None
    centre: float = 0.0
    std: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "rho", checks.number("rho", self.rho, least=-1, most=1))
        object.__setattr__(self, "centre", checks.number("centre", self.centre))
        object.__setattr__(self, "std", checks.number("std", self.std, least=0))
        table = None
        if self.vocabulary is not None:
            table = UniformToken(self.vocabulary).table
            if table.shape[1] != 1:
                raise UsageError("vocabulary of Correlated must be a number of ids, or tokens that are numbers, (V,)")
            table = table[:, 0]
            if self.rho < 0 and len(table) != 2:
                raise UsageError(
                    f"rho={self.rho:g} with a vocabulary of {len(table)} tokens: only bits can be anticorrelated, use "
                    "rho from 0 to 1"
                )
        object.__setattr__(self, "_table", table)

    @property
    def has_size(self) -> bool:  # type: ignore[override]
        """Whether it is noise: a vocabulary has no size."""
        return self.table is None

    @property
    def table(self) -> Tensor | None:
        """The vocabulary as (V,); None for real numbers."""
        table: Tensor | None = self._table  # type: ignore[attr-defined]
        return table

    @property
    def is_deterministic(self) -> bool:
        return self.rho == 1

    @property
    def moves_nothing(self) -> bool:
        return self.rho == 1

    def num_uniforms(self, dim: int) -> int:
        return 0 if self.rho == 1 else dim if self.table is None else 2 * dim

    def check(self, token: Tensor) -> None:
        if self.rho == 1:
            return
        if self.table is None:
            must_be_real(self, token)
        elif not token.is_floating_point() and (self.table.to(token.dtype) != self.table).any():
            raise UsageError(f"vocabulary of {self.describe()} does not fit tokens of type {token.dtype}")

    def apply(self, tokens: Tensor, uniforms: NDArray[np.float64]) -> Tensor:
        if self.rho == 1:
            return tokens
        table, dim = self.table, tokens.shape[1]
        if table is None:
            return self.mix(tokens, normals(uniforms, tokens))
        if self.rho < 0:  # two tokens: the other one with probability (1 - rho) / 2
            is_new, other = uniforms[:, :dim] >= (1 + self.rho) / 2, table.flip(0)
            values = torch.where(tokens == table[0].to(tokens.dtype), other[0], other[1])
        else:
            is_new = uniforms[:, :dim] >= self.rho
            values = table[torch.from_numpy((uniforms[:, dim:] * len(table)).astype(np.int64))]
        return torch.where(torch.from_numpy(is_new), values.to(tokens.dtype), tokens)

    def mix(self, tokens: Tensor, noise: Tensor) -> Tensor:
        """centre + rho (tokens - centre) + sqrt(1 - rho^2) std noise."""
        left: Tensor = self.centre + self.rho * (tokens - self.centre)
        return left + math.sqrt(1 - self.rho**2) * self.std * noise

    def describe(self) -> str:
        parts = [f"rho={written(self.rho)}"]
        if isinstance(self.vocabulary, int):
            parts.append(f"vocabulary={self.vocabulary}")
        elif self.table is not None:
            is_short = len(self.table) <= 8
            parts.append(
                f"vocabulary={written_list(self.table.tolist()) if is_short else f'<{len(self.table)} tokens>'}"
            )
        numbers = (("centre", self.centre, 0.0), ("std", self.std, 1.0))
        parts += [f"{name}={written(value)}" for name, value, usual in numbers if value != usual]
        return f"correlated:{','.join(parts)}"


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
        if self.pad is not None:
            object.__setattr__(self, "pad", checks.whole("pad", self.pad, least=0, hint=": a token id"))

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
