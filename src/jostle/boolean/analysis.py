"""Everything about a function of n bits that its table says exactly."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from jostle.boolean import fourier, pointwise, stability
from jostle.boolean.cube import dimension, subset_row
from jostle.boolean.stability import RHOS, Inequality
from jostle.errors import UsageError
from jostle.specs import written

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Analysis:
    """The exact analysis of a function f on {-1, 1}^n, made by ``analyse``.

    For f into {-1, 1} all numbers but powers of rho are exact: counts divided by powers of two.

    Arguments:
        table: (2^n,) values of f in table order: int8 for a function into {-1, 1}, float64 otherwise.
        pointwise: (2^n,) s(x, f) = (1/4) sum over i of (f(x) - f(x with bit i flipped))^2, for a function into
            {-1, 1} the number of bits whose flip changes f(x).
        influences: (n,) the mean over x of coordinate i's term of s(x, f).
        fourier_weight: (n + 1,) W_k, the sum of fhat(U)^2 over the U of size k.
    """

    table: NDArray[Any] = field(repr=False)
    pointwise: NDArray[Any] = field(repr=False)
    influences: Floats = field(repr=False)
    fourier_weight: Floats

    @classmethod
    def of(cls, table: NDArray[Any]) -> "Analysis":
        """The analysis of a table of signs (int8) or of real numbers (float64)."""
        return cls(table, pointwise.sensitivities(table), pointwise.influences(table), fourier.weight_by_degree(table))

    @property
    def n(self) -> int:
        """The number of bits."""
        return dimension(self.table)

    @property
    def is_boolean(self) -> bool:
        """Whether every value is -1 or 1."""
        return self.table.dtype == np.int8

    @property
    def mean(self) -> float:
        """E[f(x)] over uniform x."""
        return float(self.table.mean(dtype=np.float64))

    @property
    def variance(self) -> float:
        """Var[f(x)] = the weight on degrees 1 to n."""
        return float(self.fourier_weight[1:].sum())

    @property
    def total_sensitivity(self) -> float:
        """S(f) = E_x[s(x, f)] = sum of influences = sum over k of k W_k: paper 1 (2403.06925), Eq. 1."""
        return float(self.pointwise.mean(dtype=np.float64))

    @property
    def sensitivity(self) -> float:
        """S(f) / n, between 0 and 1 for a function into {-1, 1}: what ``jostle.measure`` estimates."""
        return self.total_sensitivity / self.n

    @property
    def max_sensitivity(self) -> float:
        """max over x of s(x, f)."""
        largest: float = self.pointwise.max().item()
        return largest

    @property
    def min_sensitivity(self) -> float:
        """min over x of s(x, f)."""
        smallest: float = self.pointwise.min().item()
        return smallest

    @property
    def sensitivity_profile(self) -> NDArray[np.int64]:
        """(n + 1,) K_s, how many inputs have sensitivity s (2606.08768); only for functions into {-1, 1}."""
        self._need_signs("the sensitivity profile counts inputs by a whole-number sensitivity")
        return np.bincount(self.pointwise, minlength=self.n + 1).astype(np.int64)

    @property
    def degree(self) -> int:
        """The largest size of a U with fhat(U) != 0; for real tables, above what rounding leaves. 0 for f = 0."""
        floor = 0.0 if self.is_boolean else (64 * np.finfo(float).eps) ** 2 * self.n * float(self.fourier_weight.sum())
        return int(np.flatnonzero(self.fourier_weight > floor).max(initial=0))

    @cached_property
    def coefficients(self) -> Floats:
        """(2^n,) fhat(U), in table order: computed when first asked for, and kept."""
        return fourier.coefficients(self.table)

    def coefficient(self, subset: Iterable[int]) -> float:
        """fhat(U) for a set of coordinates counted from 0, e.g. ``b.coefficient([0, 2])``."""
        return float(self.coefficients[subset_row(subset, self.n)])

    def largest_coefficients(self, count: int = 10) -> list[tuple[tuple[int, ...], float]]:
        """The ``count`` largest |fhat(U)| > 0, as (U, fhat(U)); among equals, small sets and first bits first."""
        if count < 0:
            raise UsageError(f"count={count} must be at least 0")
        sizes, rows = np.abs(self.coefficients), np.arange(len(self.table))
        chosen = np.lexsort((-rows, np.bitwise_count(rows), -sizes))[:count]
        found = ((tuple(i for i in range(self.n) if row >> (self.n - 1 - i) & 1), row) for row in chosen.tolist())
        return [(subset, float(self.coefficients[row])) for subset, row in found if self.coefficients[row] != 0]

    def noise_stability(self, rho: ArrayLike) -> Any:
        """Q_rho = E[f(x) f(x')] for rho-correlated x and x': sum over k of rho^k W_k."""
        return stability.noise_stability(self.fourier_weight, rho)

    def disagreement(self, rho: ArrayLike) -> Any:
        """R_rho = Pr[f(x) != f(x')] for rho-correlated x and x': (1 - Q_rho) / 2."""
        self._need_signs("the disagreement is (1 - Q_rho) / 2 only for a function into -1 and 1")
        return (1 - self.noise_stability(rho)) / 2

    @property
    def huang(self) -> Inequality:
        """degree <= max_sensitivity^2: Huang 2019, "Induced subgraphs of hypercubes and ..."."""
        self._need_signs("Huang's inequality is about functions into -1 and 1")
        return Inequality("degree <= max_sensitivity^2", float(self.degree), float(self.max_sensitivity) ** 2)

    def proposition_3_2(self, rho: float) -> Inequality:
        """R_rho <= (1 - rho^(S_max^2)) / 2, with its slack: paper 1 (2403.06925), Proposition 3.2."""
        bound = stability.disagreement_bound(self.max_sensitivity, _one(rho))
        return Inequality(f"disagreement at rho {written(rho)} <= bound", self.disagreement(rho), bound)

    def average_bound(self, rho: float) -> Inequality:
        """R_rho <= Var (1 - rho^(S / Var)) / 2: the bound by the average sensitivity, never above Proposition 3.2's."""
        bound = stability.average_bound(self.variance, self.total_sensitivity, _one(rho))
        return Inequality(f"disagreement at rho {written(rho)} <= average bound", self.disagreement(rho), bound)

    def to_dict(self, rhos: Iterable[float] = RHOS) -> dict[str, Any]:
        """Plain numbers for JSON, all that do not grow as 2^n."""
        numbers: dict[str, Any] = {
            "kind": "jostle/boolean",
            "n": self.n,
            "is_boolean": self.is_boolean,
            "is_exact": True,
            "mean": self.mean,
            "variance": self.variance,
            "total_sensitivity": self.total_sensitivity,
            "sensitivity": self.sensitivity,
            "max_sensitivity": self.max_sensitivity,
            "min_sensitivity": self.min_sensitivity,
            "degree": self.degree,
            "influences": self.influences.tolist(),
            "fourier_weight": self.fourier_weight.tolist(),
            "noise_stability": {written(rho): self.noise_stability(rho) for rho in rhos},
        }
        if self.is_boolean:
            numbers["disagreement"] = {written(rho): self.disagreement(rho) for rho in rhos}
            numbers["sensitivity_profile"] = self.sensitivity_profile.tolist()
            numbers["huang"] = self.huang.to_dict()
            numbers["average_bound"] = {written(rho): self.average_bound(rho).to_dict() for rho in rhos if rho >= 0}
            numbers["proposition_3_2"] = {written(rho): self.proposition_3_2(rho).to_dict() for rho in rhos if rho >= 0}
        return numbers

    def __str__(self) -> str:
        from jostle.boolean.wording import exact_lines

        return "\n".join(exact_lines(self))

    def plot(self) -> "Figure":
        """The Fourier weight by degree and the sensitivity profile, as a figure."""
        from jostle.figures import boolean_figure

        return boolean_figure(self)

    def _need_signs(self, why: str) -> None:
        if not self.is_boolean:
            low, high = self.table.min(), self.table.max()
            raise UsageError(
                f"the function takes values from {low:g} to {high:g}, not only -1 and 1: {why}; "
                "analyse its predictions with output='sign'"
            )


def _one(rho: float) -> float:
    if np.ndim(rho):
        raise UsageError(f"rho={rho!r} must be one number here; ask for each of several")
    return rho
