"""The same quantities for functions of too many bits to enumerate, estimated from random points, with intervals."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from jostle.base.errors import UsageError
from jostle.base.estimate import Interval
from jostle.base.progress import Progress
from jostle.base.randomness import Stream
from jostle.base.specs import written
from jostle.boolean.cube import subset_row
from jostle.boolean.stability import RHOS, checked_rho
from jostle.boolean.tables import Evaluator
from jostle.estimates import Measurement, measure
from jostle.estimates.result import plain
from jostle.intervals import fixed
from jostle.perturbations import SignFlip
from jostle.responses import Flip, Response, logits_of
from jostle.sampling import Grid
from jostle.tokens import Coordinates

_ROUNDING = 1e-12  # a spread no larger than this share of the numbers is one of rounding


class _QuarterSquare(Response):
    """(f(x') - f(x))^2 / 4: one coordinate's term of s(x, f) for a real-valued function."""

    name: ClassVar[str] = "quarter-square"

    def reference(self, outputs: Tensor) -> Tensor:
        return logits_of(outputs)[:, 0].double()

    def change(self, reference: Tensor, outputs: Tensor) -> Tensor:
        return (logits_of(outputs)[:, 0].double() - reference) ** 2 / 4


@dataclass(frozen=True)
class Sampled:
    """An estimate between the ends of its interval, over the whole cube."""

    value: float
    low: float
    high: float
    level: float
    method: str

    def __str__(self) -> str:
        return f"{self.value:.4g}   [{self.low:.4g}, {self.high:.4g}]"

    def to_dict(self) -> dict[str, Any]:
        """A plain dictionary, for JSON; an end at infinity becomes null."""
        ends = Interval(self.low, self.high, self.level, "population", self.method).to_dict()
        return {"value": self.value, **ends}

    def times(self, factor: float) -> "Sampled":
        """The estimate of a multiple."""
        return Sampled(self.value * factor, self.low * factor, self.high * factor, self.level, self.method)


@dataclass(frozen=True, eq=False)
class SampledAnalysis:
    """Estimates of what ``Analysis`` computes, from uniform random points of the cube and all their neighbours.

    Made by ``analyse`` where 2^n points are too many. Intervals are for the mean over all 2^n points: the points are
    an independent sample of them.

    Arguments:
        n: the number of bits.
        is_boolean: whether every value seen, at the points and their neighbours, was -1 or 1. Values that were not
            seen are taken to be so too: intervals of such a function assume it.
        measurement: ``jostle.measure`` of f at the points, every bit of each flipped once.
        values: (samples,) f at the points.
    """

    n: int
    is_boolean: bool
    measurement: Measurement
    values: NDArray[np.float64] = field(repr=False)
    _evaluator: Evaluator = field(repr=False)
    _batch_size: int = field(repr=False)

    @property
    def samples(self) -> int:
        """How many random points were looked at, each with its n neighbours."""
        return len(self.values)

    @property
    def passes(self) -> int:
        """How many points f was evaluated at so far."""
        return self._evaluator.function.passes

    @property
    def sensitivity(self) -> Sampled:
        """S(f) / n."""
        inside = self.measurement.population
        low, high = _opened(inside.low, inside.high, self.is_boolean)
        return Sampled(self.measurement.value, float(low), float(high), inside.level, inside.method)

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
        """(values, low, high), each (n,): every coordinate with its own interval."""
        profile = self.measurement.profile
        return profile.values, *_opened(profile.low, profile.high, self.is_boolean)

    @property
    def mean(self) -> Sampled:
        """E[f(x)]."""
        return self._mean_of(self.values)

    def coefficient(self, subset: Iterable[int]) -> Sampled:
        """fhat(U) = E[f(x) chi_U(x)] for a set of coordinates counted from 0."""
        chosen = list(subset)
        subset_row(chosen, self.n)  # checks the coordinates
        points = uniform_points(self.n, self.samples, self.measurement.settings.seed)
        return self._mean_of(self.values * np.prod(points[:, sorted(set(chosen))], axis=1))

    def noise_stability(self, rho: float, pairs: int | None = None) -> Sampled:
        """Q_rho = E[f(x) f(x')], from fresh pairs of rho-correlated points, by default as many as ``samples``."""
        count = self.samples if pairs is None else pairs
        if count < 2:
            raise UsageError(f"pairs={count} must be at least 2")
        correlation = float(checked_rho(rho))
        seed = self.measurement.settings.seed
        first = uniform_points(self.n, count, seed, "boolean/pairs")
        rows = np.arange(count)
        kept = Stream(seed, "boolean/kept").uniforms(rows, 0 * rows, 0 * rows, self.n) < (1 + correlation) / 2
        second = np.where(kept, first, -first)
        return self._mean_of(self._evaluate(first) * self._evaluate(second))

    def disagreement(self, rho: float, pairs: int | None = None) -> Sampled:
        """R_rho = Pr[f(x) != f(x')] for rho-correlated x and x'."""
        self._need_signs("the disagreement")
        q = self.noise_stability(rho, pairs)
        return Sampled((1 - q.value) / 2, (1 - q.high) / 2, (1 - q.low) / 2, q.level, q.method)

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
        from jostle.boolean.analysis import sampled_lines

        return "\n".join(sampled_lines(self))

    @property
    def _level(self) -> float:
        return self.measurement.settings.level

    def _evaluate(self, points: NDArray[np.float64]) -> NDArray[np.float64]:
        return evaluated(self._evaluator, points, self._batch_size)

    def _mean_of(self, values: NDArray[np.float64]) -> Sampled:
        """The mean of independent values: Clopper-Pearson for signs, Student's t otherwise."""
        mean = float(values.mean())
        if self.is_boolean and np.all(np.abs(values) == 1):
            low, high = fixed.clopper_pearson((values == 1).sum(), len(values), self._level)
            return Sampled(mean, 2 * float(low) - 1, 2 * float(high) - 1, self._level, "Clopper-Pearson")
        low, high = fixed.student(mean, values.var(ddof=1), len(values), self._level)
        if np.ptp(values) <= _ROUNDING * np.abs(values).max():
            low, high = (
                np.asarray(-np.inf),
                np.asarray(np.inf),
            )  # a sample without spread does not tell how much values differ
        return Sampled(mean, float(low), float(high), self._level, "Student's t")

    def _need_signs(self, what: str) -> None:
        if not self.is_boolean:
            raise UsageError(f"{what} needs a function into -1 and 1; analyse its predictions with output='sign'")


def sample(
    evaluator: Evaluator, n: int, samples: int, level: float, seed: int, batch_size: int, progress: Progress
) -> SampledAnalysis:
    """Analyse f at ``samples`` uniform points and their neighbours: (n + 1) samples evaluations and a few checks."""
    points = torch.from_numpy(uniform_points(n, samples, seed))
    values = evaluated(evaluator, points.numpy(), batch_size)

    def measured(response: Response) -> Measurement:
        with evaluator.function.evaluating():
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

    measurement = measured(Flip("sign") if evaluator.saw_only_signs else _QuarterSquare())
    evaluator.check_bits()
    if measurement.settings.response != _QuarterSquare.name and not evaluator.saw_only_signs:
        measurement = measured(_QuarterSquare())  # a neighbour has shown that f is not into {-1, 1}
    return SampledAnalysis(n, evaluator.saw_only_signs, measurement, values, evaluator, batch_size)


def uniform_points(n: int, count: int, seed: int, name: str = "boolean/points") -> NDArray[np.float64]:
    """(count, n) independent uniform points of the cube; row i depends on the seed, the name and i alone."""
    rows = np.arange(count)
    uniforms = Stream(seed, name).uniforms(rows, 0 * rows, 0 * rows, n)
    return np.where(uniforms < 0.5, -1.0, 1.0)


def evaluated(evaluator: Evaluator, points: NDArray[np.float64], batch_size: int) -> NDArray[np.float64]:
    """f at given points: (count,)."""
    with evaluator.function.evaluating():
        parts = [evaluator(torch.from_numpy(points[i : i + batch_size])) for i in range(0, len(points), batch_size)]
    return torch.cat(parts).double().numpy()


def _opened(low: Any, high: Any, is_boolean: bool) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The ends of intervals for means of (1/4) (f(x) - f(x'))^2, from 0 to infinity where a sample has no spread.

    Student's interval has no width if all values of a sample are equal, as if that proved that all others are too.
    """
    ends = np.asarray(low, dtype=np.float64), np.asarray(high, dtype=np.float64)
    if is_boolean:
        return ends
    is_flat = ends[1] - ends[0] <= _ROUNDING * np.abs(ends[1])
    return np.where(is_flat, 0.0, ends[0]), np.where(is_flat, np.inf, ends[1])
