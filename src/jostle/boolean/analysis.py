"""``analyse``: the sensitivity, influences and Fourier spectrum of a function of n bits, and ``Analysis``, its result.

Here: the exact analysis of a table. Not here: estimates for functions of too many bits (``sampled``).
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from jostle.base import checks
from jostle.base.errors import UsageError
from jostle.base.progress import Progress
from jostle.base.specs import written
from jostle.base.table import Row, Tabular
from jostle.boolean import fourier, pointwise, stability
from jostle.boolean.cube import LARGEST, dimension, subset_row
from jostle.boolean.functions import KnownFunction
from jostle.boolean.stability import RHOS, Inequality
from jostle.boolean.tables import Output, as_table, check_options

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from jostle.boolean.sampled import SampledAnalysis

Floats = NDArray[np.float64]
Method = Literal["auto", "exact", "sampled"]

METHODS = ("auto", "exact", "sampled")
_MOST = 1 << 28  # bits of all sampled points together: two gigabytes
_SMALL = 1 << 14  # values of a table whose coefficients are computed at once, not at the first use
_FEW = 12  # entries of a list that are printed


def analyse(
    f: Callable[..., Any] | Any,
    n: int | None = None,
    *,
    method: Method = "auto",
    output: Output = "auto",
    tie: int | None = None,
    tensors: bool = False,
    samples: int = 2000,
    level: float = 0.95,
    seed: int = 0,
    batch_size: int = 4096,
    progress: Progress = False,
) -> "Analysis | SampledAnalysis":
    """Sensitivity, influences and Fourier spectrum of a function of n bits.

    Exact for n up to 24, from 2^n evaluations of f (never n 2^n); for larger n, estimates with intervals.

    >>> from jostle.boolean import analyse
    >>> b = analyse(lambda x: x.prod(axis=1), n=10)  # parity
    >>> b.total_sensitivity, b.sensitivity, b.max_sensitivity, b.degree
    (10.0, 1.0, 10, 10)
    >>> analyse([-1, -1, -1, 1]).influences.tolist()  # AND of two bits, as a table
    [0.5, 0.5]

    Arguments:
        f: a callable from a (batch, n) array of -1 and 1 to (batch,) numbers, an ``nn.Module``, or a table of 2^n
            values in the order of ``itertools.product((-1, 1), repeat=n)``. Bools count as -1 and 1.
        n: the number of bits; not needed for a table or for a function or network of ``jostle.boolean``.
        method: ``exact``, ``sampled``, or ``auto``: exact up to 24 bits.
        output: ``values`` of f as they are; ``sign`` for the predictions of a network; ``auto``: values, and an error
            for a function into 0 and 1, because its sensitivity would not count flips.
        tie: the sign of an output of exactly 0, -1 or 1; by default such an output is an error.
        tensors: give a callable that is not a module tensors instead of arrays.
        samples: random points for ``sampled``, each with its n neighbours.
        level: of the intervals.
        seed: of the random points.
        batch_size: points that f gets at once.
        progress: as for ``jostle.measure``; only sampling shows it.

    Raises:
        UsageError: one line on what cannot be analysed.
    """
    checks.choice("method", method, METHODS)
    samples, batch_size = checks.whole("samples", samples, least=2), checks.whole("batch_size", batch_size, least=1)
    level, seed = checks.level(level), checks.whole("seed", seed)
    if not callable(f):
        if method == "sampled":
            raise UsageError("method='sampled' needs a function; a table is analysed exactly")
        return Analysis.of(_table(f, n, output, tie))
    bits = _bits(f, n)
    is_sampled = method == "sampled" or (method == "auto" and bits > LARGEST)
    if is_sampled and bits * samples > _MOST:
        raise UsageError(f"{samples:,} samples of {bits:,} bits are too many to hold; take fewer samples or bits")
    check_options(output, tie)
    if method == "exact" and bits > LARGEST:
        raise UsageError(f"n={bits} is too large for method='exact', 2^n evaluations; the limit is {LARGEST}")
    is_exact = method == "exact" or (method == "auto" and bits <= LARGEST)
    if is_exact and isinstance(f, KnownFunction):
        return Analysis.of(as_table(f.table(), output, tie, "f"))
    from jostle.boolean.evaluator import Evaluator, tabulate  # only here: a table needs no torch
    from jostle.boolean.sampled import sample

    evaluator = Evaluator(f, output, tie, tensors)
    if is_exact:
        return Analysis.of(tabulate(evaluator, bits, batch_size))
    return sample(evaluator, bits, samples, level, seed, batch_size, progress)


def _table(values: Any, n: int | None, output: Output, tie: int | None) -> NDArray[Any]:
    """``values`` as a table of n bits."""
    if not isinstance(values, np.ndarray | list | tuple) and not hasattr(values, "detach"):
        raise UsageError(f"f of type {type(values).__name__} is neither a function of bits nor a table of 2^n values")
    table = as_table(values, output, tie)
    found = len(table).bit_length() - 1
    if n is not None and checks.whole("n", n, least=1) != found:
        raise UsageError(f"n={n} does not fit a table of {len(table):,} values, which is for n={found}")
    return table


def _bits(f: Callable[..., Any], n: int | None) -> int:
    """The number of bits: ``n``, or the attribute ``n`` of a function or network of ``jostle.boolean``."""
    own = getattr(f, "n", None) if type(f).__module__.startswith("jostle.boolean") else None
    if n is None and own is None:
        raise UsageError("n is missing: give the number of bits, analyse(f, n=10)")
    bits = checks.whole("n", n if n is not None else own, least=1)
    if own not in (None, bits):
        raise UsageError(f"n={n} does not fit a function of {own} bits")
    return bits


@dataclass(frozen=True, eq=False)
class Analysis(Tabular):
    """The exact analysis of a function f on {-1, 1}^n, made by ``analyse``.

    For f into {-1, 1} all numbers are exact, counts divided by powers of two, except those that depend on rho.

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

    tables: ClassVar[tuple[str, ...]] = ("result", "influences", "spectrum")

    @classmethod
    def of(cls, table: NDArray[Any]) -> "Analysis":
        """The analysis of a table of signs (int8) or of real numbers (float64)."""
        compared = pointwise.sensitivities_and_influences(table)
        if table.dtype != np.int8 or len(table) > _SMALL:
            return cls(table, *compared, fourier.weight_by_degree(table))
        coefficients = fourier.coefficients(table)  # of signs, exact: so are the weights that follow from them
        found = cls(table, *compared, fourier.sums_by_degree(np.square(coefficients)))
        vars(found)["coefficients"] = coefficients
        return found

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
        return float(self.influences.sum())

    @property
    def sensitivity(self) -> float:
        """S(f) / n, between 0 and 1 for a function into {-1, 1}: what ``jostle.measure`` estimates."""
        return self.total_sensitivity / self.n

    @cached_property
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

    @cached_property
    def degree(self) -> int:
        """The largest size of a U with fhat(U) != 0, for real tables up to rounding; 0 for f = 0."""
        floor = 0.0 if self.is_boolean else (64 * np.finfo(float).eps) ** 2 * self.n * float(self.fourier_weight.sum())
        return max((size for size, weight in enumerate(self.fourier_weight.tolist()) if weight > floor), default=0)

    @cached_property
    def coefficients(self) -> Floats:
        """(2^n,) fhat(U), in table order; computed at the first use."""
        return fourier.coefficients(self.table)

    def coefficient(self, subset: Iterable[int]) -> float:
        """fhat(U) for a set of coordinates counted from 0, e.g. ``b.coefficient([0, 2])``."""
        return float(self.coefficients[subset_row(subset, self.n)])

    def largest_coefficients(self, count: int = 10) -> list[tuple[tuple[int, ...], float]]:
        """The ``count`` largest |fhat(U)| > 0, as (U, fhat(U)); equal ones by size of U, then by their first bits."""
        count = checks.whole("count", count, least=0)
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
        """Plain numbers for JSON: everything whose size does not grow as 2^n."""
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

    def rows(self, of: str = "result") -> list[Row]:
        """Quantities by name; or the influence of each bit, or the Fourier weight of each degree. All are exact."""
        if of == "influences":
            return [exact_row(float(value), bit=bit) for bit, value in enumerate(self.influences)]
        if of == "spectrum":
            return [exact_row(float(value), degree=degree) for degree, value in enumerate(self.fourier_weight)]
        return [exact_row(float(getattr(self, name)), quantity=name) for name in _QUANTITIES]

    def __str__(self) -> str:
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


_QUANTITIES = (
    "sensitivity", "total_sensitivity", "max_sensitivity", "min_sensitivity", "degree", "mean", "variance"
)  # fmt: skip


def exact_row(value: float, **first: Any) -> Row:
    """A number without doubt."""
    return {**first, "value": value, "low": value, "high": value}


def _one(rho: float) -> float:
    if np.ndim(rho):
        raise checks.wrong("rho", rho, "one number here", "; call it once for each of several")
    return rho


def exact_lines(b: Analysis, rhos: Sequence[float] | None = None) -> list[str]:
    """An exact analysis as text, one quantity a line."""
    rhos = rhos or RHOS
    kind = "into {-1, 1}" if b.is_boolean else f"real, from {b.table.min():.6g} to {b.table.max():.6g}"
    lines = [
        f"function of {b.n} bits {kind}; exact, from {len(b.table):,} values",
        _row("mean", b.mean),
        _row("total sensitivity", b.total_sensitivity, f"sensitivity {b.sensitivity:.6g} (per bit)"),
        _row("max sensitivity", b.max_sensitivity, f"min {b.min_sensitivity:.6g}"),
        _row("degree", b.degree),
        f"  {'influences':<20} {_numbers(b.influences)}",
        f"  {'Fourier weight':<20} {_by_degree(b.fourier_weight)}",
        f"  {'noise stability':<20} " + "   ".join(f"rho {written(rho)}: {b.noise_stability(rho):.6g}" for rho in rhos),
    ]
    if b.is_boolean:
        profile = b.sensitivity_profile
        counts = [f"{s}: {count:,}" for s, count in enumerate(profile.tolist()) if count]
        lines += [
            f"  {'inputs of s':<20} {_join(counts)}",
            f"  {'disagreement':<20} " + "   ".join(f"rho {written(rho)}: {b.disagreement(rho):.6g}" for rho in rhos),
            f"  {'Huang':<20} {b.huang}",
            *(f"  {'Proposition 3.2':<20} {b.proposition_3_2(rho)}" for rho in rhos if rho >= 0),
            *(f"  {'average sensitivity':<20} {b.average_bound(rho)}" for rho in rhos if rho >= 0),
        ]
    return lines


def _row(name: str, value: float, note: str = "") -> str:
    return f"  {name:<20} {value:<12.6g} {note}".rstrip()


def _numbers(values: NDArray[Any]) -> str:
    if len(values) > 1 and np.all(values == values[0]):
        return f"all {len(values)}: {values[0]:.6g}"
    return _join([f"{value:.4g}" for value in values.tolist()], " ")


def _by_degree(weight: NDArray[Any]) -> str:
    return _join([f"{k}: {value:.4g}" for k, value in enumerate(weight.tolist()) if value > 1e-15 * weight.sum()])


def _join(parts: list[str], joint: str = "   ") -> str:
    return joint.join(parts) if len(parts) <= _FEW else f"{joint.join(parts[:_FEW])}{joint}... ({len(parts)} in all)"
