"""What a person sees while a model trains: one line with the loss, the accuracy and what a callback returned."""

from collections.abc import Mapping

from jostle.progress import Reporter, State
from jostle.training.evaluation import Evaluation


class Line:
    """Tells a reporter how far training is; between evaluations it repeats the last one.

    Arguments:
        report: shows a state.
        examples: in an epoch.
        max_epochs: of the run.
    """

    def __init__(self, report: Reporter, examples: int, max_epochs: int) -> None:
        self._report, self._examples, self._max_epochs = report, examples, max_epochs
        self._summary = ""

    def evaluated(self, epoch: int, evaluation: Evaluation, returned: object) -> None:
        """After ``epoch`` epochs the model was evaluated, and ``on_epoch`` returned something."""
        self._summary = summary(evaluation, returned)
        self.trained(epoch * self._examples)

    def trained(self, examples: int) -> None:
        """So many examples were trained on, over all epochs."""
        self._report(State(examples / (self._examples * self._max_epochs), examples, self._summary, "examples"))


def summary(evaluation: Evaluation, returned: object) -> str:
    """Loss and accuracy, then the names and values of ``returned`` if it is a mapping.

    >>> summary(Evaluation(0.25, 0.9), {"sensitivity": 0.01234})
    'loss 0.250  accuracy 90.0%  sensitivity 0.0123'
    """
    parts = [f"loss {evaluation.loss:.3f}", f"accuracy {evaluation.accuracy:.1%}"]
    if isinstance(returned, Mapping):
        parts += [f"{name} {_shown(value)}" for name, value in returned.items()]
    return "  ".join(parts)


def _shown(value: object) -> str:
    return f"{value:.4f}" if isinstance(value, float) else str(value)
