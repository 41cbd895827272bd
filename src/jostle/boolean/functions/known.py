"""``KnownFunction``: a Boolean function together with its closed-form values, ``Exact``.

Also here: the registry of functions, how ``Exact`` is put together, and the checks of arguments that only Boolean
functions have (lists, coordinates, signs). Not here: the functions themselves (one file for each family) and the same
quantities by enumeration (``jostle.boolean.pointwise``, ``jostle.boolean.fourier``).
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jostle.base import checks
from jostle.base.errors import UsageError
from jostle.base.registry import Registry
from jostle.boolean import cube

Floats = NDArray[np.float64]

MOST_BITS = 1_000_000  # closed forms of so many take seconds
_ROWS = 1 << 16  # points of a table evaluated at once


@dataclass(frozen=True, eq=False, kw_only=True)
class Exact:
    """Closed-form values of one function of n bits; None where no closed form is known or computing it takes too long.

    Every value comes from a formula in whole numbers and fractions, rounded to a float once at the end. With
    ``is_expectation`` the values are means over a random choice of the function, and a single function may differ.
    Source of the definitions: O'Donnell, "Analysis of Boolean Functions" (2014), chapters 1 and 2.

    Arguments:
        mean: E[f(x)] for uniform x.
        total_sensitivity: E[s(x, f)], the sum of the influences; s as in ``jostle.boolean.pointwise``.
        max_sensitivity: the largest s(x, f).
        min_sensitivity: the smallest s(x, f).
        degree: the largest size of a U with fhat(U) != 0.
        influences: (n,), Inf_i.
        sensitivity_profile: n + 1 counts: how many of the 2^n points have s(x, f) = 0, 1, .., n.
        weight_by_degree: (n + 1,), the sum of fhat(U)^2 over the U of size k.
        is_expectation: True if the values are means over random functions.
    """

    mean: float | None = None
    total_sensitivity: float | None = None
    max_sensitivity: float | None = None
    min_sensitivity: float | None = None
    degree: int | None = None
    influences: Floats | None = None
    sensitivity_profile: tuple[int, ...] | None = None
    weight_by_degree: Floats | None = None
    is_expectation: bool = False

    @property
    def noise_stability(self) -> Callable[[float], float] | None:
        """Stab_rho = E[f(x) f(y)] for rho-correlated x and y, as a function of rho: the sum of rho^k W_k over k."""
        weights = self.weight_by_degree
        if weights is None:
            return None
        return lambda rho: float(np.polynomial.polynomial.polyval(rho, weights))


@dataclass(frozen=True)
class KnownFunction:
    """A function of n bits with known values: call it on points, make its table, or read its exact values.

    >>> from jostle.boolean.functions import majority
    >>> majority(3)(np.array([[-1, 1, 1], [-1, -1, 1]])).tolist()
    [1, -1]
    >>> majority(3).table().tolist(), majority(3).exact.total_sensitivity
    ([-1, -1, -1, 1, -1, 1, 1, 1], 1.5)

    Arguments:
        name: its registered name.
        n: the number of bits.
        options: what ``create`` needs besides name and n to make the same function again.
        is_boolean: True if it takes the values -1 and 1 only, False if it is real-valued.
    """

    name: str
    n: int
    options: Mapping[str, Any] = field(hash=False)
    is_boolean: bool = field(compare=False)
    _evaluate: Callable[[NDArray[np.int8]], NDArray[Any]] = field(repr=False, compare=False)  # (N, n) -> (N,)
    _derive: Callable[[], Exact] = field(repr=False, compare=False)

    @cached_property
    def exact(self) -> Exact:
        """The closed-form values, computed at the first use."""
        return self._derive()

    def __call__(self, points: Any) -> Any:
        """f at each row of ``points``: (N, n) of -1 and 1 -> (N,), int8 for signs and float64 for real values.

        A tensor gives a tensor on the same device; any other input gives a numpy array.
        """
        if hasattr(points, "detach"):
            found = self(points.detach().cpu().numpy())
            import torch  # a caller with a tensor has imported torch already

            return torch.from_numpy(found).to(points.device)
        array = np.asarray(points)
        if array.ndim != 2 or array.shape[1] != self.n:
            raise UsageError(f"{self.name} takes points of shape (N, {self.n}), got {array.shape}")
        if not np.isin(array, (-1, 1)).all():
            wrong = array[~np.isin(array, (-1, 1))][0]
            raise UsageError(f"{self.name} takes points of -1 and 1, got {wrong}; map bits by 2 * bits - 1")
        return self._values(array.astype(np.int8))

    def table(self) -> NDArray[Any]:
        """All 2^n values in table order: int8 for signs, float64 for real values."""
        if self.n > cube.LARGEST:
            raise UsageError(
                f"{self.name} with n={self.n} has 2^{self.n} values; tables are made up to n={cube.LARGEST}, "
                "beyond that use exact or sample points"
            )
        size = 2**self.n
        found = np.empty(size, dtype=np.int8 if self.is_boolean else np.float64)
        for start in range(0, size, _ROWS):
            stop = min(size, start + _ROWS)
            found[start:stop] = self._values(cube.points(self.n, start, stop))
        return found

    def _values(self, points: NDArray[np.int8]) -> NDArray[Any]:
        return np.asarray(self._evaluate(points)).astype(np.int8 if self.is_boolean else np.float64)


FUNCTIONS = Registry[Callable[..., KnownFunction]]("Boolean function")
register = FUNCTIONS.register


def exact_of_signs(
    n: int,
    mean: Fraction | int,
    influences: Sequence[Fraction | int],
    profile: Sequence[int] | None,
    weights: Sequence[Fraction | int] | None,
) -> Exact:
    """``Exact`` of a function into {-1, 1}, from the values that determine all others."""
    seen = [s for s, count in enumerate(profile) if count] if profile is not None else None
    return Exact(
        mean=float(mean),
        total_sensitivity=float(sum(influences)),
        max_sensitivity=seen[-1] if seen else None,
        min_sensitivity=seen[0] if seen else None,
        degree=degree_of(weights) if weights is not None else None,
        influences=floats(influences),
        sensitivity_profile=pad(profile, n) if profile is not None else None,
        weight_by_degree=floats(pad(weights, n)) if weights is not None else None,
    )


def exact_of_junta(inner: Exact, coordinates: Sequence[int], n: int) -> Exact:
    """``Exact`` of x -> f(x at these coordinates) for n bits, from ``inner``, that of f."""
    influences = np.zeros(n)
    if inner.influences is not None:
        influences[list(coordinates)] = inner.influences
    profile, weights = inner.sensitivity_profile, inner.weight_by_degree
    copies = 2 ** (n - len(coordinates))
    return Exact(
        mean=inner.mean,
        total_sensitivity=inner.total_sensitivity,
        max_sensitivity=inner.max_sensitivity,
        min_sensitivity=inner.min_sensitivity,
        degree=inner.degree,
        influences=floats(influences) if inner.influences is not None else None,
        sensitivity_profile=pad([count * copies for count in profile], n) if profile is not None else None,
        weight_by_degree=floats(pad(list(weights), n)) if weights is not None else None,
    )


def degree_of(weights: Sequence[Any]) -> int:
    """The largest k whose weight is not 0; 0 if all weights are 0."""
    return max((k for k, weight in enumerate(weights) if weight), default=0)


def pad(values: Sequence[Any], n: int) -> tuple[Any, ...]:
    """The values, followed by zeros up to n + 1 entries."""
    return (*values, *[0] * (n + 1 - len(values)))


def floats(values: Iterable[Any]) -> Floats:
    """Numbers or fractions as floats, each rounded once; read-only, because all callers share the array."""
    array = np.array([float(value) for value in values])
    array.flags.writeable = False
    return array


def as_list(name: str, value: Any) -> list[Any]:
    """``value`` as a list of Python numbers. One number becomes a list of one: a spec ``coordinates=3`` gives a number.

    >>> as_list("coordinates of junta", 3), as_list("weights of threshold", np.array([0.5, 1.0]))
    ([3], [0.5, 1.0])
    """
    if isinstance(value, Iterable) and not isinstance(value, str | bytes):
        return [item.item() if hasattr(item, "item") else item for item in value]
    if isinstance(value, int | float) and not isinstance(value, bool):
        return [value]
    raise checks.wrong(name, value, "a list of numbers, for example [1, 0, 2]")


def num_bits(function: str, n: Any) -> int:
    """``n`` as a number of bits of a function.

    >>> num_bits("majority", 10**11)
    Traceback (most recent call last):
    jostle.base.errors.UsageError: n of majority=100000000000 must be a whole number from 1 to 1000000
    """
    return checks.whole(f"n of {function}", n, least=1, most=MOST_BITS)


def coordinates_of(function: str, value: Any, n: int) -> list[int]:
    """``value`` as a list of different coordinates from 0 to n - 1."""
    name = f"coordinates of {function}"
    found = [checks.whole(f"coordinate of {function}", item, least=0, most=n - 1) for item in as_list(name, value)]
    if len(set(found)) < len(found):
        raise checks.wrong(name, found, "different from each other")
    return found


def sign(name: str, value: Any) -> int:
    """``value`` as -1 or 1."""
    if isinstance(value, bool) or value not in (-1, 1):
        raise checks.wrong(name, value, "-1 or 1")
    return int(value)
