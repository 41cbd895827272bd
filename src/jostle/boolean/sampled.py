"""Estimates with intervals, from random points, for functions of too many bits to enumerate."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from jostle.base import checks
from jostle.base.errors import UsageError
from jostle.base.estimate import Estimate, Interval
from jostle.base.progress import Progress
from jostle.base.randomness import Stream
from jostle.base.specs import written
from jostle.base.table import Row, Tabular
from jostle.boolean.cube import subset_row
from jostle.boolean.evaluator import Evaluator
from jostle.boolean.stability import RHOS, check_rho
from jostle.estimates import Measurement, measure
from jostle.estimates.result import plain
from jostle.intervals import fixed
from jostle.perturbations import SignFlip
from jostle.responses import Flip, Response
from jostle.sampling import Grid
from jostle.tokens import Coordinates

_BITS_AT_ONCE = 2**26  # of one batch of points: half a gigabyte
_ROUNDING = 1e-12  # a spread up to this share of the numbers is a rounding error


class _QuarterSquare(Response):
    """(f(x') - f(x))^2 / 4: one coordinate's term of s(x, f) for a real-valued function."""

    name: ClassVar[str] = "quarter-square"

    def reference(self, outputs: Tensor) -> Tensor:
        return outputs.reshape(len(outputs)).double()

    def change(self, reference: Tensor, outputs: Tensor) -> Tensor:
        return (self.reference(outputs) - reference) ** 2 / 4


@dataclass(frozen=True, eq=False)
class Sampled(Estimate):
    """An estimate of a quantity of f over the whole cube, with its interval."""

    @classmethod
    def of(cls, value: float, low: float, high: float, level: float, method: str) -> "Sampled":
        """The estimate with this interval."""
        return cls(value, Interval(low, high, level, "population", method))

    def times(self, factor: float) -> "Sampled":
        """The estimate of a positive multiple."""
        ends, kind = (self.low * factor, self.high * factor), (self.interval.level, self.interval.method)
        return Sampled.of(self.value * factor, *ends, *kind)

    def to_dict(self) -> dict[str, Any]:
        """A plain dictionary, for JSON; an infinite end becomes null."""
        return {"value": self.value, **self.interval.to_dict()}


@dataclass(frozen=True, eq=False)
class SampledAnalysis(Tabular):
    """Estimates of what ``Analysis`` computes, from uniform random points of the cube and all their neighbours.

    Made by ``analyse`` where 2^n points are too many. The points are an independent sample of the cube, and intervals
    are for the mean over all 2^n points.

    Arguments:
        n: the number of bits.
        is_boolean: whether f was -1 or 1 at all points and their neighbours. Intervals assume that it is so at all
            other points too.
        measurement: ``jostle.measure`` of f at the points, every bit of each flipped once.
        values: (samples,) f at the points.
    """

    n: int
    is_boolean: bool
    measurement: Measurement
    values: NDArray[np.float64] = field(repr=False)
    _evaluator: Evaluator = field(repr=False)
    _batch_size: int = field(repr=False)

    tables: ClassVar[tuple[str, ...]] = ("result", "influences")

    def rows(self, of: str = "result") -> list[Row]:
        """Quantities by name; or the influence of each bit, each with an interval of its own."""
        if of == "influences":
            parts = zip(*(part.tolist() for part in self.influences), strict=True)
            return [{"bit": bit, "value": v, "low": low, "high": high} for bit, (v, low, high) in enumerate(parts)]
        return [getattr(self, name).row(quantity=name) for name in ("sensitivity", "total_sensitivity", "mean")]

    @property
    def samples(self) -> int:
        """The number of random points; f was evaluated at each of them and at its n neighbours."""
        return len(self.values)

    @property
    def passes(self) -> int:
        """The number of evaluations of f so far."""
        return self._evaluator.passes

    @property
    def sensitivity(self) -> Sampled:
        """S(f) / n."""
        inside = self.measurement.population
        low, high = _open_flat(inside.low, inside.high, self.is_boolean)
        return Sampled.of(self.measurement.value, float(low), float(high), inside.level, inside.method)

    @property
    def total_sensitivity(self) -> Sampled:
        """S(f) = E_x[s(x, f)]."""
        return self.sensitivity.times(self.n)

    @property
    def pointwise(self) -> NDArray[np.float64]:
        """(samples,) s(x, f) at the points."""
        return self.measurement.per_input * self.n

    @property
    def max_sensitivity_seen(self) -> float:
        """The largest s(x, f) among the points: a lower bound of the maximum over the cube."""
        largest = float(self.pointwise.max())
        return round(largest) if self.is_boolean else largest

    @property
    def sensitivity_profile(self) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
        """(shares, low, high), each (n + 1,): the share of inputs with sensitivity s, each with its own interval."""
        self._need_signs("the sensitivity profile")
        counts = np.bincount(np.rint(self.pointwise).astype(np.int64), minlength=self.n + 1)
        low, high = fixed.clopper_pearson(counts, self.samples, self._level)
        return counts / self.samples, low, high

    @property
    def influences(self) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
        """(values, low, high), each (n,): each influence with its own interval."""
        profile = self.measurement.profile
        return profile.values, *_open_flat(profile.low, profile.high, self.is_boolean)

    @property
    def mean(self) -> Sampled:
        """E[f(x)]."""
        return self._mean_of(self.values)

    def coefficient(self, subset: Iterable[int]) -> Sampled:
        """fhat(U) = E[f(x) chi_U(x)] for a set of coordinates counted from 0."""
        chosen = list(subset)
        subset_row(chosen, self.n)  # raises on wrong coordinates
        points = uniform_points(self.n, self.samples, self.measurement.settings.seed)
        return self._mean_of(self.values * np.prod(points[:, sorted(set(chosen))], axis=1))

    def noise_stability(self, rho: float, pairs: int | None = None) -> Sampled:
        """Q_rho = E[f(x) f(x')], from fresh pairs of rho-correlated points, by default as many as ``samples``."""
        count = self.samples if pairs is None else checks.whole("pairs", pairs, least=2)
        correlation = float(check_rho(rho))
        seed = self.measurement.settings.seed
        first = uniform_points(self.n, count, seed, "boolean/pairs")
        rows = np.arange(count)
        kept = Stream(seed, "boolean/kept").uniforms(rows, 0 * rows, 0 * rows, self.n) < (1 + correlation) / 2
        second = np.where(kept, first, -first)
        values = [self._evaluator.values_at(points, self._batch_size) for points in (first, second)]
        return self._mean_of(values[0] * values[1])

    def disagreement(self, rho: float, pairs: int | None = None) -> Sampled:
        """R_rho = Pr[f(x) != f(x')] for rho-correlated x and x'."""
        self._need_signs("the disagreement")
        q = self.noise_stability(rho, pairs)
        return Sampled.of((1 - q.value) / 2, (1 - q.high) / 2, (1 - q.low) / 2, q.interval.level, q.interval.method)

    def to_dict(self, rhos: Iterable[float] = RHOS) -> dict[str, Any]:
        """Plain numbers, for JSON; each rho costs fresh evaluations."""
        numbers = {"values": self.influences[0], "low": self.influences[1], "high": self.influences[2]}
        stability = {written(rho): self.noise_stability(rho).to_dict() for rho in rhos}
        found: dict[str, Any] = {
            "kind": "jostle/boolean",
            "n": self.n,
            "is_boolean": self.is_boolean,
            "is_exact": False,
            "samples": self.samples,
            "passes": self.passes,
            "level": self._level,
            "mean": self.mean.to_dict(),
            "total_sensitivity": self.total_sensitivity.to_dict(),
            "sensitivity": self.sensitivity.to_dict(),
            "max_sensitivity_seen": self.max_sensitivity_seen,
            "influences": {name: plain(array) for name, array in numbers.items()},
            "noise_stability": stability,
        }
        if self.is_boolean:
            shares, low, high = (part.tolist() for part in self.sensitivity_profile)
            found["sensitivity_profile"] = {"shares": shares, "low": low, "high": high}
        return found

    def __str__(self) -> str:
        return "\n".join(sampled_lines(self))

    @property
    def _level(self) -> float:
        return self.measurement.settings.level

    def _mean_of(self, values: NDArray[np.float64]) -> Sampled:
        """The mean of independent values: Clopper-Pearson for signs, Student's t otherwise."""
        mean = float(values.mean())
        if self.is_boolean and np.all(np.abs(values) == 1):
            low, high = fixed.clopper_pearson((values == 1).sum(), len(values), self._level)
            return Sampled.of(mean, 2 * float(low) - 1, 2 * float(high) - 1, self._level, "Clopper-Pearson")
        low, high = fixed.student(mean, values.var(ddof=1), len(values), self._level)
        if np.ptp(values) <= _ROUNDING * np.abs(values).max():  # a sample without spread does not bound other values
            low, high = np.asarray(-np.inf), np.asarray(np.inf)
        return Sampled.of(mean, float(low), float(high), self._level, "Student's t")

    def _need_signs(self, what: str) -> None:
        if not self.is_boolean:
            raise UsageError(f"{what} needs a function into -1 and 1; analyse its predictions with output='sign'")


def sample(
    evaluator: Evaluator, n: int, samples: int, level: float, seed: int, batch_size: int, progress: Progress
) -> SampledAnalysis:
    """Analyse f at ``samples`` uniform points and their neighbours: (n + 1) * samples evaluations and a few checks."""
    points = torch.from_numpy(uniform_points(n, samples, seed))
    batch_size = max(1, min(batch_size, _BITS_AT_ONCE // n))
    values = evaluator.values_at(points.numpy(), batch_size)

    def measure_with(response: Response) -> Measurement:
        with evaluator.evaluating():
            return measure(
                evaluator,
                points,
                tokens=Coordinates(),
                perturbation=SignFlip(),
                response=response,
                plan=Grid(1),
                target="population",
                level=level,
                seed=seed,
                batch_size=batch_size,
                progress=progress,
                name="f",
            )

    measurement = measure_with(Flip("sign") if evaluator.saw_only_signs else _QuarterSquare())
    evaluator.check_bits()
    if measurement.settings.response != _QuarterSquare.name and not evaluator.saw_only_signs:
        measurement = measure_with(_QuarterSquare())  # f is not -1 or 1 at a neighbour
    return SampledAnalysis(n, evaluator.saw_only_signs, measurement, values, evaluator, batch_size)


def uniform_points(n: int, count: int, seed: int, name: str = "boolean/points") -> NDArray[np.float64]:
    """(count, n) independent uniform points of the cube; row i depends on the seed, the name and i alone."""
    rows = np.arange(count)
    uniforms = Stream(seed, name).uniforms(rows, 0 * rows, 0 * rows, n)
    return np.where(uniforms < 0.5, -1.0, 1.0)


def sampled_lines(b: SampledAnalysis, rhos: Sequence[float] | None = None) -> list[str]:
    """A sampled analysis as text, one quantity a line."""
    kind = "into {-1, 1}" if b.is_boolean else "real"
    level = f"{b.measurement.settings.level:.0%}"
    values, low, high = b.influences
    largest = np.argsort(-values, kind="stable")[:5]
    shown = "   ".join(f"bit {i}: {values[i]:.3g} [{low[i]:.3g}, {high[i]:.3g}]" for i in largest)
    return [
        f"function of {b.n} bits {kind}; estimated from {b.samples:,} random inputs and all their neighbours, "
        f"{level} intervals",
        f"  {'mean':<20} {b.mean}",
        f"  {'total sensitivity':<20} {b.total_sensitivity}",
        f"  {'sensitivity':<20} {b.sensitivity}",
        f"  {'max sensitivity':<20} at least {b.max_sensitivity_seen:g}, the largest seen",
        f"  {'largest influences':<20} {shown}",
        *(f"  {f'stability, rho {written(rho)}':<20} {b.noise_stability(rho)}" for rho in rhos or RHOS),
    ]


def _open_flat(low: Any, high: Any, is_boolean: bool) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The ends of intervals for means of (1/4) (f(x) - f(x'))^2: from 0 to infinity where a sample has no spread.

    Student's interval of equal values has no width, but equal values do not prove that all other values are the same.
    """
    ends = np.asarray(low, dtype=np.float64), np.asarray(high, dtype=np.float64)
    if is_boolean:
        return ends
    is_flat = ends[1] - ends[0] <= _ROUNDING * np.abs(ends[1])
    return np.where(is_flat, 0.0, ends[0]), np.where(is_flat, np.inf, ends[1])
