"""The answer of a model in the middle of training: with gradients, in the mode the model is in."""

from collections.abc import Callable
from typing import Any

import numpy as np
from torch import Tensor

from jostle.base.checks import function
from jostle.base.errors import UsageError
from jostle.base.model import check_outputs, dtype_hint, logits_of
from jostle.tokens import Batch
from jostle.tokens.sources import ONLY
from jostle.tokens.text_views import SPECIAL_KEY

_KEYWORDS = ("unexpected keyword argument", "required positional argument", "required keyword-only argument")


def ask(model: Callable[..., Any], batch: Batch) -> Tensor:
    """The real-valued logits (batch, ...) of ``model``, attached to its graph.

    A mapping is passed as keyword arguments, without ``special_tokens_mask``. An error of the model reaches the caller
    unchanged, as it does in the training loop, unless the batch causes it and the fix is known: a batch of one input
    for BatchNorm, another type than the weights, other names than the model's arguments.
    """
    function("model", model)
    size = len(next(iter(batch.values())))
    try:
        named = {key: tensor for key, tensor in batch.items() if key != SPECIAL_KEY}
        answer = model(batch[ONLY]) if set(batch) == {ONLY} else model(**named)
    except (TypeError, ValueError, RuntimeError) as error:
        reason = _known_reason(error, model, batch, size)
        if reason is None:
            raise
        raise UsageError(reason) from error
    if isinstance(answer, np.ndarray):
        raise UsageError(
            f"model of type {type(model).__name__} answers with arrays, which have no gradients: give an nn.Module"
        )
    return read_logits(answer, size)


def read_logits(answer: Any, size: int) -> Tensor:
    """The logits in a model's answer to ``size`` inputs; raises unless there is a row of real numbers for each input.

    Arguments:
        answer: a tensor, the first of several parts, or a mapping or object with ``logits``.
        size: how many inputs the model was asked about.
    """
    logits = logits_of(answer)
    check_outputs(logits, size, real=True)
    return logits


def _known_reason(error: Exception, model: Callable[..., Any], batch: Batch, size: int) -> str | None:
    """Why the model cannot answer this batch, with the fix; None if the reason is not known."""
    if size == 1 and "more than 1 value per channel" in str(error):  # the error of BatchNorm
        return (
            "a batch of 1 input is too few for BatchNorm in train mode; use larger batches, and drop_last=True in "
            "a DataLoader"
        )
    if isinstance(error, TypeError) and set(batch) != {ONLY} and any(words in str(error) for words in _KEYWORDS):
        entries = ", ".join(batch)
        return f"the entries of inputs ({entries}) are passed to the model by name, and it says: {error}"
    hint = dtype_hint(model, batch.values())
    if isinstance(error, RuntimeError) and "type" in str(error) and hint:
        return f"model raised RuntimeError: {' '.join(str(error).split())}{hint}, or use torch.autocast"
    return None
