"""The loop over draws: clean outputs once, then the outputs of every draw, reduced to a few numbers each."""

import contextlib
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from torch import Tensor

from jostle.base import progress as progress_bar
from jostle.base.errors import FailureError, UsageError
from jostle.landscape.averages import Floats
from jostle.landscape.network import Network
from jostle.landscape.weights import WeightNoise, kept
from jostle.training.randomness import own_randomness

Compare = Callable[[slice, Tensor, Tensor], list[Tensor]]
"""Rows, outputs before and outputs after, both (batch, ...), to numbers of each input, each (batch,)."""


@dataclass(frozen=True)
class Drawing:
    """Which draws of which weights are evaluated how.

    Arguments:
        network: the model and its inputs.
        noise: what moves its weights.
        draws: how many.
        at_once: how many are evaluated together, or None for the rule of ``Network.groups``.
        in_training: whether the moved network is in train mode; one draw at a time, with dropout by seed and draw.
        seed: of that dropout.
    """

    network: Network
    noise: WeightNoise
    draws: int
    at_once: int | None = None
    in_training: bool = False
    seed: int = 0

    def __post_init__(self) -> None:
        if self.in_training and self.at_once not in (None, 1):
            raise UsageError(
                f"draws_at_once={self.at_once} is not possible in train mode, as in protocol='released'; leave it out"
            )

    @property
    def passes(self) -> int:
        """Inputs that the model answers."""
        return len(self.network) * (self.draws + 1)

    def clean(self) -> list[Tensor]:
        """The outputs (batch, ...) of each batch, in eval mode, with the weights as they are."""
        with kept(self.network.model):
            outputs = [self.network.answer(rows) for rows in self.network.batches()]
        bad = sum(int((~part.isfinite().reshape(len(part), -1).all(dim=1)).sum()) for part in outputs)
        if bad:
            raise FailureError(
                f"the model answers {bad} of {len(self.network)} inputs with NaN or infinity before its weights are "
                "moved; mend the model or leave these inputs out"
            )
        return outputs

    def measured(self, clean: list[Tensor], compare: Compare, progress: progress_bar.Progress = False) -> Floats:
        """The mean over the inputs of each number of ``compare``, for each draw: (numbers, draws)."""
        with kept(self.network.model):
            groups = self.network.groups(self.noise, self.draws, 1 if self.in_training else self.at_once)
        found: list[list[float]] = []
        total = 0.0
        report = progress_bar.reporter(progress, "weights")
        try:
            for group in groups:
                with kept(self.network.model, training=self.in_training), self._dropout(group[0]):
                    found += self._group(group, clean, compare)
                total += math.fsum(numbers[0] for numbers in found[-len(group) :])
                passes = len(self.network) * (len(found) + 1)
                report(progress_bar.State(len(found) / self.draws, passes, f"{total / len(found):.4g}"))
        finally:
            report.close()
        return np.array(found).T

    def _group(self, group: list[int], clean: list[Tensor], compare: Compare) -> list[list[float]]:
        """The means of each draw of a group."""
        numbers: list[list[list[Tensor]]] = [[] for _ in group]  # [draw][batch][number]
        for before, (rows, outputs) in zip(clean, self.network.answers(self.noise, group), strict=True):
            for place, parts in enumerate(numbers):
                parts.append(compare(rows, before, outputs[:, place]))
        return [[_mean(list(part)) for part in zip(*parts, strict=True)] for parts in numbers]

    @contextlib.contextmanager
    def _dropout(self, draw: int) -> Iterator[None]:
        if self.in_training:
            with own_randomness("landscape dropout", self.seed, draw, self.network.device):
                yield
        else:
            yield


def _mean(parts: list[Tensor]) -> float:
    """The mean of all numbers, exactly rounded, so that their order does not matter."""
    return math.fsum(number for part in parts for number in part.tolist()) / sum(len(part) for part in parts)
