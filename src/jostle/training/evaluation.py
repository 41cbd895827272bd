"""What training minimises, and what counts as the prediction, for models of one logit and of several.

Loss and accuracy of a model on a dataset.
"""

import contextlib
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from jostle.base.errors import UsageError
from jostle.data import Dataset
from jostle.training import evaluation as objectives
from jostle.training.batches import Batches

Penalty = Callable[..., Tensor]  # penalty(model, inputs, clean=logits): a scalar
Augment = Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]  # inputs, labels = augment(inputs, labels)


def augmented(
    augment: Augment, model: nn.Module, inputs: Tensor, labels: Tensor
) -> tuple[Tensor, Tensor, contextlib.AbstractContextManager[None]]:
    """Inputs and labels to train on, and what to be within while the model answers: embeddings get their noise there.

    An augmentation whose attribute ``is_inside`` is true is asked for ``inside(model, inputs)``, as
    ``jostle.NoiseAugmentation`` of embeddings is.
    """
    if getattr(augment, "is_inside", False):
        return inputs, labels, augment.inside(model, inputs)  # type: ignore[attr-defined]  # only those have it
    return *augment(inputs, labels), contextlib.nullcontext()


def losses(logits: Tensor, labels: Tensor) -> Tensor:
    """The loss of each example in nats: cross-entropy, or its binary form -log sigmoid(±logit) for a single logit.

    Half-precision logits are raised to float32 first: three digits do not make a loss.

    >>> losses(torch.zeros(1, 2), torch.tensor([1])).tolist() == losses(torch.zeros(1, 1), torch.tensor([1])).tolist()
    True

    Arguments:
        logits: # (batch, classes), or (batch, 1) for a binary task.
        labels: # (batch,) of int64.
    """
    if logits.dtype in (torch.bfloat16, torch.float16):
        logits = logits.float()
    if logits.shape[1] == 1:
        targets = labels.to(logits.dtype)
        return functional.binary_cross_entropy_with_logits(logits[:, 0], targets, reduction="none")
    return functional.cross_entropy(logits, labels, reduction="none")


def penalised(loss: Tensor, penalty: Penalty, model: nn.Module, inputs: Tensor, logits: Tensor) -> Tensor:
    """What is minimised with a penalty: share * loss + penalty(model, inputs, clean=logits).

    Arguments:
        loss: of this batch, a scalar.
        penalty: its ``loss_share``, where it has one, is the share; otherwise that is 1.
        model, inputs, logits: the model, the batch, and what the model just answered.
    """
    share = getattr(penalty, "loss_share", 1.0)
    return (loss if share == 1 else share * loss) + penalty(model, inputs, clean=logits)


def described(argument: str, term: object, is_needed: bool) -> str | None:
    """What a penalty or an augmentation calls itself, None where there is none.

    Arguments:
        argument: ``penalty`` or ``augment``, for the error.
        term: the callable.
        is_needed: whether a checkpoint is written, which must know one penalty from another.
    """
    if term is None:
        return None
    if not callable(term):
        raise UsageError(f"{argument}={term!r} cannot be called; give an object of jostle.lowering or a function")
    describe = getattr(term, "describe", None)
    if describe is None and is_needed:
        raise UsageError(
            f"{argument}={term!r} needs a method describe(), the text by which a checkpoint knows it again; give it "
            "one, or leave out checkpoint="
        )
    return getattr(term, "__name__", type(term).__name__) if describe is None else str(describe())


def predictions(logits: Tensor) -> Tensor:
    """The predicted label of each example: the largest logit, or whether a single logit is positive, (batch,)."""
    if logits.shape[1] == 1:
        return (logits[:, 0] > 0).to(torch.int64)
    return logits.argmax(dim=1)


def check_logits(logits: Tensor, classes: int) -> None:
    """Raise unless ``logits`` can be scored against labels of so many classes."""
    if logits.ndim != 2:
        raise UsageError(f"the model must return logits of shape (batch, classes), got {tuple(logits.shape)}")
    num_logits = logits.shape[1]
    if num_logits != classes and not (num_logits == 1 and classes == 2):
        binary = " (or 1)" if classes == 2 else ""
        raise UsageError(
            f"the data have {classes} classes but the model has classes={num_logits}; use {classes}{binary}"
        )


@dataclass(frozen=True)
class Evaluation:
    """Mean loss in nats and share of correct predictions, both over a whole dataset."""

    loss: float
    accuracy: float


def evaluate(model: nn.Module, dataset: Dataset, *, batch_size: int = 500) -> Evaluation:
    """Mean loss and accuracy of ``model`` in eval mode, over all examples; the model is left in the mode it came in.

    Batches are moved to the device and the floating-point type of the model's weights.
    """
    if isinstance(batch_size, bool) or not isinstance(batch_size, int) or batch_size < 1:
        raise UsageError(f"batch_size must be a whole number of at least 1, got {batch_size!r}")
    batches = Batches(model, dataset)
    was_training = model.training
    model.eval()
    losses: list[Tensor] = []
    hits: list[Tensor] = []
    try:
        # Not inference_mode: no faster beyond noise for an MLP and a ViT, and what a model keeps of such a pass, say a
        # table of positions, could not be trained with afterwards.
        with torch.no_grad():
            for inputs, labels in batches.all(batch_size):
                logits = model(inputs)  # (batch, classes)
                objectives.check_logits(logits, dataset.classes)
                losses.append(objectives.losses(logits, labels).sum())
                hits.append((objectives.predictions(logits) == labels).sum())
    finally:
        model.train(was_training)
    # Read at the end, so that a device is not waited for after each batch; added in double precision.
    loss, correct = sum(part.item() for part in losses), sum(int(part) for part in hits)
    return Evaluation(loss / len(batches), correct / len(batches))
