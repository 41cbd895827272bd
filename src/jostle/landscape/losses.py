"""Losses by name or as functions, and the labels they are taken against."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from jostle.errors import UsageError
from jostle.landscape.arguments import choice
from jostle.training import objectives

Loss = Callable[[Tensor, Tensor], Tensor]
NAMES = ("mse", "cross-entropy")


def as_loss(loss: Any) -> Loss:
    """Outputs and labels of a batch to the loss of each input, (batch,), or to their mean.

    >>> as_loss("mse")(torch.tensor([[1.0], [3.0]]), torch.tensor([0, 1])).tolist()
    [1.0, 4.0]

    Arguments:
        loss: ``mse``, the squared error (its mean over several outputs); ``cross-entropy``, in its binary form for a
            single logit; or a function, such as ``nn.MSELoss()``, that gives a mean over the batch or a number each.
    """
    if isinstance(loss, str):
        return squared_errors if choice("loss", loss, NAMES) == "mse" else _cross_entropies
    if not callable(loss):
        raise UsageError(f"loss={loss!r} must be one of {', '.join(NAMES)} or a function of outputs and labels")
    if getattr(loss, "reduction", "mean") == "sum":
        raise UsageError("loss has reduction='sum'; give one with reduction='mean' or 'none', so that batches compare")
    return loss  # type: ignore[no-any-return]


def is_squared(loss: Any) -> bool:
    """Whether a loss is a squared error, which scales with the square of outputs and labels."""
    return isinstance(loss, nn.MSELoss) or (isinstance(loss, str) and loss == "mse")


def squared_errors(outputs: Tensor, labels: Tensor) -> Tensor:
    """The squared error of each input, (batch,); the mean over its outputs if there are several."""
    outputs = outputs.reshape(len(outputs), -1)
    labels = labels.to(outputs.dtype).reshape(len(labels), -1)
    if outputs.shape != labels.shape:
        raise UsageError(
            f"loss='mse' compares {outputs.shape[1]} outputs with {labels.shape[1]} labels an input; give as many "
            "labels as outputs, or loss='cross-entropy' for classes"
        )
    return (outputs - labels).square().mean(dim=1)


def _cross_entropies(outputs: Tensor, labels: Tensor) -> Tensor:
    logits = outputs[:, None] if outputs.dim() == 1 else outputs
    return objectives.losses(logits, labels.long())


def per_input(loss: Loss, outputs: Tensor, labels: Tensor) -> Tensor:
    """The loss of each input, (batch,), in float64; a mean over the batch stands for each of them."""
    found = loss(outputs, labels)
    if not isinstance(found, Tensor) or found.dim() > 1 or (found.dim() == 1 and len(found) != len(outputs)):
        shape = tuple(found.shape) if isinstance(found, Tensor) else type(found).__name__
        raise UsageError(f"loss answers with {shape}; expected one number, or one for each of {len(outputs)} inputs")
    return found.detach().double().expand(len(outputs))


def as_labels(labels: Any, inputs: Any, count: int) -> Tensor | None:
    """The labels as a tensor (count, ...): those given, or those of the dataset given as inputs, or None."""
    found = getattr(inputs, "labels", None) if labels is None else labels
    if found is None:
        return None
    try:
        tensor = torch.as_tensor(found if isinstance(found, Tensor) else np.asarray(found)).cpu()
    except (TypeError, ValueError, RuntimeError):
        raise UsageError(f"labels of type {type(labels).__name__} must be a tensor or an array of numbers") from None
    if tensor.dim() == 0 or len(tensor) != count:
        raise UsageError(f"labels have shape {tuple(tensor.shape)}; expected one for each of {count} inputs")
    return tensor
