"""Paper 2's lower bound for a finite number of bits: a sensitive function is far from every insensitive one."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from jostle.base.errors import UsageError
from jostle.landscape.averages import Floats

_ROUNDING = 1e-9  # of the size of what is compared


@dataclass(frozen=True)
class SensitivityGap:
    """How far two functions of n bits are apart, and how far they must be.

    Arguments:
        n: bits.
        distance: E (f(x) - g(x))^2 over all strings.
        first, second: as_n(f) and as_n(g).
    """

    n: int
    distance: float
    first: float
    second: float

    @property
    def bound(self) -> float:
        """(sqrt as_n(f) - sqrt as_n(g))^2 / n: the distance is at least this."""
        return (math.sqrt(self.first) - math.sqrt(self.second)) ** 2 / self.n

    @property
    def slack(self) -> float:
        """The distance minus the bound."""
        return self.distance - self.bound

    @property
    def holds(self) -> bool:
        """Whether the distance is at least the bound, up to rounding. If not, the tables are wrong."""
        return self.slack >= -_ROUNDING * max(self.first, self.second, self.distance, 1e-300)

    def to_dict(self) -> dict[str, Any]:
        """A plain dictionary, for JSON."""
        return {**self.__dict__, "bound": self.bound, "holds": self.holds}


def sensitivity_gap(first: ArrayLike, second: ArrayLike) -> SensitivityGap:
    """Compare two functions of n bits, such as a network before and after a step of its weights.

        E (f - g)^2  >=  (sqrt as_n(f) - sqrt as_n(g))^2 / n,    as_n(f) = E sum over i of (f(x) - f(x^i))^2 / 4

    holds for all real f and g; x^i is x with bit i flipped. Reason: as_n(f) is the sum of |U| fhat(U)^2, so its square
    root is a seminorm in which f and g differ by at most sqrt(n) times their distance. So a network that computes a
    sensitive function has a large average direction sharpness if its perturbed copies are insensitive (paper 2,
    2402.09963, behind Theorem 6).

    >>> parity, constant = [1, -1, -1, 1], [0, 0, 0, 0]
    >>> found = sensitivity_gap(parity, constant)
    >>> found.distance, found.first, round(found.bound, 12)  # equal: parity has all its weight on n bits
    (1.0, 2.0, 1.0)

    Arguments:
        first, second: tables of 2^n real numbers, in the order of ``itertools.product`` over the bits.
    """
    f, g = (np.asarray(table, dtype=np.float64) for table in (first, second))
    size = len(f) if f.ndim == 1 else 0
    if f.shape != g.shape or size < 2 or size & (size - 1):
        raise UsageError(f"tables of shapes {f.shape} and {g.shape} must both have 2^n numbers, one for each string")
    if not (np.isfinite(f).all() and np.isfinite(g).all()):
        raise UsageError("tables hold NaN or infinity; the functions must be finite at every string")
    n = size.bit_length() - 1
    return SensitivityGap(n, float(np.square(f - g).mean()), _total_sensitivity(f, n), _total_sensitivity(g, n))


def _total_sensitivity(table: Floats, n: int) -> float:
    """as_n by enumeration of all pairs of neighbours."""
    pairs = (table.reshape(-1, 2, 2**bit) for bit in range(n))
    return float(sum(np.square(pair[:, 0] - pair[:, 1]).mean() for pair in pairs)) / 4
