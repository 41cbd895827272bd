"""The loop over draws of the weights: clean outputs once, then a few numbers from the outputs of every draw."""

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
from jostle.landscape.weights import WeightNoise, preserve
from jostle.training.randomness import own_randomness

Compare = Callable[[slice, Tensor, Tensor], list[Tensor]]
"""From the rows of a batch and its outputs before and after, both (batch, ...), to numbers of each input, (batch,)."""


@dataclass(frozen=True)
class WeightDraws:
    """Draws of the weights of a network, and how they are evaluated.

    Arguments:
        network: the model and its inputs.
        noise: how the weights are moved.
        draws: how many draws.
        at_once: how many draws are evaluated together, or None for the rule of ``Network.groups``.
        in_training: whether the moved network is in train mode. Then draws are evaluated one at a time, and dropout is
            a function of the seed and the draw.
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
        """How many inputs the model answers in all."""
        return len(self.network) * (self.draws + 1)

    def clean_outputs(self) -> list[Tensor]:
        """The outputs (batch, ...) of each batch, in eval mode, with the model's own weights."""
        with preserve(self.network.model):
            outputs = [self.network.clean_outputs(rows) for rows in self.network.batches()]
        bad = sum(int((~part.isfinite().reshape(len(part), -1).all(dim=1)).sum()) for part in outputs)
        if bad:
            raise FailureError(
                f"the model answers {bad} of {len(self.network)} inputs with NaN or infinity before its weights are "
                "moved; mend the model or leave these inputs out"
            )
        return outputs

    def mean_changes(self, clean: list[Tensor], compare: Compare, progress: progress_bar.Progress = False) -> Floats:
        """The mean over the inputs of each number of ``compare``, for each draw: (numbers, draws)."""
        with preserve(self.network.model):
            groups = self.network.groups(self.noise, self.draws, 1 if self.in_training else self.at_once)
        found: list[list[float]] = []
        total = 0.0
        report = progress_bar.reporter(progress, "weights")
        try:
            for group in groups:
                with preserve(self.network.model, training=self.in_training), self._dropout(group[0]):
                    found += self._means_of(group, clean, compare)
                total += math.fsum(numbers[0] for numbers in found[-len(group) :])
                passes = len(self.network) * (len(found) + 1)
                report(progress_bar.State(len(found) / self.draws, passes, f"{total / len(found):.4g}"))
        finally:
            report.close()
        return np.array(found).T

    def _means_of(self, group: list[int], clean: list[Tensor], compare: Compare) -> list[list[float]]:
        """For each draw of a group, the mean over the inputs of each number of ``compare``."""
        numbers: list[list[list[Tensor]]] = [[] for _ in group]  # [draw][batch][number]
        for before, (rows, outputs) in zip(clean, self.network.moved_outputs(self.noise, group), strict=True):
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
