"""Noise stability, and the two inequalities between it and sensitivity.

x' is rho-correlated with a uniform x: each coordinate is kept with probability rho and drawn anew otherwise, so that
E[x_i x'_i] = rho. Negative rho: each coordinate of x' is kept with probability (1 + rho) / 2 and flipped otherwise.
"""

import functools
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from jostle.base.errors import UsageError, shown

RHOS = (0.1, 0.5, 0.9)  # the default of printed analyses


@dataclass(frozen=True)
class Inequality:
    """An inequality left <= right, with its slack.

    >>> str(Inequality("degree <= max_sensitivity^2", 2.0, 4.0))
    'degree <= max_sensitivity^2: 2 <= 4, slack 2'
    """

    name: str
    left: float
    right: float

    @property
    def slack(self) -> float:
        """right - left."""
        return self.right - self.left

    @property
    def holds(self) -> bool:
        """Whether left <= right, up to rounding of numbers of order one."""
        return self.slack >= -1e-12

    def to_dict(self) -> dict[str, Any]:
        """A plain dictionary, for JSON."""
        return {"name": self.name, "left": self.left, "right": self.right, "slack": self.slack, "holds": self.holds}

    def __str__(self) -> str:
        sign = "<=" if self.holds else ">"
        return f"{self.name}: {self.left:.6g} {sign} {self.right:.6g}, slack {self.slack:.3g}"


def noise_stability(weight: NDArray[np.float64], rho: ArrayLike) -> Any:
    """Q_rho = E[f(x) f(x')] = sum over k of rho^k W_k: a number, or an array for an array of rho.

    Arguments:
        weight: (n + 1,) the Fourier weight by degree.
        rho: the correlation, between -1 and 1.
    """
    given: Any = rho
    if type(given) is float and -1 <= given <= 1:  # Horner's scheme, as in numpy, without its overhead
        return functools.reduce(lambda total, each: total * given + each, weight[::-1].tolist())
    rhos = check_rho(rho)
    stability = np.polynomial.polynomial.polyval(rhos, weight)
    return float(stability) if np.ndim(stability) == 0 else stability


def disagreement_bound(max_sensitivity: ArrayLike, rho: ArrayLike) -> Any:
    """(1 - rho^(S_max^2)) / 2, which bounds Pr[f(x) != f(x')]: paper 1 (2403.06925), Proposition 3.2.

    A constant has S_max = 0 and the bound 0 for every rho. The proposition is for rho between 0 and 1. Arrays are
    broadcast as in numpy.
    """
    rhos = check_rho(rho)
    if np.any(rhos < 0):
        raise UsageError(f"rho={rho!r}: the bound of Proposition 3.2 is for rho between 0 and 1")
    bound = (1 - rhos ** np.square(np.asarray(max_sensitivity, dtype=np.float64))) / 2
    return float(bound) if np.ndim(bound) == 0 else bound


def average_bound(variance: ArrayLike, total_sensitivity: ArrayLike, rho: ArrayLike) -> Any:
    """Var (1 - rho^(S / Var)) / 2, which bounds Pr[f(x) != f(x')] by the *average* sensitivity.

    rho^k is convex in k, so by Jensen sum over k >= 1 of rho^k W_k >= Var rho^(S / Var). Since S / Var is at most the
    degree, and the degree at most S_max^2, this bound is never above that of Proposition 3.2. Characters attain it.
    For rho between 0 and 1; 0 for a constant.
    """
    rhos = check_rho(rho)
    if np.any(rhos < 0):
        raise UsageError(f"rho={rho!r}: this bound is for rho between 0 and 1")
    spread, total = (np.asarray(part, dtype=np.float64) for part in (variance, total_sensitivity))
    mean_degree = np.divide(total, spread, out=np.zeros(spread.shape), where=spread > 0)
    bound = spread * (1 - rhos**mean_degree) / 2
    return float(bound) if np.ndim(bound) == 0 else bound


def check_rho(rho: ArrayLike) -> NDArray[np.float64]:
    """``rho`` as floats; raises unless all are between -1 and 1."""
    try:
        rhos = np.asarray(rho, dtype=np.float64)
    except (TypeError, ValueError):
        raise UsageError(f"rho={shown(rho)} must be a number between -1 and 1, or several") from None
    if not np.all(np.abs(rhos) <= 1):
        raise UsageError(f"rho={shown(rho)} must lie between -1 and 1: it is the correlation of x and x'")
    return rhos
