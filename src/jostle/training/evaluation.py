"""Loss and accuracy of a model on a dataset."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from jostle.data import Dataset
from jostle.errors import UsageError
from jostle.training import objectives


@dataclass(frozen=True)
class Evaluation:
    """Mean loss in nats and share of correct predictions, both over a whole dataset."""

    loss: float
    accuracy: float


def evaluate(model: nn.Module, dataset: Dataset, *, batch_size: int = 500) -> Evaluation:
    """Mean loss and accuracy of ``model`` in eval mode; the model is left in the mode it came in.

    Batches are moved to the device and the floating-point type of the model's weights.
    """
    was_training = model.training
    model.eval()
    loss, correct = 0.0, 0
    try:
        with torch.no_grad():
            for start in range(0, len(dataset), batch_size):
                inputs, labels = batch(model, dataset, slice(start, start + batch_size))
                logits = model(inputs)  # (batch, classes)
                objectives.check_logits(logits, dataset.classes)
                loss += objectives.losses(logits, labels).sum().item()
                correct += int((objectives.predictions(logits) == labels).sum())
    finally:
        model.train(was_training)
    return Evaluation(loss / len(dataset), correct / len(dataset))


def batch(model: nn.Module, dataset: Dataset, rows: slice | Tensor) -> tuple[Tensor, Tensor]:
    """Some examples of ``dataset``, on the device and in the floating-point type of the model's weights."""
    weights = next(model.parameters(), None)
    if weights is None:
        raise UsageError(f"{type(model).__name__} has no parameters: there is nothing to train")
    inputs = dataset.inputs[rows].to(weights.device)
    if inputs.is_floating_point():  # Token ids stay whole numbers.
        inputs = inputs.to(weights.dtype)
    return inputs, dataset.labels[rows].to(weights.device, torch.int64)
