"""Slow and obvious: the Boolean quantities by their definitions, in loops over the cube, exact in whole numbers.

Nothing here imports jostle or numpy. A table is any sequence of 2^n numbers, f(x) for x in the order of
``itertools.product((-1, 1), repeat=n)``: -1s and 1s, or ``Fraction``s (floats work and then round as floats do).
A subset U of the coordinates is a sorted tuple of numbers counted from 0. Answers are Python ints and Fractions.
Good up to n = 6 or so: the sums over pairs of points and the Fourier coefficients take 4^n steps.
"""

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from typing import Any

Number = Any  # int, Fraction or float
Point = tuple[int, ...]
Subset = tuple[int, ...]


def points(n: int) -> list[Point]:
    """All 2^n points of the cube, in table order."""
    return list(itertools.product((-1, 1), repeat=n))


def subsets(n: int) -> list[Subset]:
    """All 2^n subsets of the coordinates, in the table order of Fourier coefficients.

    The row of U is the row of the point that is +1 exactly on U.
    """
    return [tuple(i for i in range(n) if x[i] == 1) for x in points(n)]


def dimension(table: Sequence[Number]) -> int:
    """n of a table with 2^n values."""
    n = 0
    while 2**n < len(table):
        n += 1
    assert 2**n == len(table), f"{len(table)} is no power of two"
    return n


def tabulate(function: Callable[[Point], Number], n: int) -> list[Number]:
    """The table of a function of one point (a tuple of -1s and 1s)."""
    return [function(x) for x in points(n)]


def by_point(table: Sequence[Number]) -> dict[Point, Number]:
    """f as a dictionary from point to value; every value an int or a Fraction where the table is exact."""
    values = [value.item() if hasattr(value, "item") else value for value in table]
    return dict(zip(points(dimension(table)), values, strict=True))


def all_sign_tables(n: int) -> Iterator[tuple[int, ...]]:
    """Every one of the 2^(2^n) functions into {-1, 1}; n at most 4 in practice."""
    return itertools.product((-1, 1), repeat=2**n)


def flipped(x: Point, i: int) -> Point:
    """x with bit i flipped."""
    return (*x[:i], -x[i], *x[i + 1 :])


def character(subset: Subset, x: Point) -> int:
    """chi_U(x): the product of x_i over i in U; 1 for the empty U."""
    return math.prod(x[i] for i in subset)


# -- sensitivity ------------------------------------------------------------------------------------------------------


def sensitivities(table: Sequence[Number]) -> list[Fraction]:
    """s(x, f) = (1/4) sum over i of (f(x) - f(x with bit i flipped))^2 at every point, in table order.

    For f into {-1, 1}: the number of bits whose flip changes f(x).
    """
    f = by_point(table)
    n = dimension(table)
    return [sum((f[x] - f[flipped(x, i)]) ** 2 for i in range(n)) * Fraction(1, 4) for x in points(n)]


def total_sensitivity(table: Sequence[Number]) -> Fraction:
    """The mean of s(x, f) over all x (Eq. 1 of paper 1; as_n of paper 2)."""
    found = sensitivities(table)
    return sum(found) * Fraction(1, len(found))


def max_sensitivity(table: Sequence[Number]) -> Fraction:
    """The largest s(x, f)."""
    return max(sensitivities(table))


def min_sensitivity(table: Sequence[Number]) -> Fraction:
    """The smallest s(x, f)."""
    return min(sensitivities(table))


def profile(table: Sequence[int]) -> list[int]:
    """For f into {-1, 1}: how many points have sensitivity s, for s = 0 .. n; the counts sum to 2^n."""
    found = sensitivities(table)
    return [sum(1 for s in found if s == size) for size in range(dimension(table) + 1)]


def profile_by_value(table: Sequence[int], value: int) -> list[int]:
    """The profile of the points at which f takes the given value only."""
    found = sensitivities(table)
    chosen = [s for s, y in zip(found, table, strict=True) if y == value]
    return [sum(1 for s in chosen if s == size) for size in range(dimension(table) + 1)]


def influences(table: Sequence[Number]) -> list[Fraction]:
    """Inf_i = mean over x of (1/4) (f(x) - f(x with bit i flipped))^2, for each coordinate i."""
    f = by_point(table)
    n = dimension(table)
    return [sum((f[x] - f[flipped(x, i)]) ** 2 for x in f) * Fraction(1, 4 * 2**n) for i in range(n)]


# -- Fourier ----------------------------------------------------------------------------------------------------------


def coefficients(table: Sequence[Number]) -> list[Fraction]:
    """fhat(U) = mean over x of f(x) chi_U(x) for every subset U, in table order."""
    f = by_point(table)
    n = dimension(table)
    return [sum(f[x] * character(subset, x) for x in f) * Fraction(1, 2**n) for subset in subsets(n)]


def weight_by_degree(table: Sequence[Number]) -> list[Fraction]:
    """W_k = sum of fhat(U)^2 over the U with k members, for k = 0 .. n."""
    n = dimension(table)
    weights: list[Number] = [Fraction(0)] * (n + 1)
    for subset, coefficient in zip(subsets(n), coefficients(table), strict=True):
        weights[len(subset)] += coefficient**2
    return weights


def degree(table: Sequence[Number]) -> int:
    """The largest |U| with fhat(U) != 0; 0 for a constant. Wants an exact table (ints or Fractions)."""
    n = dimension(table)
    return max(
        (len(subset) for subset, c in zip(subsets(n), coefficients(table), strict=True) if c != 0),
        default=0,
    )


def mean(table: Sequence[Number]) -> Fraction:
    """The mean of f over the cube."""
    return sum(by_point(table).values()) * Fraction(1, len(table))


def variance(table: Sequence[Number]) -> Fraction:
    """The variance of f over the cube."""
    return sum((y - mean(table)) ** 2 for y in by_point(table).values()) * Fraction(1, len(table))


# -- noise ------------------------------------------------------------------------------------------------------------


def pair_probability(x: Point, y: Point, rho: Number) -> Number:
    """The probability that x is drawn uniformly and y is its rho-correlated copy.

    Each bit of y equals that of x with probability (1 + rho) / 2 and is its opposite otherwise, independently.
    """
    probability = Fraction(1, 2 ** len(x))
    for a, b in zip(x, y, strict=True):
        probability = probability * ((1 + rho) if a == b else (1 - rho)) * Fraction(1, 2)
    return probability


def noise_stability(table: Sequence[Number], rho: Number) -> Number:
    """Stab_rho = E[f(x) f(y)] over rho-correlated pairs, summed over all 4^n pairs; give rho as a Fraction."""
    f = by_point(table)
    return sum(pair_probability(x, y, rho) * f[x] * f[y] for x in f for y in f)


def disagreement(table: Sequence[Number], rho: Number) -> Number:
    """Pr[f(x) != f(y)] over rho-correlated pairs, summed over all 4^n pairs; give rho as a Fraction."""
    f = by_point(table)
    return sum(pair_probability(x, y, rho) for x in f for y in f if f[x] != f[y])
