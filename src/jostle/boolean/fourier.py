"""Fourier analysis on the cube, by the fast Walsh-Hadamard transform.

    fhat(U) = 2^-n sum over x of f(x) chi_U(x),   chi_U(x) = product of x_i over i in U,
    f = sum over U of fhat(U) chi_U

Source: O'Donnell, "Analysis of Boolean Functions" (2014), chapters 1 and 2. The transform takes n 2^n additions, in
place; the matrix of all characters would have 4^n numbers.
"""

import functools
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jostle.boolean.cube import degrees, dimension

Floats = NDArray[np.float64]

_CHUNK = 1 << 15  # values at once: they fit into a core's own cache
_TOGETHER = 6  # so many coordinates are done at once, as a product with a 64 x 64 matrix
_SUMMED = 10  # so many in a sum by degree
_FEW = 3  # fewer are done one by one
_EXACT = 24  # float32 holds sums of 2^24 signs exactly
_SPLIT = 18  # tables of more bits are transformed in four parts


def coefficients(table: NDArray[Any]) -> Floats:
    """fhat(U) for every U, in table order; (..., 2^n) in, (..., 2^n) out.

    >>> coefficients(np.array([1, -1, -1, 1])).tolist()  # parity of two bits
    [0.0, 0.0, 0.0, 1.0]
    """
    transformed: Floats = np.array(table, dtype=np.float64, order="C")
    transform(transformed)
    transformed /= 2 ** dimension(transformed)
    return transformed


def values(coefficients: NDArray[Any]) -> Floats:
    """The table with the given Fourier coefficients: the inverse of ``coefficients``.

    >>> values(np.array([0.0, 0.0, 0.0, 1.0])).tolist()
    [1.0, -1.0, -1.0, 1.0]
    """
    n = dimension(coefficients, "coefficients")
    signs = np.where(degrees(n) % 2, -1.0, 1.0)  # up to these the transform is its own inverse
    table = np.ascontiguousarray(coefficients * signs)
    transform(table)
    table *= signs
    return np.asarray(table, dtype=np.float64)


def weight_by_degree(table: NDArray[Any]) -> Floats:
    """W_k = sum of fhat(U)^2 over the U of size k, for k = 0..n: (n + 1,).

    For a table of signs (int8) with n up to 24 the weights are exact: sums and squares are whole numbers that floats
    hold, divided by 4^n at the end. Large tables are transformed part by part; the whole transform is never in memory.

    >>> weight_by_degree(np.array([-1, -1, -1, 1], dtype=np.int8)).tolist()  # AND
    [0.25, 0.5, 0.25]
    """
    n = dimension(table)
    weight = np.zeros(n + 1)
    for extra, part in _transformed_parts(table, n):
        for number, start in enumerate(range(0, len(part), _CHUNK)):
            found = sums_by_degree(np.square(part[start : start + _CHUNK], dtype=np.float64))
            more = extra + number.bit_count()
            weight[more : more + len(found)] += found
    return weight / 4.0**n


def sums_by_degree(values: Floats) -> Floats:
    """The sums of 2^m values over the rows of equal degree, (m + 1,), some coordinates after the other."""
    if len(values) <= 2**_SUMMED:
        few: Floats = _degrees_of(len(values).bit_length() - 1) @ values
        return few
    sums = values[:, None]  # (rows, degrees of the coordinates that are done)
    while len(sums) > 1:
        bits = min(_SUMMED, len(sums).bit_length() - 1)
        parts = _degrees_of(bits) @ sums.reshape(-1, 2**bits, sums.shape[1])  # (rows, bits + 1, degrees)
        sums = np.zeros((len(parts), parts.shape[2] + bits))
        for degree in range(bits + 1):
            sums[:, degree : degree + parts.shape[2]] += parts[:, degree]
    found: Floats = sums[0]
    return found


@functools.cache
def _degrees_of(n: int) -> Floats:
    """(n + 1, 2^n): 1 where a subset has a degree."""
    found: Floats = (degrees(n) == np.arange(n + 1)[:, None]).astype(np.float64)
    return found


def transform(array: NDArray[Any]) -> None:
    """2^n fhat(U) for every U along the last axis of a contiguous array of floats, in place."""
    n = dimension(array)
    if not array.flags.c_contiguous:  # reshape would make a copy, and the result would be lost
        raise ValueError("transform works in place and needs a C-contiguous array")
    if n <= _TOGETHER:
        array[...] = array @ _matrix(n, array.dtype)
        return
    low = min(_TOGETHER, n)
    middle = min(_TOGETHER, n - low) if n - low >= _FEW else 0
    blocks = array.reshape(-1, 2**middle, 2**low)
    right, left = _matrix(low, array.dtype), _matrix(middle, array.dtype).T
    step = max(1, _CHUNK >> (middle + low))
    for start in range(0, len(blocks), step):
        chunk = blocks[start : start + step]
        product = (chunk.reshape(-1, 2**low) @ right).reshape(chunk.shape)
        chunk[...] = left @ product if middle else product
    for half in (2**level for level in range(middle + low, n)):
        _butterflies(array.reshape(-1, 2, half))


def _butterflies(pairs: NDArray[Any]) -> None:
    """(a, b) -> (a + b, b - a) along the middle axis of (count, 2, half), in place, one chunk at a time."""
    count, _, half = pairs.shape
    step, width = max(1, _CHUNK // half), min(half, _CHUNK)
    for start in range(0, count, step):
        for left in range(0, half, width):
            minus = pairs[start : start + step, 0, left : left + width]
            plus = pairs[start : start + step, 1, left : left + width]
            difference = plus - minus
            minus += plus
            plus[...] = difference


@functools.cache
def _matrix(n: int, kind: np.dtype[Any]) -> NDArray[Any]:
    """chi_U(x) as a matrix (x, U) of this type."""
    return _characters(n).astype(kind)


def _characters(n: int) -> Floats:
    """chi_U(x) as a matrix (x, U)."""
    matrix = np.ones((1, 1))
    for _ in range(n):
        matrix = np.kron(matrix, np.array([[1.0, -1.0], [1.0, 1.0]]))
    return matrix


def _transformed_parts(table: NDArray[Any], n: int) -> Iterator[tuple[int, NDArray[Any]]]:
    """2^n fhat in parts: (number of leading coordinates in U, transform of the part)."""
    kind = np.float32 if table.dtype == np.int8 and n <= _EXACT else np.float64
    leading = 2 if n > _SPLIT else 0
    blocks = np.ascontiguousarray(table).reshape(2**leading, -1)
    for subset, signs in enumerate(_characters(leading).T):
        part = blocks[0] * kind(signs[0])
        for block, sign in zip(blocks[1:], signs[1:], strict=True):
            (np.add if sign > 0 else np.subtract)(part, block, out=part)
        transform(part)
        yield subset.bit_count(), part
