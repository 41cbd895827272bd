"""A model asked in the middle of training: in the mode it is in, with gradients."""

from collections.abc import Callable, Mapping
from typing import Any

from torch import Tensor, nn

from jostle.base.errors import UsageError
from jostle.tokens import Batch
from jostle.tokens.sources import ONLY
from jostle.tokens.text_views import SPECIAL_KEY

_KEYWORDS = ("unexpected keyword argument", "required positional argument", "required keyword-only argument")


def ask(model: Callable[..., Any], batch: Batch) -> Tensor:
    """Logits (batch, ...) of ``model``; a mapping is passed as keyword arguments, without ``special_tokens_mask``.

    What a model raises is its caller's and passes, as in the loop around it, except where the batch does not suit it
    and the fix is plain: a batch of one for BatchNorm, another type than the weights, other names than its arguments.
    """
    if not callable(model):
        raise UsageError(f"model of type {type(model).__name__} cannot be called; give an nn.Module or a function")
    size = len(next(iter(batch.values())))
    try:
        named = {key: tensor for key, tensor in batch.items() if key != SPECIAL_KEY}
        answer = model(batch[ONLY]) if set(batch) == {ONLY} else model(**named)
    except (TypeError, ValueError, RuntimeError) as error:
        reason = _reason(error, model, batch, size)
        if reason is None:
            raise
        raise UsageError(reason) from error
    return logits_of(answer, size)


def _reason(error: Exception, model: Callable[..., Any], batch: Batch, size: int) -> str | None:
    """Why a model cannot answer this batch, where the message of its error would not help; None otherwise."""
    if size == 1 and "more than 1 value per channel" in str(error):  # how BatchNorm says it
        return (
            "a batch of 1 input is too few for BatchNorm in train mode; use larger batches, and drop_last=True in "
            "a DataLoader"
        )
    if isinstance(error, TypeError) and set(batch) != {ONLY} and any(words in str(error) for words in _KEYWORDS):
        entries = ", ".join(batch)
        return f"the entries of inputs ({entries}) are passed to the model by name, and it says: {error}"
    given = [tensor.dtype for tensor in batch.values() if tensor.is_floating_point()]
    weights = model.parameters() if isinstance(model, nn.Module) else iter(())
    held = next((weight.dtype for weight in weights if weight.is_floating_point()), None)
    if isinstance(error, RuntimeError) and "type" in str(error) and given and held is not None and held not in given:
        return f"inputs are {given[0]}, the model's weights {held}: give inputs.to({held}), or use torch.autocast"
    return None


def logits_of(answer: Any, size: int, name: str = "") -> Tensor:
    """The logits in a model's answer about ``size`` inputs: a tensor, the first of several, or what it calls logits.

    Arguments:
        answer: what the model returned.
        size: how many inputs it was asked about.
        name: of the argument, if the answer was given as one.
    """
    if isinstance(answer, Mapping) and "logits" in answer:
        answer = answer["logits"]
    elif hasattr(answer, "logits"):
        answer = answer.logits
    elif isinstance(answer, tuple | list) and answer:
        answer = answer[0]
    if not isinstance(answer, Tensor) or not answer.is_floating_point():
        found = answer.dtype if isinstance(answer, Tensor) else type(answer).__name__
        subject = f"{name} must be" if name else "the model must answer with"
        raise UsageError(f"{subject} a tensor of real-valued logits, not {found}")
    if answer.dim() == 0 or len(answer) != size or answer.numel() == 0:
        outputs = f"{name} has" if name else f"the model answered {size} inputs with outputs of"
        raise UsageError(f"{outputs} shape {tuple(answer.shape)}; expected ({size}, classes), ({size}, 1) or ({size},)")
    return answer
