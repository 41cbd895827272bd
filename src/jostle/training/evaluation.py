"""Loss and accuracy of a model on a dataset."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from jostle.base import checks
from jostle.base.errors import UsageError
from jostle.base.interrupts import Uninterrupted
from jostle.base.model import eval_mode, logits_of
from jostle.data import Dataset
from jostle.training.batches import Batches
from jostle.training.objective import losses


@dataclass(frozen=True)
class Evaluation:
    """Mean loss in nats and share of correct predictions, both over a whole dataset."""

    loss: float
    accuracy: float


def evaluate(model: nn.Module, dataset: Dataset, *, batch_size: int = 500) -> Evaluation:
    """Mean loss and accuracy of ``model`` in eval mode, over all examples; its mode is put back afterwards.

    Batches are moved to the device and the floating-point type of the model's weights.
    """
    checks.sizes(batch_size=batch_size)
    batches = Batches(model, dataset)
    parts: list[Tensor] = []
    hits: list[Tensor] = []
    # Not inference_mode: it is no faster beyond noise for an MLP and a ViT, and tensors that a model keeps of such a
    # pass, say a table of positions, could not be trained with afterwards.
    with eval_mode(model), torch.no_grad():
        for inputs, labels in batches.all(batch_size):
            with Uninterrupted():
                logits = logits_of(model(inputs), name="the model")  # (batch, classes)
            check_logits(logits, dataset.classes)
            parts.append(losses(logits, labels).sum())
            hits.append((predictions(logits) == labels).sum())
    # Read at the end, so that a device is not waited for after each batch; added in double precision.
    loss, correct = sum(part.item() for part in parts), sum(int(part) for part in hits)
    return Evaluation(loss / len(batches), correct / len(batches))


def predictions(logits: Tensor) -> Tensor:
    """The predicted label of each example: the largest logit, or whether a single logit is positive, (batch,)."""
    if logits.shape[1] == 1:
        return (logits[:, 0] > 0).to(torch.int64)
    return logits.argmax(dim=1)


def check_logits(logits: Tensor, classes: int) -> None:
    """Raise unless ``logits`` fit labels of ``classes`` classes."""
    if logits.ndim != 2:
        raise UsageError(f"the model must return logits of shape (batch, classes), got {tuple(logits.shape)}")
    num_logits = logits.shape[1]
    if num_logits != classes and not (num_logits == 1 and classes == 2):
        binary = " (or 1)" if classes == 2 else ""
        raise UsageError(
            f"the data have {classes} classes but the model has classes={num_logits}; use {classes}{binary}"
        )
