"""Loss and accuracy of a model on a dataset."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from jostle.data import Dataset
from jostle.errors import UsageError
from jostle.training import objectives
from jostle.training.batches import Batches


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
