"""Slow and obvious twins: kernels and spectra in many digits, nothing shared with the package."""

from math import comb

import mpmath
import numpy as np

mp = mpmath.MPContext()  # a context of its own: the precision of other tests stays as it is
mp.dps = 200


def relu_moments(k, p):
    r = k / p
    angle = mp.acos(r)
    return p * (mp.sqrt(1 - r * r) + r * (mp.pi - angle)) / (2 * mp.pi), (mp.pi - angle) / (2 * mp.pi)


def erf_moments(k, p):
    value = 2 / mp.pi * mp.asin(2 * k / (1 + 2 * p))
    return value, 4 / mp.pi / mp.sqrt((1 + 2 * p) ** 2 - 4 * k * k)


MOMENTS = {"relu": relu_moments, "erf": erf_moments}


def mlp(c, depth, activation, w, b):
    """(CK, NTK) at one correlation, each layer followed at (x, y) and at (x, x)."""
    w, b = mp.mpf(w), mp.mpf(b)
    k, p = w * c + b, w + b
    tangent = k
    for _ in range(depth):
        value, slope = MOMENTS[activation](k, p)
        k, p = w * value + b, w * MOMENTS[activation](p, p)[0] + b
        tangent = k + w * tangent * slope
    return k, tangent


def attention(c, depth, activation, w, b):
    """(CK, NTK) of one-token linear attention, written with the chain rule for each matrix apart."""
    w, b = mp.mpf(w), mp.mpf(b)
    k, p, tangent = c, mp.mpf(1), mp.mpf(0)
    for _ in range(depth):
        from_queries = from_keys = from_values = k**3 + k**2 * tangent
        tangent = from_queries + from_keys + from_values
        k, p = k**3, p**3
        if activation is not None:
            k, p = w * k + b, w * p + b
            tangent = k + w * tangent
            value, slope = MOMENTS[activation](k, p)
            k, p, tangent = value, MOMENTS[activation](p, p)[0], tangent * slope
    return k, k + tangent


def log_spectrum(kernel, n):
    """log mu_0..mu_n of Psi by the sum over Hamming distances, with whole-number Krawtchouk polynomials."""
    at = [kernel(mp.mpf(n - 2 * flips) / n) for flips in range(n + 1)]
    found, least = [], mp.mpf(10) ** (20 - mp.dps)  # smaller ones are 0 but for rounding
    signs = [comb(n, flips) for flips in range(n + 1)]
    for _ in range(n + 1):
        mu = mp.fsum(s * a for s, a in zip(signs, at, strict=True)) / mp.mpf(2) ** n
        found.append(float(mp.log(mu)) if mu > least else -np.inf)
        signs = _swap_factor(signs)
    return np.array(found)


def _swap_factor(polynomial):
    """p(z) (1 - z) / (1 + z), coefficient by coefficient: one more coordinate in U."""
    quotient = []
    for coefficient in polynomial:
        quotient.append(coefficient - (quotient[-1] if quotient else 0))
    return [new - (quotient[i - 1] if i else 0) for i, new in enumerate(quotient)]
