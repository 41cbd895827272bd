"""A classifier asked about a batch of images: its logits, or one line on why there are none."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from jostle.errors import FailureError, JostleError, UsageError


def ask(model: Callable[[Tensor], Any], images: Tensor) -> Tensor:
    """The logits of ``model`` on the CPU, # (batch, classes), (batch, 1) or (batch,), all of them finite.

    >>> ask(lambda images: {"logits": images.mean(dim=(2, 3))}, torch.ones(2, 3, 4, 4)).shape
    torch.Size([2, 3])
    """
    if not callable(model):
        raise UsageError(f"model of type {type(model).__name__} cannot be called; give an nn.Module or a function")
    try:
        with torch.no_grad():
            answer = model(images)
    except JostleError:
        raise
    except Exception as error:
        reason = " ".join(str(error).split()) + _dtype_hint(model, images)
        raise FailureError(
            f"the model raised {type(error).__name__} on images of shape {tuple(images.shape)}: {reason}"
        ) from error
    logits = _found(answer)
    if logits.ndim not in (1, 2) or len(logits) != len(images) or logits.numel() == 0:
        raise UsageError(
            f"the model answered {len(images)} images with shape {tuple(logits.shape)}; expected logits of shape "
            f"({len(images)}, classes)"
        )
    if not logits.is_floating_point():
        raise UsageError(f"the model answered with {logits.dtype}; expected real-valued logits, not numbers of classes")
    if not logits.isfinite().all():
        raise UsageError("the model answered with values that are not finite, which have no largest one")
    return logits


def _found(answer: Any) -> Tensor:
    """The logits in an answer: a tensor or an array, the first of several, or what the answer calls logits."""
    if isinstance(answer, Mapping) and "logits" in answer:
        answer = answer["logits"]
    elif hasattr(answer, "logits"):
        answer = answer.logits
    elif isinstance(answer, tuple) and answer:
        answer = answer[0]
    if not isinstance(answer, Tensor | np.ndarray | list):
        raise UsageError(f"the model must answer with a tensor of logits, not {type(answer).__name__}")
    try:
        return torch.as_tensor(answer).detach().cpu()
    except (TypeError, ValueError, RuntimeError):
        raise UsageError(f"the model answered with a {type(answer).__name__} that holds no logits") from None


def _dtype_hint(model: Callable[[Tensor], Any], images: Tensor) -> str:
    """What to do if the images are of another type than the weights."""
    weights = model.parameters() if isinstance(model, nn.Module) else iter(())
    held = next((weight.dtype for weight in weights if weight.is_floating_point()), images.dtype)
    if held == images.dtype:
        return ""
    scale = ", scaled as in training," if images.dtype == torch.uint8 else ""
    return f" (the images are {images.dtype}, the model is {held}: give images{scale} of {held})"
