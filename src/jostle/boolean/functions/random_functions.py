"""A function drawn uniformly from all functions of n bits into {-1, 1}."""

import math
from fractions import Fraction
from typing import Any

import numpy as np

from jostle.base.checks import whole
from jostle.base.randomness import Stream
from jostle.boolean.functions.known import Exact, KnownFunction, floats, register

LARGEST = 96  # bits of an address in a stream: three words of 32
_WORD = 32


@register("random")
def random(n: int, seed: int = 0) -> KnownFunction:
    """A fair coin for every point, from a counter-based generator: no table is stored, for any n.

    ``exact`` holds means over the choice of the function (``is_expectation``): total sensitivity n / 2, with standard
    deviation sqrt(n / 2^(n+1)) between functions; C(n, s) points of sensitivity s; W_k = C(n, k) / 2^n.

    Arguments:
        n: number of bits, at most 96.
        seed: which function; another seed or another n gives an independent one.

    >>> random(10).exact.total_sensitivity, random(2, seed=1).table().tolist()
    (5.0, [1, -1, 1, -1])
    """
    n = whole("n of random", n, least=1, most=LARGEST)
    seed = whole("seed of random", seed, least=0)
    stream = Stream(seed, f"random Boolean function of {n} bits")

    def evaluate(points: Any) -> Any:
        low, middle, high = (_word(points[:, start : start + _WORD]) for start in range(0, LARGEST, _WORD))
        return np.where(stream.uniforms(low, middle, high, size=1)[:, 0] < 0.5, -1, 1)

    return KnownFunction("random", n, {"seed": seed}, True, evaluate, lambda: _expected_values(n))


def _word(points: Any) -> Any:
    """Up to 32 bits of each row as one number."""
    return (points == 1) @ (1 << np.arange(points.shape[1], dtype=np.int64))


def _expected_values(n: int) -> Exact:
    counts = tuple(math.comb(n, k) for k in range(n + 1))
    return Exact(
        mean=0.0,
        total_sensitivity=n / 2,
        influences=floats([0.5] * n),
        sensitivity_profile=counts,
        weight_by_degree=floats([Fraction(count, 2**n) for count in counts]),
        is_expectation=True,
    )
