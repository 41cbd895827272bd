"""Sensitivity at every point of the cube, by comparing neighbours in the table.

    s(x, f) = (1/4) sum over i of (f(x) - f(x with bit i flipped))^2,

which for f into {-1, 1} is the number of bits whose flip changes f(x). Source: paper 1 (2403.06925), Eq. 1, and
paper 2 (2402.09963), section 2. 2^n evaluations of f are enough: each edge of the cube is compared once.
"""

import functools
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jostle.boolean.cube import dimension

Floats = NDArray[np.float64]

_CHUNK = 1 << 15  # values at once: they fit into a core's own cache
_LOW = 6  # the lowest coordinates are done together, by products with 64 x 64 matrices


def sensitivities(table: NDArray[Any]) -> NDArray[Any]:
    """s(x, f) for every x, in table order: (..., 2^n); uint8 for a table of signs (int8), float64 otherwise.

    >>> sensitivities(np.array([-1, -1, -1, 1], dtype=np.int8)).tolist()  # AND
    [0, 1, 1, 2]
    """
    return _compare(table)[0]


def influences(table: NDArray[Any]) -> Floats:
    """Inf_i = mean over x of (1/4) (f(x) - f(x with bit i flipped))^2 for each coordinate i: (..., n).

    For f into {-1, 1} it is the share of inputs at which a flip of bit i changes f. The sum is the total sensitivity.

    >>> influences(np.array([-1, -1, -1, 1], dtype=np.int8)).tolist()  # AND
    [0.5, 0.5]
    """
    n = dimension(table)
    found = [_compare(one)[1] for one in table.reshape(-1, 2**n)]
    return np.reshape(found, (*table.shape[:-1], n))


def sensitivities_and_influences(table: NDArray[Any]) -> tuple[NDArray[Any], Floats]:
    """Both for one table, in one go."""
    return _compare(table)


def _compare(table: NDArray[Any]) -> tuple[NDArray[Any], Floats]:
    """s(x, f) at every x, and for each coordinate the mean of its term over all x of all tables."""
    n = dimension(table)
    is_signs = table.dtype == np.int8
    if is_signs and n <= _LOW and table.ndim == 1:
        changed = table[_neighbours(n)[1]] != table  # (n, 2^n)
        return changed.sum(axis=0, dtype=np.uint8), changed.sum(axis=1) / len(table)
    found = np.zeros(table.shape, dtype=np.uint8 if is_signs else np.float64)
    totals = np.zeros(n)
    low = min(n, _LOW) if is_signs else 0
    if low:
        totals[n - low :] = _compare_low(table.reshape(-1, 2**low), found.reshape(-1, 2**low), low)
    for coordinate in range(n - low):
        pairs, sums = _pairs(table, n, coordinate), _pairs(found, n, coordinate)
        for rows, columns in _pieces(pairs):
            change = _change(pairs, rows, columns, is_signs)
            sums[rows, 0, columns] += change
            sums[rows, 1, columns] += change
            totals[coordinate] += 2 * float(np.count_nonzero(change) if is_signs else change.sum())
    return found, totals / table.size


def _compare_low(signs: NDArray[np.int8], found: NDArray[np.uint8], low: int) -> Floats:
    """Write s of the lowest coordinates to ``found``, all (count, 2^low); returns how often each changes f.

    f(x) f(x') is 1 or -1, so with N(x) the sum of f over the neighbours of x, s(x) = (low - f(x) N(x)) / 2. And the
    product F^T F has the sum of f(a) f(b) over all rows, from which each coordinate takes its neighbours a and b.
    Sums of up to 2^24 signs are whole numbers that float32 holds.
    """
    halves, neighbours = _neighbours(low)
    both = np.zeros((2**low, 2**low))
    for start in range(0, len(signs), _CHUNK >> low):
        rows = slice(start, start + (_CHUNK >> low))
        values = signs[rows].astype(np.float32)
        both += values.T @ values
        changing = values @ halves  # -N(x) / 2
        changing *= values
        changing += low / 2
        found[rows] = changing
    changes: Floats = (signs.size - both[np.arange(2**low), neighbours].sum(axis=1)) / 2
    return changes


@functools.cache
def _neighbours(n: int) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """-1/2 where points of the cube differ in one bit, (2^n, 2^n), and the neighbours of each point, (n, 2^n)."""
    rows = np.arange(2**n)
    is_next = np.bitwise_count(rows[:, None] ^ rows) == 1
    return np.where(is_next, np.float32(-0.5), np.float32(0)), rows ^ (1 << np.arange(n - 1, -1, -1))[:, None]


def _pairs(table: NDArray[Any], n: int, coordinate: int) -> NDArray[Any]:
    """A view (blocks, 2, inner) whose middle axis is the coordinate."""
    return table.reshape(-1, 2, 2 ** (n - 1 - coordinate))


def _pieces(pairs: NDArray[Any]) -> Iterator[tuple[slice, slice]]:
    """Slices of the first and the last axis that cover all pairs, ``_CHUNK`` at a time."""
    count, _, inner = pairs.shape
    step, width = max(1, _CHUNK // inner), min(inner, _CHUNK)
    for start in range(0, count, step):
        for left in range(0, inner, width):
            yield slice(start, start + step), slice(left, left + width)


def _change(pairs: NDArray[Any], rows: slice, columns: slice, is_signs: bool) -> NDArray[Any]:
    """(f(x) - f(x'))^2 / 4 of some pairs; for signs, whether the sign changes."""
    below, above = pairs[rows, 0, columns], pairs[rows, 1, columns]
    if is_signs:
        changed: NDArray[Any] = below != above
        return changed
    change: NDArray[Any] = np.square(above - below, dtype=np.float64) / 4
    return change
