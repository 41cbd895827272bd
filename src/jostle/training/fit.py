"""The training loop: epochs in an order fixed by the seed, a checkpoint and a call after each of them."""

import contextlib
import hashlib
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import nn

from jostle.data import Dataset
from jostle.errors import FailureError, UsageError
from jostle.files import check_writable
from jostle.training import checkpoints, objectives
from jostle.training.evaluation import Evaluation, batch, evaluate
from jostle.training.recipe import Recipe, check_same


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
        losses: mean training loss after epoch 0, 1, 2, ...
        accuracies: training accuracy after epoch 0, 1, 2, ...
        stopped: ``target accuracy`` or ``max epochs``: what ended it.
    """

    losses: tuple[float, ...]
    accuracies: tuple[float, ...]
    stopped: str

    @property
    def epochs(self) -> int:
        """Epochs trained."""
        return len(self.losses) - 1


def fit(
    model: nn.Module,
    dataset: Dataset,
    *,
    optimizer: str = "adam",
    lr: float,
    momentum: float = 0.0,
    weight_decay: float = 0.0,
    batch_size: int = 100,
    max_epochs: int,
    target_accuracy: float | None = None,
    seed: int = 0,
    checkpoint: str | Path | None = None,
    on_epoch: Callable[[Epoch], None] | None = None,
    device: str | torch.device = "cpu",
) -> History:
    """Train ``model`` on ``dataset`` with cross-entropy (binary for a single logit); it ends in eval mode.

    The order of the examples and the randomness of dropout are functions of ``seed`` and the epoch, whatever the state
    of torch's global generator and whatever ``on_epoch`` does; that global state is left as it was.

    With ``checkpoint`` the state is written to that file after every epoch, before ``on_epoch`` is called. If the file
    exists, training goes on from it and ends with the same weights, bit for bit, as a run that was never interrupted
    (same machine, torch and number of threads). ``on_epoch`` is then called again for the epoch in the file, so across
    interruptions each epoch is reported at least once and the last one before an interruption perhaps twice.

    Arguments:
        model: from a batch of inputs to logits; moved to ``device``.
        dataset: inputs and labels.
        optimizer: ``adam``, ``adamw`` or ``sgd``.
        lr: learning rate, constant.
        momentum: for ``sgd`` only.
        weight_decay: as in torch: decoupled for ``adamw``, an L2 penalty for the others.
        batch_size: examples a step; the last batch of an epoch may be smaller.
        max_epochs: stop after so many epochs; may be raised to continue a finished run from its checkpoint.
        target_accuracy: stop as soon as the training accuracy is at least this, in (0, 1].
        seed: of the order of the examples and of dropout; not of the initial weights, which the model brings.
        checkpoint: a file to resume from and to write to.
        on_epoch: called with an ``Epoch`` before training and after every epoch.
        device: where to train.
    """
    recipe = Recipe(optimizer, lr, momentum, weight_decay, batch_size, seed)
    _check_stopping(max_epochs, target_accuracy)
    device = _move(model, device)
    stepper = recipe.build_optimizer(model)
    settings = {} if checkpoint is None else recipe.describe(model, dataset)
    record: list[Evaluation] = []
    if checkpoint is not None:
        check_writable(checkpoint)
        if Path(checkpoint).exists():
            saved = checkpoints.load(checkpoint)
            check_same(saved.settings, settings, checkpoint)
            _check_not_past(saved.record, max_epochs, target_accuracy, checkpoint)
            checkpoints.restore(saved, model, stepper, checkpoint)
            record = saved.record
    model.eval()
    for epoch in range(max(len(record) - 1, 0), max_epochs + 1):
        if epoch == len(record):  # Otherwise a resumed run, which only repeats the call for its last epoch.
            record.append(_run_epoch(epoch, model, dataset, stepper, recipe, device))
            if checkpoint is not None:
                checkpoints.save(checkpoint, model, stepper, record, settings)
        if on_epoch is not None:
            on_epoch(Epoch(epoch, record[-1].loss, record[-1].accuracy, model))
        if _reached(record[-1], target_accuracy):
            break
    model.eval()  # The last call may have changed it.
    stopped = "target accuracy" if _reached(record[-1], target_accuracy) else "max epochs"
    return History(tuple(e.loss for e in record), tuple(e.accuracy for e in record), stopped)


def _run_epoch(
    epoch: int, model: nn.Module, dataset: Dataset, stepper: torch.optim.Optimizer, recipe: Recipe, device: torch.device
) -> Evaluation:
    """One pass over the data (none for epoch 0), then loss and accuracy; the model ends in eval mode."""
    with _own_randomness(recipe.seed, epoch, device):
        if epoch > 0:
            order = torch.randperm(len(dataset), generator=_order_generator(recipe.seed, epoch))
            model.train()
            try:
                for start in range(0, len(order), recipe.batch_size):
                    inputs, labels = batch(model, dataset, order[start : start + recipe.batch_size])
                    stepper.zero_grad()
                    torch.autograd.backward(objectives.losses(model(inputs), labels).mean())
                    stepper.step()
            finally:
                model.eval()
        evaluation = evaluate(model, dataset)
    if not math.isfinite(evaluation.loss):
        raise FailureError(
            f"training diverged: the loss is {evaluation.loss} after epoch {epoch}; lower lr={recipe.lr}"
        )
    return evaluation


def _order_generator(seed: int, epoch: int) -> torch.Generator:
    return torch.Generator().manual_seed(_derive("order", seed, epoch))


@contextlib.contextmanager
def _own_randomness(seed: int, epoch: int, device: torch.device) -> Iterator[None]:
    """Inside, torch's global generators are a function of seed and epoch; afterwards they are as before."""
    devices = [device] if device.type == "cuda" else []
    with torch.random.fork_rng(devices=devices):
        # Not torch.manual_seed, which would also reseed devices that are not restored.
        torch.default_generator.manual_seed(_derive("dropout", seed, epoch))
        if devices:
            with torch.cuda.device(device):
                torch.cuda.manual_seed(_derive("dropout", seed, epoch))
        yield


def _derive(purpose: str, seed: int, epoch: int) -> int:
    # Hashed, so that neighbouring seeds and epochs share no stream, as seed + epoch would.
    digest = hashlib.blake2b(f"jostle.training {purpose} {seed} {epoch}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") >> 1  # torch takes 63 bits


def _reached(evaluation: Evaluation, target_accuracy: float | None) -> bool:
    return target_accuracy is not None and evaluation.accuracy >= target_accuracy


def _check_stopping(max_epochs: int, target_accuracy: float | None) -> None:
    if not isinstance(max_epochs, int) or max_epochs < 1:
        raise UsageError(f"max_epochs must be a whole number of at least 1, got {max_epochs!r}")
    if target_accuracy is not None and not 0 < target_accuracy <= 1:
        raise UsageError(f"target_accuracy must lie in (0, 1], got {target_accuracy}; 99 % is 0.99")


def _check_not_past(
    record: list[Evaluation], max_epochs: int, target_accuracy: float | None, source: str | Path
) -> None:
    """Raise if a run with these limits would have stopped before the checkpoint was written."""
    done = len(record) - 1
    if done > max_epochs:
        raise UsageError(f"{source} has {done} epochs already, more than max_epochs={max_epochs}; use another file")
    for epoch, evaluation in enumerate(record[:-1]):
        if _reached(evaluation, target_accuracy):
            raise UsageError(
                f"{source} has {done} epochs, but target_accuracy={target_accuracy} was reached at epoch {epoch}; "
                "use another file"
            )


def _move(model: nn.Module, device: str | torch.device) -> torch.device:
    """Move ``model`` to ``device``; a device that is not there is one clear line."""
    try:
        device = torch.device(device)
        model.to(device)
    except (RuntimeError, AssertionError) as error:
        raise UsageError(f"device={str(device)!r} cannot be used: {str(error).splitlines()[0]}") from None
    return device
