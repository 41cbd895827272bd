"""What is known of a training run: at one epoch, and over all of them."""

from dataclasses import dataclass

from torch import nn


@dataclass(frozen=True)
class Epoch:
    """Where training stands after ``number`` epochs; 0 is before training.

    Arguments:
        number: epochs done.
        loss: mean over the whole training set, in eval mode, after the epoch.
        accuracy: likewise.
        model: the model itself, in eval mode, so that a callback can measure it.
    """

    number: int
    loss: float
    accuracy: float
    model: nn.Module


@dataclass(frozen=True)
class History:
    """How training went.

    Arguments:
        evaluated: after how many epochs loss and accuracy were taken: 0, ``evaluate_every``, ..., the last.
        losses: mean training loss at each of these.
        accuracies: training accuracy at each of these.
        stopped: ``target accuracy`` or ``max epochs``: what ended it.
    """

    evaluated: tuple[int, ...]
    losses: tuple[float, ...]
    accuracies: tuple[float, ...]
    stopped: str

    @property
    def epochs(self) -> int:
        """Epochs trained."""
        return self.evaluated[-1]
