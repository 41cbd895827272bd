"""``SensitivityMetric``: token sensitivity as a metric of torchmetrics, summed over batches and processes.

This module needs torchmetrics (``pip install "jostle[metrics]"``); ``jostle.probe.SensitivityMetric`` imports it.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torchmetrics import Metric

from jostle.base import checks
from jostle.base.estimate import Estimate, Interval
from jostle.base.randomness import Stream
from jostle.estimates.measure import run_request
from jostle.estimates.request import Request
from jostle.intervals import fixed
from jostle.perturbations import Perturbation
from jostle.responses import Response
from jostle.sampling import Grid
from jostle.tokens import TokenView

_STATES = ("total", "squares", "count")


class SensitivityMetric(Metric):
    """The token sensitivity of a model over the batches of an evaluation loop.

        S = sum over inputs x of s(x) / N,   s(x) = mean over tokens tau of x and draws of R(f(x), f(x jostled at tau))

    The states are three sums, over inputs, of s(x), s(x)^2 and 1. So the value is that of all inputs together, however
    they are cut into batches and spread over processes, also unevenly. ``compute()`` is the value; ``estimate()`` has
    the interval too, for the population that the inputs came from.

    >>> import torch, jostle
    >>> metric = SensitivityMetric(tokens="coordinates", perturbation="sign-flip")
    >>> for batch in (torch.ones(3, 4), torch.ones(2, 4)):
    ...     metric.update(lambda x: x[:, 0], batch)
    >>> float(metric.compute())
    0.25

    Arguments:
        tokens, perturbation, response, level, batch_size: as for ``jostle.measure``.
        draws: of each token of each input; one if the perturbation has no randomness.
        seed: of the noise, which also depends on the process and on how many batches it has seen.
        options: those of ``torchmetrics.Metric``, such as ``sync_on_compute``.
    """

    is_differentiable = False
    higher_is_better = False
    full_state_update = False

    total: Tensor
    squares: Tensor
    count: Tensor

    def __init__(
        self,
        *,
        tokens: TokenView | str,
        perturbation: Perturbation | str,
        response: Response | str = "flip",
        draws: int = 1,
        level: float = 0.95,
        seed: int = 0,
        batch_size: int | None = None,
        **options: Any,
    ) -> None:
        super().__init__(**options)
        self._request = Request.build(
            tokens=tokens,
            perturbation=perturbation,
            response=response,
            plan=Grid(checks.whole("draws", draws, least=1)),
            level=level,
            seed=seed,
            batch_size=batch_size,
        )
        for name in _STATES:
            self.add_state(name, torch.zeros((), dtype=torch.float64), dist_reduce_fx="sum")

    def update(self, model: Callable[..., Any], inputs: Any) -> None:
        """Jostle every token of these inputs, and add what came of it.

        Arguments:
            model: an ``nn.Module`` in any mode, or any callable from a batch to outputs.
            inputs: what ``jostle.measure`` takes; usually a batch (N, ...).
        """
        request = replace(self._request, seed=self._seed())
        found = run_request(request, {"model": model}, inputs)["model"].per_input
        means = torch.from_numpy(found[np.isfinite(found)]).to(self.total)
        self.total += means.sum()
        self.squares += means.square().sum()
        self.count += len(means)

    def compute(self) -> Tensor:
        """The sensitivity over all inputs so far; NaN before the first."""
        return (self.total / self.count).float()

    def estimate(self) -> Estimate:
        """The sensitivity with its interval for the population: Student's t over inputs, asymptotic.

        Flips that never, or always, happen have no spread; their interval is Clopper and Pearson's over inputs.
        """
        with self.sync_context(should_sync=self._to_sync, should_unsync=True):
            total, squares, count = (float(getattr(self, name)) for name in _STATES)
        level, is_flip = self._request.level, self._request.response.is_binary
        value = total / count if count else float("nan")
        spread = max(squares - count * value**2, 0.0) / max(count - 1, 1)
        if is_flip and spread <= 1e-12 and value in (0.0, 1.0):
            ends, method = fixed.clopper_pearson(total, count, level), "Clopper-Pearson over inputs"
        else:
            ends, method = fixed.student(value, spread, count, level), "Student's t over inputs"
        low, high = (float(end) for end in ends)
        low, high = (max(low, 0.0), min(high, 1.0)) if is_flip else (low, high)
        return Estimate(value, Interval(low, high, level, "population", method))

    def _seed(self) -> int:
        """A seed of its own for each batch of each process, so that no two share their noise."""
        is_parallel = torch.distributed.is_available() and torch.distributed.is_initialized()
        rank = torch.distributed.get_rank() if is_parallel else 0
        if self._request.perturbation.is_deterministic:
            return self._request.seed
        numbers = Stream(self._request.seed, "probe/metric").uniforms(
            np.asarray([rank]), np.asarray([self.update_count]), np.asarray([0]), 1
        )
        return int(numbers[0, 0] * 2**31)
