"""The points of the cube {-1, 1}^n and the order in which tables list them.

A table of f holds f(x) for x in the order of ``itertools.product((-1, 1), repeat=n)``: the first coordinate is the
most significant bit of the row number, and a bit 1 stands for +1. Fourier coefficients are listed in the same order,
with "is in U" in place of "is +1". Everything else in this package relies on this order.
"""

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jostle.base import checks
from jostle.base.errors import UsageError

LARGEST = 24  # the largest n whose 2^n points are enumerated: 16 million evaluations and a table of 16 MB


def points(n: int, start: int = 0, stop: int | None = None) -> NDArray[np.int8]:
    """Rows ``start`` to ``stop`` of the cube's 2^n points: (rows, n) of -1 and 1.

    >>> points(2).tolist()
    [[-1, -1], [-1, 1], [1, -1], [1, 1]]
    """
    rows = np.arange(start, 2**n if stop is None else stop, dtype=np.int64)
    bits = (rows[:, None] >> np.arange(n - 1, -1, -1)) & 1
    return (2 * bits - 1).astype(np.int8)


def dimension(table: NDArray[Any], name: str = "table") -> int:
    """n of a table (or of a batch of tables, along the last axis) with 2^n values."""
    length = table.shape[-1] if table.ndim else 0
    n = length.bit_length() - 1
    if length < 2 or length != 2**n:
        below = 2 ** max(n, 1)
        raise UsageError(
            f"{name} has {length:,} values; expected 2^n of them, one for each input of n bits "
            f"({below:,} or {2 * below:,}, for example)"
        )
    return n


def degrees(n: int) -> NDArray[np.uint8]:
    """The size of U for each of the 2^n subsets U of the coordinates, in table order.

    >>> degrees(2).tolist()
    [0, 1, 1, 2]
    """
    return np.bitwise_count(np.arange(2**n, dtype=np.uint32))


def subset_row(subset: Iterable[int], n: int) -> int:
    """The row of a set of coordinates (counted from 0) in a table of Fourier coefficients.

    >>> subset_row([0, 2], 3)
    5
    """
    if not isinstance(subset, Iterable) or isinstance(subset, str | bytes):
        raise checks.wrong("subset", subset, f"a list of coordinates, whole numbers from 0 to {n - 1}")
    given = list(subset)
    chosen = [checks.whole(f"coordinate of subset {given}", item, least=0, most=n - 1) for item in given]
    if len(set(chosen)) < len(chosen):
        raise checks.wrong("subset", chosen, "different coordinates", "; one of them is named twice")
    return sum(1 << (n - 1 - coordinate) for coordinate in chosen)
