"""Power series with coefficients that are never negative, cut off after a fixed number of terms.

Every operation here adds and multiplies non-negative numbers only: nothing cancels, so each coefficient keeps its
relative precision however small it is. That rules out fast Fourier products (their error is relative to the largest
coefficient) and subtraction; the direct products cost terms^2 multiplications, which is cheap at ten thousand terms.
"""

from dataclasses import dataclass
from typing import overload

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Series:
    """sum over m of coefficients[m] t^m, known up to its last coefficient.

    >>> line = Series(np.array([1.0, 1.0, 0.0, 0.0]))
    >>> (line * line * 2.0 + 5.0).coefficients.tolist()
    [7.0, 4.0, 2.0, 0.0]

    Arguments:
        coefficients: (terms,), none negative.
    """

    coefficients: Floats

    def __add__(self, other: "Series | float") -> "Series":
        if isinstance(other, Series):
            return Series(self.coefficients + other.coefficients)
        added = self.coefficients.copy()
        added[0] += other
        return Series(added)

    @overload
    def __mul__(self, other: "Series") -> "Series": ...
    @overload
    def __mul__(self, other: float) -> "Series": ...
    def __mul__(self, other: "Series | float") -> "Series":
        if isinstance(other, Series):
            return Series(np.convolve(self.coefficients, other.coefficients)[: len(self.coefficients)])
        return Series(self.coefficients * other)


def line(constant: float, slope: float, terms: int) -> Series:
    """constant + slope t."""
    coefficients = np.zeros(terms)
    coefficients[:2] = constant, slope
    return Series(coefficients)


def integral_along(integrand: Series, path: Series, constant: float) -> Series:
    """F with F' = integrand * path' and F(0) = constant: how a composed function F = f(path) follows from f'(path).

    >>> t = line(0.0, 1.0, terms=4)
    >>> integral_along(t, t, constant=3.0).coefficients.tolist()  # 3 + t^2 / 2
    [3.0, 0.0, 0.5, 0.0]
    """
    orders = np.arange(1, len(path.coefficients))
    slope = path.coefficients[1:] * orders  # (terms - 1,)
    derivative = np.convolve(integrand.coefficients[:-1], slope)[: len(orders)]
    return Series(np.concatenate(([constant], derivative / orders)))


def inverse_root(inner: Series) -> Series:
    """G = (1 - inner)^(-1/2), for inner(0) < 1.

    From (1 - W) G' = W' G / 2, read as G' = W' G / 2 + W G' so that every term is positive:

        (1 - W_0) G_m = sum over j >= 1 of W_j G_(m-j) (1/2 + (m - j) / (2 m)).

    >>> inverse_root(line(0.0, 1.0, terms=4)).coefficients.tolist()
    [1.0, 0.5, 0.375, 0.3125]
    """
    given = inner.coefficients
    terms = len(given)
    remainder = 1.0 - given[0]
    # Filled from the right, so that the dot products below run over neighbours in memory: [-1 - m] holds G_m, m G_m.
    found, found_times_order = np.zeros(terms), np.zeros(terms)
    found[-1] = remainder**-0.5
    for m in range(1, terms):
        weights, past = given[1 : m + 1], slice(terms - m, terms)
        value = (weights @ found[past] + weights @ found_times_order[past] / m) / (2 * remainder)
        found[terms - 1 - m] = value
        found_times_order[terms - 1 - m] = m * value
    return Series(found[::-1].copy())
