"""Power series with coefficients that are never negative, cut off after a fixed number of terms.

Every operation here adds and multiplies non-negative numbers only: nothing cancels, so each coefficient keeps its
relative precision however small it is. That rules out fast Fourier products (their error is relative to the largest
coefficient) and subtraction; the direct products cost terms^2 multiplications, which is cheap at ten thousand terms.
"""

from dataclasses import dataclass
from typing import overload

import numpy as np
from numpy.typing import NDArray

from jostle.boolean.kernels.masses import Masses

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Series:
    """S(c) = sum over m of a_m c^m, term by term up to the last coefficient kept, and its masses, which miss nothing.

    >>> rising = line(1.0, 1.0, terms=3)
    >>> cube = rising * rising * rising
    >>> cube.coefficients.tolist(), cube.masses.odd  # c^3 is not kept, but it is known
    ([1.0, 3.0, 3.0], 1.0)

    Arguments:
        coefficients: (terms,) a_m radius^m, none negative; the radius, 1 as a rule, keeps those of a series that
            converges beyond 1 in the range of floats.
        masses: of all the a_m, without powers of the radius.
    """

    coefficients: Floats
    masses: Masses

    def __add__(self, other: "Series | float") -> "Series":
        if isinstance(other, Series):
            return Series(self.coefficients + other.coefficients, self.masses + other.masses)
        added = self.coefficients.copy()
        added[0] += other
        return Series(added, self.masses + other)

    @overload
    def __mul__(self, other: "Series") -> "Series": ...
    @overload
    def __mul__(self, other: float) -> "Series": ...
    def __mul__(self, other: "Series | float") -> "Series":
        if isinstance(other, Series):
            product = np.convolve(self.coefficients, other.coefficients)[: len(self.coefficients)]
            return Series(product, self.masses * other.masses)
        return Series(self.coefficients * other, self.masses * other)


def line(constant: float, slope: float, terms: int, radius: float = 1.0) -> Series:
    """constant + slope c."""
    coefficients = np.zeros(terms)
    coefficients[:2] = constant, slope * radius
    return Series(coefficients, Masses(constant, slope, 0.0, 0.0))


def integral_along(integrand: Floats, path: Floats, constant: float) -> Floats:
    """F with F' = integrand * path' and F(0) = constant: how a composed function F = f(path) follows from f'(path).

    >>> t = np.array([0.0, 1.0, 0.0, 0.0])
    >>> integral_along(t, t, constant=3.0).tolist()  # 3 + t^2 / 2
    [3.0, 0.0, 0.5, 0.0]
    """
    orders = np.arange(1, len(path))
    slope = path[1:] * orders  # (terms - 1,)
    derivative = np.convolve(integrand[:-1], slope)[: len(orders)]
    return np.concatenate(([constant], derivative / orders))


def inverse_root(path: Floats, complement: float) -> Floats:
    """(1 - path^2)^(-1/2), for 0 <= path(0) < 1.

    With u = path - path(0) it is (s (1 - W))^(-1/2), where s = 1 - path(0)^2 and W = (2 path(0) u + u^2) / s starts at
    0: the only difference is in s, and the caller knows 1 - path(0) better than path(0) itself would tell.

    >>> inverse_root(np.array([0.0, 1.0, 0.0, 0.0, 0.0]), complement=1.0).tolist()
    [1.0, 0.0, 0.5, 0.0, 0.375]

    Arguments:
        path: (terms,), none negative.
        complement: 1 - path(0).
    """
    moving = path.copy()
    moving[0] = 0.0
    size = complement * (1 + path[0])
    inner = (np.convolve(moving, moving)[: len(path)] + 2 * path[0] * moving) / size
    return np.asarray(_inverse_root_of_complement(inner) / np.sqrt(size))


def _inverse_root_of_complement(inner: Floats) -> Floats:
    """G = (1 - W)^(-1/2) for W_0 = 0, from (1 - W) G' = W' G / 2, read as G' = W' G / 2 + W G':

    G_m = sum over j >= 1 of W_j G_(m-j) (1/2 + (m - j) / (2 m)),   every term positive.
    """
    terms = len(inner)
    # Filled from the right, so that the dot products below run over neighbours in memory: [-1 - m] holds G_m, m G_m.
    found, found_times_order = np.zeros(terms), np.zeros(terms)
    found[-1] = 1.0
    for m in range(1, terms):
        weights, past = inner[1 : m + 1], slice(terms - m, terms)
        value = (weights @ found[past] + weights @ found_times_order[past] / m) / 2
        found[terms - 1 - m] = value
        found_times_order[terms - 1 - m] = m * value
    return found[::-1].copy()
