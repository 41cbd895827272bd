"""A model asked in the middle of training: in the mode it is in, with gradients."""

from collections.abc import Callable, Mapping
from typing import Any

from torch import Tensor

from jostle.errors import UsageError
from jostle.tokens import Batch
from jostle.tokens.sources import ONLY


def ask(model: Callable[..., Any], batch: Batch) -> Tensor:
    """Logits (batch, ...) of ``model``; a mapping is passed as keyword arguments."""
    size = len(next(iter(batch.values())))
    try:
        answer = model(batch[ONLY]) if set(batch) == {ONLY} else model(**batch)
    except ValueError as error:
        if size == 1 and "more than 1 value per channel" in str(error):  # how BatchNorm says it
            raise UsageError(
                "a batch of 1 input is too few for BatchNorm in train mode; use larger batches, and drop_last=True in "
                "a DataLoader"
            ) from error
        raise
    return logits_of(answer, size)


def logits_of(answer: Any, size: int) -> Tensor:
    """The logits in a model's answer about ``size`` inputs: a tensor, the first of several, or what it calls logits."""
    if isinstance(answer, Mapping) and "logits" in answer:
        answer = answer["logits"]
    elif hasattr(answer, "logits"):
        answer = answer.logits
    elif isinstance(answer, tuple | list) and answer:
        answer = answer[0]
    if not isinstance(answer, Tensor) or not answer.is_floating_point():
        found = answer.dtype if isinstance(answer, Tensor) else type(answer).__name__
        raise UsageError(f"the model must answer with a tensor of real-valued logits, not {found}")
    if answer.dim() == 0 or len(answer) != size:
        raise UsageError(
            f"the model answered {size} inputs with outputs of shape {tuple(answer.shape)}; expected "
            f"({size}, classes), ({size}, 1) or ({size},)"
        )
    return answer
