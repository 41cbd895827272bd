"""Linear threshold functions, counted by subset sums.

Scale weights and theta to whole numbers and let S be the sum of |w_i| over the bits that agree with the sign of their
weight; then w . x = 2 S - (sum of |w_i|), and f(x) = 1 exactly if S >= c with c = floor((theta + sum |w_i|) / 2) + 1.

    Inf_i = Pr[c - |w_i| <= S without i < c],
    s(x) = the number of agreeing bits with |w_i| > S - c, if S >= c,
    s(x) = the number of disagreeing bits with |w_i| >= c - S, if S < c.

The numbers of subsets with each sum are the coefficients of a polynomial, the product of (1 + q^|w_i|). It is stored
as one long whole number with a field of bits for each coefficient, so that multiplying by a factor takes one shift and
one addition (Kronecker substitution).
"""

import itertools
import math
from collections.abc import Iterable
from fractions import Fraction
from typing import Any

import numpy as np

from jostle.base.checks import number
from jostle.base.errors import UsageError
from jostle.boolean.functions.known import Exact, KnownFunction, as_list, exact_of_signs, num_bits, register

LARGEST_SUM = 100_000  # sum of |w_i| up to which subsets are counted
_MOST_WORK = 6e11  # bits moved for a profile: about three seconds
_SAFE = 2**62


@register("threshold")
def threshold(n: int, weights: Any = None, theta: float = 0) -> KnownFunction:
    """1 if <w, x> > theta, otherwise -1 (so a tie is -1).

    Weights and theta are read as the decimals they print as and scaled to whole numbers, so that 0.1 + 0.2 ties with
    0.3. ``exact`` has mean, influences and total sensitivity, and the profile if counting it takes less than seconds.
    All are None if the whole weights sum to more than 100,000. Degree and spectrum are None: there is no formula.

    Arguments:
        n: number of bits.
        weights: n finite numbers; by default all 1, the majority.
        theta: the threshold.

    >>> threshold(3, weights=[3, 1, 1]).exact.influences.tolist()  # the first bit decides
    [1.0, 0.0, 0.0]
    >>> threshold(100).exact.total_sensitivity == threshold(100, weights=[0.5] * 100).exact.total_sensitivity
    True
    """
    n = num_bits("threshold", n)
    given = [1] * n if weights is None else as_list("weights of threshold", weights)
    if len(given) != n:
        raise UsageError(f"weights of threshold has {len(given)} numbers; expected n = {n}")
    fractions = [_decimal(f"weights[{position}] of threshold", value) for position, value in enumerate(given)]
    bound = _decimal("theta of threshold", theta)
    scale = math.lcm(bound.denominator, *(value.denominator for value in fractions))
    scaled, scaled_bound = [int(value * scale) for value in fractions], int(bound * scale)
    if sum(map(abs, scaled)) + abs(scaled_bound) > _SAFE:
        raise UsageError("weights of threshold need more than 62 bits as whole numbers; round them to fewer digits")
    vector = np.array(scaled, dtype=np.int64)
    return KnownFunction(
        "threshold",
        n,
        {"weights": given, "theta": theta},
        True,
        lambda points: np.where(points @ vector > scaled_bound, 1, -1),
        lambda: _exact(n, [abs(value) for value in scaled], scaled_bound),
    )


def _decimal(name: str, value: Any) -> Fraction:
    """``value`` as the decimal that it prints as: 1/10 for 0.1."""
    number(name, value)
    return Fraction(str(value))


def _exact(n: int, sizes: list[int], bound: int) -> Exact:
    total = sum(sizes)
    if total > LARGEST_SUM:
        return Exact()
    least = (bound + total) // 2 + 1  # c
    counts = _Sums(n)
    positive = counts.between(counts.product(1, sizes), least, total + 1)
    by_size = {}
    for size in set(sizes):
        others = list(sizes)
        others.remove(size)
        decided = counts.between(counts.product(1, others), least - size, least)
        by_size[size] = Fraction(decided, 2 ** (n - 1))
    mean = Fraction(2 * positive - 2**n, 2**n)
    return exact_of_signs(n, mean, [by_size[size] for size in sizes], _profile(n, sizes, least, counts), None)


def _profile(n: int, sizes: list[int], least: int, counts: "_Sums") -> list[int] | None:
    """How many points have each sensitivity; None if counting takes too long.

    For sums S with c + small <= S < c + large, small and large neighbouring sizes, the deciding bits are the agreeing
    ones of size ``large`` and above; likewise below c. So the large ones are counted along with the sum.
    """
    total, kinds = sum(sizes), sorted(set(sizes) - {0}, reverse=True)
    if len(kinds) * n**2 * (total + 1) * counts.width > _MOST_WORK:
        return None
    profile = [0] * (n + 1)
    agreeing = [1]  # agreeing[j]: the sums of the large bits of which j agree
    for large, small in itertools.pairwise([*kinds, 0]):
        for _ in range(sizes.count(large)):
            agreeing = counts.count_agreement(agreeing, large)
        rest = [size for size in sizes if size < large]
        members = len(sizes) - len(rest)
        for j, sums in enumerate(agreeing):
            every = counts.product(sums, rest)
            profile[j] += counts.between(every, least + small, least + large)
            profile[members - j] += counts.between(every, least - large, least - small)
    profile[0] += 2**n - sum(profile)  # too far from the threshold for any single bit
    return profile


class _Sums:
    """Polynomials in q with coefficients up to 2^n, each packed into one whole number."""

    def __init__(self, n: int) -> None:
        self.width = 8 * (n // 8 + 1)  # whole bytes, more than n bits

    def product(self, packed: int, sizes: Iterable[int]) -> int:
        """``packed`` times (1 + q^size) for every size."""
        for size in sizes:
            packed += packed << (size * self.width)
        return packed

    def count_agreement(self, by_count: list[int], size: int) -> list[int]:
        """Add a bit of this size and count whether it agrees: (p_j) -> (p_j + q^size p_(j-1))."""
        shift = size * self.width
        return [alone + (joined << shift) for alone, joined in zip([*by_count, 0], [0, *by_count], strict=True)]

    def between(self, packed: int, start: int, stop: int) -> int:
        """The sum of the coefficients of q^start .. q^(stop - 1)."""
        start = max(start, 0)
        count, field = max(stop - start, 0), self.width // 8
        fields = (packed >> (start * self.width)) & ((1 << (count * self.width)) - 1)
        content = fields.to_bytes(count * field, "little")
        return sum(int.from_bytes(content[at : at + field], "little") for at in range(0, len(content), field))
