"""Measures of a network that learns chi_S: sampled with intervals at any d, exactly by enumeration at small d.

With f the logit, g = 1 where f > 0 and -1 elsewhere, and uniform x:

    test_accuracy            Pr[g(x) = chi_S(x)]
    test_loss                mean of log(1 + exp(-chi_S(x) f(x)))
    sensitivity              Pr[g(x) != g(x with bit i flipped)], averaged over all i: Eq. 1 of paper 1 divided by d
    relevant_sensitivity     the same averaged over i in S, and
    irrelevant_sensitivity   over the other i (0 if there are none); with p = |S|,
                             sensitivity = p / d relevant + (1 - p / d) irrelevant
    output_sensitivity       mean over i of E[(f(x) - f(x with bit i flipped))^2] / (4 Var f): the mean degree of f's
                             Fourier weight divided by d; shifting or scaling f does not change it; 0 if f is constant
    sign_coefficient         E[g(x) chi_S(x)], the Fourier coefficient of g at S, which is 2 test_accuracy - 1
    output_coefficient       E[f(x) chi_S(x)]
    output_correlation       the same divided by sqrt(E[f(x)^2]); 0 if f is 0

For g = chi_S both sensitivities are p / d and both coefficients 1. All looks are at the same points.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from jostle.base import checks
from jostle.base.errors import UsageError
from jostle.base.estimate import Estimate, Interval
from jostle.base.model import eval_mode
from jostle.boolean import cube, fourier, pointwise
from jostle.intervals import fixed
from jostle.studies.schema import IfGiven, Struct
from jostle_papers.p2403_06925.parity.task import SparseParity

LARGEST = 16  # bits up to which all 2^d inputs are tried
_SHARE = "Clopper-Pearson"
_AT_ONCE = 1000  # points of a pass: of 500 to 4000 all take the same time

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class ParityLook:
    """One look at a network.

    Arguments:
        estimates: by the names above, for the whole cube.
        influences: share of points at which the flip of bit i changes g, (d,).
        flips: number of points at which 0, 1, ... d bits change g when flipped, (d + 1,).
    """

    estimates: Mapping[str, Estimate]
    influences: tuple[float, ...]
    flips: tuple[int, ...]

    @property
    def values(self) -> dict[str, float]:
        """The numbers without their intervals."""
        return {name: estimate.value for name, estimate in self.estimates.items()}

    def record(self) -> "ParityLookRecord":
        """The look as a file holds it."""
        found = {name: EstimateRecord.of(estimate) for name, estimate in self.estimates.items()}
        return ParityLookRecord(estimates=found, influences=self.influences, flips=self.flips)


@dataclass(frozen=True, kw_only=True)
class EstimateRecord(Struct):
    """A number and the ends of its interval; None if it has none."""

    value: float
    low: IfGiven[float | None] = None
    high: IfGiven[float | None] = None

    @classmethod
    def of(cls, estimate: Estimate) -> "EstimateRecord":
        """The record of an estimate."""
        low, high = (end if math.isfinite(end) else None for end in (estimate.low, estimate.high))
        return cls(value=estimate.value, low=low, high=high)


@dataclass(frozen=True, kw_only=True)
class ParityLookRecord(Struct):
    """A ``ParityLook`` as a file holds it."""

    estimates: dict[str, EstimateRecord]
    influences: tuple[float, ...]
    flips: tuple[int, ...]


class ParityObserver:
    """Looks at networks, always at the same random points.

    Arguments:
        task: what the networks learn.
        tests: number of points for accuracy, loss and coefficients.
        points: number of these points at which every bit is flipped: d + 1 passes each.
        seed: of the points.
        level: of the intervals, each by itself.
    """

    def __init__(
        self, task: SparseParity, *, tests: int = 2000, points: int = 200, seed: int = 0, level: float = 0.95
    ) -> None:
        checks.sizes(tests=tests, points=points)
        if points > tests:
            raise UsageError(f"points={points} must be at most tests={tests}")
        self._task, self._points, self._level = task, points, checks.level(level)
        sample = task.sample(tests, seed=seed, split="test")
        self._inputs, self._labels = sample.inputs, 2.0 * sample.labels.numpy() - 1
        flip = 1 - 2 * torch.eye(task.num_bits, dtype=self._inputs.dtype)
        self._flipped = (self._inputs[:points, None, :] * flip).flatten(0, 1)  # (points * d, d)

    @torch.no_grad()
    def look(self, network: nn.Module, /) -> ParityLook:
        """All measures of a network from bits to a logit, (batch, d) -> (batch,) or (batch, 1)."""
        with eval_mode(network):
            outputs = _outputs(network, self._inputs)
            flipped = _outputs(network, self._flipped).reshape(self._points, -1)  # (points, d)
        changes = (flipped > 0) != (outputs[: self._points, None] > 0)
        estimates = self._accuracies(outputs) | self._sensitivities(changes)
        spread = float(outputs.var())
        squares = float(np.square(flipped - outputs[: self._points, None]).mean()) / 4
        estimates["output_sensitivity"] = self._alone(squares / spread if spread > 0 else 0.0)
        flips = np.bincount(changes.sum(axis=1), minlength=self._task.num_bits + 1)
        return ParityLook(estimates, tuple(changes.mean(axis=0).tolist()), tuple(flips.tolist()))

    def _accuracies(self, outputs: Floats) -> dict[str, Estimate]:
        agreement = outputs * self._labels
        right, count = int(((outputs > 0) == (self._labels > 0)).sum()), len(outputs)
        low, high = (float(end) for end in fixed.clopper_pearson(right, count, self._level))
        size = math.sqrt(float(np.square(outputs).mean()))
        coefficient = self._mean(agreement)
        return {
            "test_accuracy": self._estimate(right / count, low, high, _SHARE),
            "test_loss": self._mean(_losses(agreement)),
            "sign_coefficient": self._estimate(2 * right / count - 1, 2 * low - 1, 2 * high - 1, _SHARE),
            "output_coefficient": coefficient,
            "output_correlation": self._alone(coefficient.value / size if size > 0 else 0.0),
        }

    def _sensitivities(self, changes: NDArray[np.bool_]) -> dict[str, Estimate]:
        """Means over points of numbers in [0, 1], with Gaffke's interval."""
        relevant = list(self._task.coordinates)
        irrelevant = [bit for bit in range(self._task.num_bits) if bit not in relevant]
        return {
            "sensitivity": self._bounded(changes.mean(axis=1)),
            "relevant_sensitivity": self._bounded(changes[:, relevant].mean(axis=1)),
            "irrelevant_sensitivity": self._bounded(changes[:, irrelevant].mean(axis=1))
            if irrelevant
            else self._alone(0),
        }

    def _bounded(self, values: Floats) -> Estimate:
        low, high = fixed.bounded_mean(*fixed.histogram(values), self._level)
        return self._estimate(float(values.mean()), low, high, "Gaffke")

    def _mean(self, values: Floats) -> Estimate:
        mean, count = float(values.mean()), len(values)
        low, high = fixed.student(mean, values.var(ddof=1) if count > 1 else 0.0, count, self._level)
        return self._estimate(mean, float(low), float(high), "Student")

    def _alone(self, value: float) -> Estimate:
        """A number without an interval."""
        return self._estimate(value, -math.inf, math.inf, "none")

    def _estimate(self, value: float, low: float, high: float, method: str) -> Estimate:
        return Estimate(value, Interval(low, high, self._level, "population", method))


@torch.no_grad()
def enumerate_measures(network: nn.Module, task: SparseParity) -> dict[str, float]:
    """All measures exactly, from all 2^d inputs; d at most 16.

    >>> parity = SparseParity(5, (0, 3))
    >>> found = enumerate_measures(torch.nn.Sequential(_Monomial(parity)), parity)
    >>> found["sensitivity"], found["output_coefficient"], found["test_accuracy"]
    (0.4, 1.0, 1.0)
    """
    d = task.num_bits
    if d > LARGEST:
        raise UsageError(f"num_bits={d} is too many to try all inputs; at most {LARGEST}, or a ParityObserver")
    cubed = torch.from_numpy(cube.points(d)).to(torch.get_default_dtype())
    outputs, labels = _outputs(network, cubed), task.monomial(cubed).numpy().astype(np.float64)
    signs = np.where(outputs > 0, 1, -1).astype(np.int8)
    row = cube.subset_row(task.coordinates, d)
    influences, spread = pointwise.influences(signs), float(outputs.var())
    irrelevant = np.delete(influences, task.coordinates)
    coefficient, size = float(fourier.coefficients(outputs)[row]), math.sqrt(float(np.square(outputs).mean()))
    return {
        "test_accuracy": float((signs == labels).mean()),
        "test_loss": float(_losses(outputs * labels).mean()),
        "sensitivity": float(influences.mean()),
        "relevant_sensitivity": float(influences[list(task.coordinates)].mean()),
        "irrelevant_sensitivity": float(irrelevant.mean()) if len(irrelevant) else 0.0,
        "output_sensitivity": float(pointwise.influences(outputs).mean()) / spread if spread > 0 else 0.0,
        "sign_coefficient": float(fourier.coefficients(signs)[row]),
        "output_coefficient": coefficient,
        "output_correlation": coefficient / size if size > 0 else 0.0,
    }


class _Monomial(nn.Module):
    """chi_S itself."""

    def __init__(self, task: SparseParity) -> None:
        super().__init__()
        self.task = task

    def forward(self, bits: Tensor) -> Tensor:
        return self.task.monomial(bits)


def _outputs(network: nn.Module, inputs: Tensor) -> Floats:
    """Logits in float64, (count,), on the device and in the type of the network's weights."""
    like = next(network.parameters(), inputs)
    parts = [network(part.to(like.device, like.dtype)).reshape(-1) for part in torch.split(inputs, _AT_ONCE)]
    return torch.cat(parts).double().cpu().numpy()


def _losses(agreement: Floats) -> Floats:
    """log(1 + exp(-a)) of each, without overflow."""
    return functional.softplus(-torch.from_numpy(agreement)).numpy()
