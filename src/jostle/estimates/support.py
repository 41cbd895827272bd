"""Which values a change can take: that decides which intervals exist for its mean."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Support:
    """The values of a change: 0 and 1 for flips, -1, 0, 1 for a difference of flips, or any real number.

    Arguments:
        values: the possible values in increasing order, one apart; empty for real numbers.
    """

    values: tuple[int, ...] = ()

    @property
    def is_discrete(self) -> bool:
        """Whether counts of the values say everything."""
        return bool(self.values)

    @property
    def bounds(self) -> tuple[float, float]:
        """The smallest and the largest value."""
        return float(self.values[0]), float(self.values[-1])

    def count(self, changes: NDArray[np.float64]) -> NDArray[np.float64]:
        """How often each value occurs among finite ``changes``."""
        index = (changes - self.values[0]).astype(np.int64)
        return np.bincount(index, minlength=len(self.values)).astype(np.float64)


BINARY = Support((0, 1))
TERNARY = Support((-1, 0, 1))
REAL = Support()
