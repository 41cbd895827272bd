"""Functions of the number of bits that are +1: parity, majority, AND, OR, the mean and their relatives.

Write v_j for the value at points with j bits +1. All quantities are sums over the levels j:

    Inf_i = 2^-(n-1) sum over j < n of C(n-1, j) d_j,     d_j = (v_j - v_(j+1))^2 / 4,
    s(x)  = j d_(j-1) + (n - j) d_j  at the C(n, j) points of level j,
    fhat(U) = 2^-n sum over j of v_j K_kj  for every U of size k,  W_k = C(n, k) fhat(U)^2,

where K_kj, the sum of chi_U(x) over level j, is the coefficient of z^j in (1 + z)^(n-k) (z - 1)^k (Krawtchouk).
Source: O'Donnell, "Analysis of Boolean Functions" (2014); the sums are our own derivation.
"""

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from jostle.base.checks import number, whole
from jostle.base.errors import UsageError
from jostle.boolean.functions.known import (
    Exact,
    KnownFunction,
    as_list,
    degree_of,
    exact_of_signs,
    floats,
    num_bits,
    register,
    sign,
)

LARGEST_SPECTRUM = 1000  # the weights take n^2 steps with numbers of n bits: seconds at this n


@register("symmetric")
def symmetric(n: int, values: Any) -> KnownFunction:
    """The function that is values[j] at every point with j bits +1.

    Arguments:
        n: number of bits.
        values: n + 1 finite numbers; the function is Boolean if all are -1 or 1.

    >>> symmetric(2, [-1, 1, -1]).exact.sensitivity_profile  # every neighbour differs
    (0, 0, 4)
    """
    n = num_bits("symmetric", n)
    levels = as_list("values of symmetric", values)
    if len(levels) != n + 1:
        raise UsageError(f"values of symmetric has {len(levels)} numbers; expected n + 1 = {n + 1}, one for each count")
    for j, value in enumerate(levels):
        if not isinstance(value, Fraction):
            number(f"values[{j}] of symmetric", value)
    return _by_level("symmetric", n, {"values": levels}, levels)


@register("parity")
def parity(n: int) -> KnownFunction:
    """The product of all bits, chi of the full set. Total sensitivity n, the largest possible.

    Differs: paper 2 (2402.09963) counts ones modulo 2, which is the negative of this for even n. Every sensitivity
    and every weight is the same.

    >>> parity(100).exact.total_sensitivity
    100.0
    """
    n = num_bits("parity", n)
    return _by_level("parity", n, {}, [(-1) ** (n - j) for j in range(n + 1)])


@register("majority")
def majority(n: int) -> KnownFunction:
    """1 if more bits are +1 than -1, otherwise -1 (so a tie is -1, as in paper 2, 2402.09963).

    Total sensitivity: n C(n-1, (n-1)/2) / 2^(n-1) for odd n, n C(n, n/2) / 2^n for even n; about sqrt(2 n / pi).

    >>> majority(4).exact.total_sensitivity, majority(4).exact.sensitivity_profile
    (1.5, (6, 0, 6, 4, 0))
    """
    n = num_bits("majority", n)
    return _by_level("majority", n, {}, [1 if 2 * j > n else -1 for j in range(n + 1)])


@register("and")
def and_(n: int) -> KnownFunction:
    """1 if every bit is +1, otherwise -1. Total sensitivity n / 2^(n-1).

    >>> and_(3).exact.total_sensitivity
    0.75
    """
    n = num_bits("and", n)
    return _by_level("and", n, {}, [-1] * n + [1])


@register("or")
def or_(n: int) -> KnownFunction:
    """-1 if every bit is -1, otherwise 1. Total sensitivity n / 2^(n-1).

    >>> or_(3).exact.mean
    0.75
    """
    n = num_bits("or", n)
    return _by_level("or", n, {}, [-1] + [1] * n)


@register("mean")
def mean(n: int) -> KnownFunction:
    """The mean of the bits: real-valued, sensitivity 1 / n at every point (paper 2, 2402.09963).

    >>> mean(4)(np.array([[1, 1, 1, -1]])).tolist(), mean(4).exact.total_sensitivity
    ([0.5], 0.25)
    """
    n = num_bits("mean", n)
    # For n = 1 this is the bit itself. It counts as real-valued for every n, so that its type does not depend on n.
    return _by_level("mean", n, {}, [Fraction(2 * j - n, n) for j in range(n + 1)], is_boolean=False)


@register("not-all-equal")
def not_all_equal(n: int) -> KnownFunction:
    """-1 if all bits are equal, otherwise 1. For n = 3 its noise stability proves Arrow's theorem (Kalai 2002).

    >>> not_all_equal(3).exact.weight_by_degree.tolist()
    [0.25, 0.0, 0.75, 0.0]
    """
    n = num_bits("not-all-equal", n)
    return _by_level("not-all-equal", n, {}, [1 if 0 < j < n else -1 for j in range(n + 1)])


@register("hamming-ball")
def hamming_ball(n: int, radius: int = 1) -> KnownFunction:
    """1 within Hamming distance ``radius`` of the point that is -1 everywhere, otherwise -1.

    >>> hamming_ball(4, radius=1).exact.sensitivity_profile  # the centre, the 4 + 6 points at the border, the rest
    (6, 0, 6, 4, 0)
    """
    n = num_bits("hamming-ball", n)
    radius = whole("radius of hamming-ball", radius, least=0, most=n)
    return _by_level("hamming-ball", n, {"radius": radius}, [1 if j <= radius else -1 for j in range(n + 1)])


@register("constant")
def constant(n: int, value: int = 1) -> KnownFunction:
    """The same sign everywhere: sensitivity 0.

    >>> constant(3, value=-1).table().tolist()
    [-1, -1, -1, -1, -1, -1, -1, -1]
    """
    n = num_bits("constant", n)
    value = sign("value of constant", value)
    return _by_level("constant", n, {"value": value}, [value] * (n + 1))


def _by_level(
    name: str, n: int, options: dict[str, Any], levels: Sequence[Any], is_boolean: bool | None = None
) -> KnownFunction:
    """The symmetric function with these n + 1 values."""
    if is_boolean is None:
        is_boolean = all(value in (-1, 1) for value in levels)
    lookup = np.array([float(value) for value in levels])
    fractions = [Fraction(value) for value in levels]
    return KnownFunction(
        name,
        n,
        options,
        is_boolean,
        lambda points: lookup[(points == 1).sum(axis=1)],
        lambda: _exact(n, fractions, is_boolean),
    )


def _exact(n: int, levels: list[Fraction], is_boolean: bool) -> Exact:
    changes = [(below - above) ** 2 / 4 for below, above in itertools.pairwise(levels)]  # d_j, j < n
    counts = [math.comb(n, j) for j in range(n + 1)]
    average = sum(count * value for count, value in zip(counts, levels, strict=True)) / Fraction(2**n)
    edges = sum(math.comb(n - 1, j) * change for j, change in enumerate(changes))
    influence = edges / Fraction(2 ** (n - 1))
    local = [
        (j * changes[j - 1] if j else Fraction(0)) + ((n - j) * changes[j] if j < n else Fraction(0))
        for j in range(n + 1)
    ]
    weights = _weights(n, levels) if n <= LARGEST_SPECTRUM else None
    if is_boolean:
        profile = [0] * (n + 1)
        for count, size in zip(counts, local, strict=True):
            profile[int(size)] += count
        return exact_of_signs(n, average, [influence] * n, profile, weights)
    return Exact(
        mean=float(average),
        total_sensitivity=float(n * influence),
        max_sensitivity=float(max(local)),
        min_sensitivity=float(min(local)),
        degree=degree_of(weights) if weights is not None else None,
        influences=floats([influence] * n),
        weight_by_degree=floats(weights) if weights is not None else None,
    )


def _weights(n: int, levels: list[Fraction]) -> list[Fraction]:
    """W_k for k = 0 .. n, as in the module's formulas."""
    scale = math.lcm(*(value.denominator for value in levels))
    whole_levels = [int(value * scale) for value in levels]
    row = [math.comb(n, j) for j in range(n + 1)]  # K_0j
    found = []
    for k in range(n + 1):
        inner = sum(kernel * value for kernel, value in zip(row, whole_levels, strict=True))
        found.append(Fraction(math.comb(n, k) * inner**2, (scale * 2**n) ** 2))
        if k < n:
            row = _next_row(row)
    return found


def _next_row(row: list[int]) -> list[int]:
    """K_(k+1) from K_k: divide the polynomial by (1 + z), which leaves no remainder, and multiply by (z - 1)."""
    quotient = [0] * len(row)
    carried = 0
    for j, coefficient in enumerate(row):
        carried = coefficient - carried
        quotient[j] = carried
    return [below - here for below, here in zip([0, *quotient], quotient, strict=False)]
