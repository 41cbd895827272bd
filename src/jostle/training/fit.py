"""A training run, from the first epoch to the last, with a checkpoint after each and a call at each evaluation."""

import contextlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

from jostle.base import checks, specs
from jostle.base.errors import UsageError
from jostle.base.files import check_writable
from jostle.base.model import on_device
from jostle.base.progress import Progress, Reporter, State, reporter
from jostle.data import Dataset
from jostle.training import checkpoints
from jostle.training.evaluation import Evaluation
from jostle.training.history import Epoch, History
from jostle.training.loop import Loop
from jostle.training.objective import Augment, Penalty, describe_term
from jostle.training.recipe import Recipe, check_same
from jostle.training.schedules import SCHEDULES, Schedule


def fit(
    model: nn.Module,
    dataset: Dataset,
    *,
    optimizer: str = "adam",
    lr: float,
    schedule: Schedule | str = "constant",
    momentum: float = 0.0,
    weight_decay: float = 0.0,
    clip: float | None = None,
    batch_size: int = 100,
    precision: str = "float32",
    penalty: Penalty | None = None,
    augment: Augment | None = None,
    max_epochs: int,
    target_accuracy: float | None = None,
    evaluate_every: int = 1,
    seed: int = 0,
    checkpoint: str | Path | None = None,
    on_epoch: Callable[[Epoch], object] | None = None,
    progress: Progress = False,
    name: str = "model",
    device: str | torch.device = "cpu",
) -> History:
    """Train ``model`` on ``dataset`` with cross-entropy (binary for a single logit); it ends in eval mode.

    The order of the examples and the randomness of dropout are functions of ``seed`` and the epoch. They do not depend
    on torch's global generator or on what ``on_epoch`` does, and the global generator is left as it was.

    With ``checkpoint`` the state is written to that file after every epoch, before ``on_epoch`` is called. If the file
    exists, training continues from it and ends with the same weights, bit for bit, as a run without interruption (same
    machine, torch and number of threads). ``on_epoch`` is then called again for the epoch in the file, if it was
    evaluated: over all interruptions each evaluation is reported at least once, the last one perhaps twice.

    Arguments:
        model: from a batch of inputs to logits; moved to ``device``.
        dataset: inputs and labels.
        optimizer: ``adam``, ``adamw`` or ``sgd``.
        lr: learning rate, before the schedule.
        schedule: the factor of the learning rate in each epoch: ``"constant"``, ``"step:every=8,factor=0.5"``,
            ``"cosine:epochs=50"``, each with ``warmup=`` epochs if wanted, or an object of ``jostle.training``.
        momentum: for ``sgd`` only.
        weight_decay: as in torch: decoupled for ``adamw``, an L2 penalty for the others.
        clip: scale the gradient of a step down to this Euclidean norm if it is larger; None for no clipping.
        batch_size: examples a step; the last batch of an epoch may be smaller.
        precision: ``float32`` computes in the type of the weights; ``bfloat16`` and ``float16`` (on cuda only) by
            autocast. Weights and evaluations stay in the type of the weights.
        penalty: added to the loss of every step: a function of (model, inputs, clean=logits), for example a
            ``jostle.SensitivityPenalty``. Evaluations and ``target_accuracy`` are without it.
        augment: changes every batch first: a function from (inputs, labels) to (inputs, labels), for example a
            ``jostle.NoiseAugmentation``, also of embeddings of texts. With ``checkpoint``, penalty and augment need a
            method ``describe()``, and no state.
        max_epochs: stop after this many epochs; may be raised to continue a finished run from its checkpoint.
        target_accuracy: stop at the first evaluation with a training accuracy of at least this, in (0, 1].
        evaluate_every: epochs from one evaluation to the next; there is always one before training and one at the end.
        seed: of the order of the examples and of dropout; not of the initial weights, which the model brings.
        checkpoint: a file to resume from and to write to.
        on_epoch: called with an ``Epoch`` at every evaluation. If it returns a mapping of names to numbers or texts,
            the line of ``progress`` shows them.
        progress: true for a bar on a terminal and plain lines elsewhere, or a function of ``progress.State``.
        name: of the model in the line of ``progress``.
        device: where to train.

    Raises:
        UsageError: an argument is wrong, in one line.
        FailureError: training diverged, or a checkpoint could not be written.
    """
    chosen = specs.build(SCHEDULES, schedule, "schedule", Schedule)
    is_written = checkpoint is not None
    terms = describe_term("penalty", penalty, is_written), describe_term("augment", augment, is_written)
    recipe = Recipe(optimizer, lr, chosen, momentum, weight_decay, clip, batch_size, precision, seed, *terms)
    limits = Limits(max_epochs, target_accuracy, evaluate_every)
    recipe.check_length(max_epochs)
    loop = Loop(model, dataset, recipe, on_device(device, model), penalty, augment)
    settings: dict[str, Any] = {}
    done, record = -1, dict[int, Evaluation]()  # -1: the initial weights are not evaluated yet
    if checkpoint is not None:
        settings = recipe.describe(model, dataset) | {"evaluate_every": evaluate_every}
        done, record = _resume(checkpoint, loop, limits, settings)
    model.eval()
    with contextlib.closing(reporter(progress, f"train {name}")) as report:
        line = _ProgressLine(report, len(dataset), max_epochs)
        for epoch in range(max(done, 0), max_epochs + 1):
            if epoch > max(done, 0):
                loop.train(epoch, line.show_examples)
            if limits.is_due(epoch) and epoch not in record:
                record[epoch] = loop.evaluate(epoch)
            if checkpoint is not None and epoch > done:
                state = loop.model, loop.optimizer, loop.scaler
                checkpoints.save(checkpoint, *state, epochs=epoch, record=record, settings=settings)
            if limits.is_due(epoch):
                line.show_evaluation(epoch, record[epoch], _call(on_epoch, epoch, record[epoch], model))
                if limits.is_reached(record[epoch]):
                    break
    model.eval()  # The last call may have changed it.
    return _history(record, limits)


def _resume(
    path: str | Path, loop: Loop, limits: "Limits", settings: dict[str, Any]
) -> tuple[int, dict[int, Evaluation]]:
    """Restore the state in ``path``; returns the epochs done and their record, or (-1, {}) if there is no file."""
    check_writable(path)
    if not Path(path).exists():
        return -1, {}
    saved = checkpoints.load(path)
    check_same(saved.settings, settings, path)
    # A run that ended at a smaller max_epochs was evaluated there; a run that continues is not.
    record = {epoch: evaluation for epoch, evaluation in saved.record.items() if limits.is_due(epoch)}
    limits.check_not_past(saved.epochs, record, path)
    checkpoints.restore(saved, loop.model, loop.optimizer, loop.scaler, path)
    return saved.epochs, record


def _call(on_epoch: Callable[[Epoch], object] | None, epoch: int, evaluation: Evaluation, model: nn.Module) -> object:
    return None if on_epoch is None else on_epoch(Epoch(epoch, evaluation.loss, evaluation.accuracy, model))


def _history(record: dict[int, Evaluation], limits: "Limits") -> History:
    evaluations = list(record.values())
    losses, accuracies = (tuple(getattr(each, key) for each in evaluations) for key in ("loss", "accuracy"))
    stopped = "target accuracy" if limits.is_reached(evaluations[-1]) else "max epochs"
    return History(tuple(record), losses, accuracies, stopped)


@dataclass(frozen=True)
class Limits:
    """When training is evaluated and when it ends: arguments of ``fit``."""

    max_epochs: int
    target_accuracy: float | None
    evaluate_every: int

    def __post_init__(self) -> None:
        checks.sizes(max_epochs=self.max_epochs, evaluate_every=self.evaluate_every)
        if self.target_accuracy is not None:
            checks.number("target_accuracy", self.target_accuracy, above=0, most=1, hint="; 99 % is 0.99")

    def is_due(self, epoch: int) -> bool:
        """Whether the model is evaluated after ``epoch`` epochs.

        >>> [epoch for epoch in range(8) if Limits(7, None, evaluate_every=3).is_due(epoch)]
        [0, 3, 6, 7]
        """
        return epoch % self.evaluate_every == 0 or epoch == self.max_epochs

    def is_reached(self, evaluation: Evaluation) -> bool:
        """Whether the accuracy is high enough to stop."""
        return self.target_accuracy is not None and evaluation.accuracy >= self.target_accuracy

    def check_not_past(self, epochs: int, record: Mapping[int, Evaluation], source: str | Path) -> None:
        """Raise if a run with these limits would have stopped before it had done ``epochs`` epochs."""
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


class _ProgressLine:
    """The line that a person sees while a model trains; between evaluations it repeats the last evaluation.

    Arguments:
        report: shows a state.
        examples: of an epoch.
        max_epochs: of the run.
    """

    def __init__(self, report: Reporter, examples: int, max_epochs: int) -> None:
        self._report, self._examples, self._max_epochs = report, examples, max_epochs
        self._summary = ""

    def show_evaluation(self, epoch: int, evaluation: Evaluation, returned: object) -> None:
        """Show an evaluation after ``epoch`` epochs, with the value that ``on_epoch`` returned."""
        self._summary = summary(evaluation, returned)
        self.show_examples(epoch * self._examples)

    def show_examples(self, examples: int) -> None:
        """Show that ``examples`` examples were trained on, over all epochs."""
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
