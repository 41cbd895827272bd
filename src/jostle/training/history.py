"""The record of a training run: at one epoch, and over all epochs."""

from dataclasses import dataclass

from torch import nn


@dataclass(frozen=True)
class Epoch:
    """The state of training after ``number`` epochs; 0 is before training.

    Arguments:
        number: epochs done.
        loss: mean over the whole training set, in eval mode, after the epoch.
        accuracy: on the same examples.
        model: the model itself, in eval mode, so that a callback can measure it.
    """

    number: int
    loss: float
    accuracy: float
    model: nn.Module


@dataclass(frozen=True)
class History:
    """Loss and accuracy at all evaluations of a training run.

    Arguments:
        evaluated: epochs done at each evaluation: 0, ``evaluate_every``, ..., the last.
        losses: mean training loss at each evaluation.
        accuracies: training accuracy at each evaluation.
        stopped: ``target accuracy`` or ``max epochs``, the reason of the end.
    """

    evaluated: tuple[int, ...]
    losses: tuple[float, ...]
    accuracies: tuple[float, ...]
    stopped: str

    @property
    def epochs(self) -> int:
        """Epochs trained."""
        return self.evaluated[-1]
