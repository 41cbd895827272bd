"""When training is evaluated and when it ends."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from jostle.errors import UsageError
from jostle.training.evaluation import Evaluation


@dataclass(frozen=True)
class Limits:
    """The arguments of ``fit`` that end it; see there."""

    max_epochs: int
    target_accuracy: float | None
    evaluate_every: int

    def __post_init__(self) -> None:
        for name, value in (("max_epochs", self.max_epochs), ("evaluate_every", self.evaluate_every)):
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise UsageError(f"{name} must be a whole number of at least 1, got {value!r}")
        if self.target_accuracy is not None and not 0 < self.target_accuracy <= 1:
            raise UsageError(f"target_accuracy must lie in (0, 1], got {self.target_accuracy}; 99 % is 0.99")

    def is_due(self, epoch: int) -> bool:
        """Whether there is an evaluation after so many epochs.

        >>> [epoch for epoch in range(8) if Limits(7, None, evaluate_every=3).is_due(epoch)]
        [0, 3, 6, 7]
        """
        return epoch % self.evaluate_every == 0 or epoch == self.max_epochs

    def is_reached(self, evaluation: Evaluation) -> bool:
        """Whether the accuracy is high enough to stop."""
        return self.target_accuracy is not None and evaluation.accuracy >= self.target_accuracy

    def check_not_past(self, epochs: int, record: Mapping[int, Evaluation], source: str | Path) -> None:
        """Raise if a run with these limits would have stopped before it had done so many ``epochs``."""
        if epochs > self.max_epochs:
            raise UsageError(
                f"{source} has {epochs} epochs already, more than max_epochs={self.max_epochs}; use another file"
            )
        for epoch, evaluation in record.items():
            if epoch < epochs and self.is_reached(evaluation):
                raise UsageError(
                    f"{source} has {epochs} epochs, but target_accuracy={self.target_accuracy} was reached at epoch "
                    f"{epoch}; use another file"
                )
