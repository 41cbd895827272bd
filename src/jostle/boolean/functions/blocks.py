"""Functions made of blocks of bits: the multiplexer, tribes and a bent function.

The docstrings derive the closed forms. Source of the functions: O'Donnell, "Analysis of Boolean Functions" (2014).
"""

import math
from fractions import Fraction
from typing import Any

import numpy as np

from jostle.base.checks import whole, wrong
from jostle.boolean.functions.known import Exact, KnownFunction, exact_of_signs, num_bits, register


@register("multiplexer")
def multiplexer(n: int) -> KnownFunction:
    """The bit at an address: the first a bits are a number r (first bit most significant, +1 for 1), f(x) = x_(a+r).

    n = a + 2^a. Every coefficient fhat(T and one data bit), T a set of address bits, is 2^-a up to sign, hence
    W_(t+1) = C(a, t) / 2^a. A point has sensitivity 1 (its data bit) plus the number of the a neighbouring addresses
    that hold the other value, a Binomial(a, 1/2). Influences: 1/2 for address bits, 2^-a for data bits.

    >>> multiplexer(6).exact.total_sensitivity, multiplexer(6).exact.sensitivity_profile
    (2.0, (0, 16, 32, 16, 0, 0, 0))
    """
    n = num_bits("multiplexer", n)
    sizes = [a + 2**a for a in range(1, max(6, n.bit_length() + 1))]
    if n not in sizes:
        above = next(place for place, size in enumerate(sizes) if size > n)
        near = " or ".join(map(str, sizes[max(above - 1, 0) : above + 1]))
        raise wrong("n of multiplexer", n, "a + 2^a (3, 6, 11, 20, 37, ...)", f"; try {near}")
    address = sizes.index(n) + 1
    powers = 2 ** np.arange(address - 1, -1, -1)

    def evaluate(points: Any) -> Any:
        rows = (points[:, :address] == 1) @ powers
        return np.take_along_axis(points, address + rows[:, None], axis=1)[:, 0]

    return KnownFunction("multiplexer", n, {}, True, evaluate, lambda: _multiplexer_exact(n, address))


def _multiplexer_exact(n: int, address: int) -> Exact:
    choices = [math.comb(address, t) for t in range(address + 1)]
    influences = [Fraction(1, 2)] * address + [Fraction(1, 2**address)] * 2**address
    profile = [0, *(count * 2 ** (n - address) for count in choices)]
    weights = [Fraction(0), *(Fraction(count, 2**address) for count in choices)]
    return exact_of_signs(n, 0, influences, profile, weights)


@register("tribes")
def tribes(n: int, width: int | None = None) -> KnownFunction:
    """The OR of m = n / width ANDs of ``width`` neighbouring bits each (Ben-Or and Linial 1985).

    With w the width and p = 2^-w: Pr[f = -1] = (1-p)^m and Inf_i = 2^-(w-1) (1-p)^(m-1). A point with exactly one full
    tribe has sensitivity w, a point with several has 0. A point without a full tribe has sensitivity j, the number of
    tribes that lack one bit; there are C(m, j) w^j (2^w-1-w)^(m-j) such points. f = 1 - 2 product of (1 - AND), hence
    W_k, k > 0, is 4 times the coefficient of z^k in ((1-p)^2 + p^2 ((1+z)^w - 1))^m.

    Arguments:
        n: number of bits.
        width: a divisor of n; by default the one for which Pr[f = 1] is closest to 1/2.

    >>> tribes(4, width=2).exact.sensitivity_profile
    (2, 4, 10, 0, 0)
    """
    n = num_bits("tribes", n)
    small = [w for w in range(1, math.isqrt(n) + 1) if n % w == 0]
    divisors = sorted({*small, *(n // w for w in small)})
    if width is None:
        width = min(divisors, key=lambda w: abs(1 - 2 * (1 - 2.0**-w) ** (n // w)))
    width = whole("width of tribes", width, least=1, most=n)
    if width not in divisors:
        raise wrong("width of tribes", width, f"a divisor of n={n}", f"; possible: {', '.join(map(str, divisors))}")
    count = n // width
    return KnownFunction(
        "tribes",
        n,
        {"width": width},
        True,
        lambda points: np.where((points.reshape(-1, count, width) == 1).all(axis=2).any(axis=1), 1, -1),
        lambda: _tribes_exact(n, width, count),
    )


def _tribes_exact(n: int, width: int, count: int) -> Exact:
    lacking = 2**width - 1  # the ways in which one tribe can fail
    none, one = lacking**count, count * lacking ** (count - 1)
    profile = [0] * (n + 1)
    profile[0] += 2**n - none - one
    profile[width] += one
    for j in range(count + 1):
        profile[j] += math.comb(count, j) * width**j * (lacking - width) ** (count - j)
    mean = 1 - 2 * Fraction(none, 2**n)
    influence = Fraction(2 * lacking ** (count - 1), 2**n)
    # 4^n W_k / 4: one tribe's polynomial times 4^width has whole coefficients.
    tribe = [lacking**2, *(math.comb(width, k) for k in range(1, width + 1))]
    product = [1]
    for _ in range(count):
        product = _times(product, tribe)
    weights = [mean**2, *(Fraction(4 * coefficient, 4**n) for coefficient in product[1:])]
    return exact_of_signs(n, mean, [influence] * n, profile, weights)


def _times(left: list[int], right: list[int]) -> list[int]:
    """The product of two polynomials."""
    found = [0] * (len(left) + len(right) - 1)
    for i, a in enumerate(left):
        for j, b in enumerate(right):
            found[i + j] += a * b
    return found


@register("bent")
def bent(n: int) -> KnownFunction:
    """The inner product modulo 2 of the first and the second half of the bits, (-1)^<b, c>, +1 read as bit 1.

    Every |fhat(U)| is 2^(-n/2), so W_k = C(n, k) / 2^n: as far from all parities as a function can be. A bit decides
    where its partner is +1, so s(x) is the number of bits that are +1 and every influence is 1/2.

    >>> bent(2).table().tolist(), bent(100).exact.total_sensitivity
    ([1, 1, 1, -1], 50.0)
    """
    n = num_bits("bent", n)
    if n % 2:
        raise wrong("n of bent", n, "even: the bits form two halves", f"; try {n - 1 or 2} or {n + 1}")
    half = n // 2
    return KnownFunction(
        "bent",
        n,
        {},
        True,
        lambda points: 1 - 2 * (((points[:, :half] == 1) & (points[:, half:] == 1)).sum(axis=1) % 2),
        lambda: _bent_exact(n),
    )


def _bent_exact(n: int) -> Exact:
    counts = [math.comb(n, k) for k in range(n + 1)]
    weights = [Fraction(count, 2**n) for count in counts]
    return exact_of_signs(n, Fraction(1, 2 ** (n // 2)), [Fraction(1, 2)] * n, counts, weights)
