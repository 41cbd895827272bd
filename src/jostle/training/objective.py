"""What a training step minimises: the loss of its batch, and the penalty and augmentation that a run may have."""

import contextlib
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional

from jostle.base.errors import UsageError

Penalty = Callable[..., Tensor]  # penalty(model, inputs, clean=logits): a scalar
Augment = Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]  # inputs, labels = augment(inputs, labels)


def losses(logits: Tensor, labels: Tensor) -> Tensor:
    """The loss of each example in nats: cross-entropy, or its binary form -log sigmoid(±logit) for a single logit.

    Half-precision logits are raised to float32 first: three digits are too few for a loss.

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


def add_penalty(loss: Tensor, penalty: Penalty, model: nn.Module, inputs: Tensor, logits: Tensor) -> Tensor:
    """share * loss + penalty(model, inputs, clean=logits), the objective of a step with a penalty.

    Arguments:
        loss: of this batch, a scalar.
        penalty: the share is its ``loss_share``, or 1 if it has none.
        model, inputs, logits: the model, the batch, and the model's logits of the batch.
    """
    share = getattr(penalty, "loss_share", 1.0)
    return (loss if share == 1 else share * loss) + penalty(model, inputs, clean=logits)


def augment_batch(
    augment: Augment, model: nn.Module, inputs: Tensor, labels: Tensor
) -> tuple[Tensor, Tensor, contextlib.AbstractContextManager[None]]:
    """Inputs and labels to train on, and a context for the forward pass, in which embeddings get their noise.

    An augmentation whose attribute ``is_inside`` is true changes no inputs: its ``inside(model, inputs)`` is the
    context, as for ``jostle.NoiseAugmentation`` of embeddings.
    """
    if getattr(augment, "is_inside", False):
        return inputs, labels, augment.inside(model, inputs)  # type: ignore[attr-defined]  # only those have it
    return *augment(inputs, labels), contextlib.nullcontext()


def describe_term(argument: str, term: object, is_needed: bool) -> str | None:
    """The description of a penalty or an augmentation; None if there is none.

    Arguments:
        argument: ``penalty`` or ``augment``, for the error.
        term: the callable.
        is_needed: whether a checkpoint is written, which must tell one penalty from another.
    """
    if term is None:
        return None
    if not callable(term):
        raise UsageError(f"{argument}={term!r} cannot be called; give an object of jostle.lowering or a function")
    describe = getattr(term, "describe", None)
    if describe is None and is_needed:
        raise UsageError(
            f"{argument}={term!r} needs a method describe(), by whose text a checkpoint recognises it; give it one, or "
            "leave out checkpoint="
        )
    return getattr(term, "__name__", type(term).__name__) if describe is None else str(describe())
