"""Sensitivity at every point of the cube, by comparing neighbours in the table.

    s(x, f) = (1/4) sum over i of (f(x) - f(x with bit i flipped))^2,

which for f into {-1, 1} is the number of bits whose flip changes f(x). Source: paper 1 (2403.06925), Eq. 1, and
paper 2 (2402.09963), section 2. 2^n evaluations of f are enough: each edge of the cube is compared once.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jostle.boolean.cube import dimension

Floats = NDArray[np.float64]

_CHUNK = 1 << 16


def sensitivities(table: NDArray[Any]) -> NDArray[Any]:
    """s(x, f) for every x, in table order: (..., 2^n); uint8 for a table of signs (int8), float64 otherwise.

    >>> sensitivities(np.array([-1, -1, -1, 1], dtype=np.int8)).tolist()  # AND
    [0, 1, 1, 2]
    """
    n = dimension(table)
    is_signs = table.dtype == np.int8
    found = np.zeros(table.shape, dtype=np.uint8 if is_signs else np.float64)
    for coordinate in range(n):
        pairs, sums = _pairs(table, n, coordinate), _pairs(found, n, coordinate)
        for rows, columns in _pieces(pairs):
            change = _change(pairs, rows, columns, is_signs)
            sums[rows, 0, columns] += change
            sums[rows, 1, columns] += change
    return found


def influences(table: NDArray[Any]) -> Floats:
    """Inf_i = mean over x of (1/4) (f(x) - f(x with bit i flipped))^2 for each coordinate i: (..., n).

    For f into {-1, 1} it is the share of inputs at which a flip of bit i changes f. The sum is the total sensitivity.

    >>> influences(np.array([-1, -1, -1, 1], dtype=np.int8)).tolist()  # AND
    [0.5, 0.5]
    """
    n = dimension(table)
    is_signs = table.dtype == np.int8
    tables = table.reshape(-1, 2**n)
    sums = np.zeros((len(tables), n))
    for one, total in zip(tables, sums, strict=True):
        for coordinate in range(n):
            pairs = _pairs(one, n, coordinate)
            for rows, columns in _pieces(pairs):
                total[coordinate] += 2 * float(np.sum(_change(pairs, rows, columns, is_signs)))
    means: Floats = sums / 2**n
    return means.reshape(*table.shape[:-1], n)


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
