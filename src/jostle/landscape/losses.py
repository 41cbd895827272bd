"""Losses, by name or as functions, and the labels that they compare outputs with."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from jostle.base import checks
from jostle.base.errors import JostleError, UsageError
from jostle.training import objective

Loss = Callable[[Tensor, Tensor], Tensor]
NAMES = ("mse", "cross-entropy")
_ELEMENTWISE = (nn.MSELoss, nn.L1Loss, nn.SmoothL1Loss, nn.HuberLoss)


def as_loss(loss: Any) -> Loss:
    """A function from the outputs and labels of a batch to the loss of each input, (batch,), or to their mean.

    >>> as_loss("mse")(torch.tensor([[1.0], [3.0]]), torch.tensor([0, 1])).tolist()
    [1.0, 4.0]

    Arguments:
        loss: ``mse``, the squared error, averaged over several outputs; ``cross-entropy``, in its binary form for a
            single logit; or a function, such as ``nn.MSELoss()``, that returns the mean over the batch or one number
            for each input.
    """
    if isinstance(loss, str):
        return squared_errors if checks.choice("loss", loss, NAMES) == "mse" else _cross_entropies
    if not callable(loss):
        raise checks.wrong("loss", loss, f"one of {', '.join(NAMES)} or a function of outputs and labels")
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
            f"loss='mse' compares {outputs.shape[1]} outputs with {labels.shape[1]} labels per input; give as many "
            "labels as outputs, or loss='cross-entropy' for classes"
        )
    return (outputs - labels).square().mean(dim=1)


def _cross_entropies(outputs: Tensor, labels: Tensor) -> Tensor:
    logits = outputs[:, None] if outputs.dim() == 1 else outputs
    return objective.losses(logits, labels.long())


def check_labels(loss: Loss, outputs: Tensor, labels: Tensor) -> None:
    """Raise unless the labels of all inputs fit the loss and outputs like these.

    Arguments:
        loss: a function of ``as_loss``.
        outputs: of some inputs, (batch, ...).
        labels: of all inputs, (N, ...).
    """
    if labels.is_floating_point() and not labels.isfinite().all():
        raise UsageError("labels hold NaN or infinity; leave these inputs out")
    if loss is _cross_entropies:
        _check_classes(outputs, labels)
    elif isinstance(loss, _ELEMENTWISE) and outputs.shape[1:] != labels.shape[1:]:
        raise UsageError(
            f"loss={type(loss).__name__} compares outputs {tuple(outputs.shape)} with labels {tuple(labels.shape)}, "
            "which torch would repeat to one shape; reshape the labels to that of the outputs, or give loss='mse'"
        )


def _check_classes(outputs: Tensor, labels: Tensor) -> None:
    """Raise unless labels are whole numbers, each a class of the outputs (batch, classes)."""
    if outputs.dim() > 2:
        raise UsageError(f"loss='cross-entropy' takes outputs (batch, classes), and they are {tuple(outputs.shape)}")
    is_single = outputs.dim() == 1 or outputs.shape[1] == 1
    classes = 2 if is_single else outputs.shape[1]
    wanted = f"loss='cross-entropy' takes one whole number from 0 to {classes - 1} for each input"
    if labels.dim() != 1:
        fix = "labels.argmax(dim=1)" if labels.shape[1:] == (classes,) and not is_single else "labels.reshape(-1)"
        raise UsageError(f"{wanted}, and labels have shape {tuple(labels.shape)}; give {fix}")
    numbers = labels.double()
    if bool((numbers != numbers.floor()).any()) or numbers.min() < 0 or numbers.max() >= classes:
        hint = "; for labels of -1 and 1 give (labels + 1) / 2, or loss='mse'" if is_single else ""
        raise UsageError(f"{wanted}, and labels go from {numbers.min():g} to {numbers.max():g}{hint}")


def per_input(loss: Loss, outputs: Tensor, labels: Tensor) -> Tensor:
    """The loss of each input, (batch,), in float64. A loss that is a mean over the batch is repeated for each input."""
    return _answer(loss, outputs, labels).detach().double().expand(len(outputs))


def is_mean(loss: Loss, outputs: Tensor, labels: Tensor) -> bool:
    """Whether a loss returns one number for several inputs, so that the loss of each input is not known."""
    return len(outputs) > 1 and _answer(loss, outputs, labels).dim() == 0


def _answer(loss: Loss, outputs: Tensor, labels: Tensor) -> Tensor:
    """The answer of a loss: one number for each input, (batch,), or a single number."""
    try:
        found = loss(outputs, labels)
    except JostleError:
        raise
    except Exception as error:
        raise UsageError(
            f"loss raised {type(error).__name__} on outputs {tuple(outputs.shape)} of {outputs.dtype} and labels "
            f"{tuple(labels.shape)} of {labels.dtype}: {' '.join(str(error).split())}"
        ) from error
    if not isinstance(found, Tensor) or found.dim() > 1 or (found.dim() == 1 and len(found) != len(outputs)):
        shape = tuple(found.shape) if isinstance(found, Tensor) else type(found).__name__
        raise UsageError(f"loss answers with {shape}; expected one number, or one for each of {len(outputs)} inputs")
    return found


def as_labels(labels: Any, inputs: Any, count: int) -> Tensor | None:
    """The labels as a tensor (count, ...): the given labels, or else those of a dataset; None if there are none."""
    found = getattr(inputs, "labels", None) if labels is None else labels
    if found is None:
        return None
    try:
        tensor = torch.as_tensor(found if isinstance(found, Tensor) else np.asarray(found)).cpu()
    except (TypeError, ValueError, RuntimeError):
        raise UsageError(f"labels of type {type(found).__name__} must be a tensor or an array of numbers") from None
    if tensor.dim() == 0 or len(tensor) != count:
        raise UsageError(f"labels have shape {tuple(tensor.shape)}; expected one for each of {count} inputs")
    return tensor
