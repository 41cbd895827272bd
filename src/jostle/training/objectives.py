"""What training minimises, and what counts as the prediction, for models of one logit and of several."""

import torch
from torch import Tensor
from torch.nn import functional

from jostle.errors import UsageError


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
