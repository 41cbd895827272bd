"""Answers of a model to inputs as they are, in batches; and its predictions, right or wrong."""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from jostle.base.errors import UsageError
from jostle.sampling.plans import Batching, Integers
from jostle.tokens import TokenFunction


def clean_outputs(function: TokenFunction, batching: Batching, indices: Integers | None = None) -> Tensor:
    """The outputs of a model for clean inputs, (inputs, ...), in float64; the model is in eval mode inside.

    Arguments:
        function: the model.
        batching: of its inputs.
        indices: which inputs; by default all.
    """
    chosen = np.arange(len(function.inputs)) if indices is None else indices
    order = batching.order(chosen)
    with function.evaluating():
        parts = [function(batching.batch(chosen[order][cut])[0]).double() for cut in batching.cuts(chosen[order])]
    return torch.cat(parts)[torch.from_numpy(np.argsort(order))].clone()


def predictions(outputs: Tensor) -> Tensor:
    """(inputs,) the class of each row of outputs: the argmax, for a single logit 1 above 0, a whole number itself."""
    if outputs.dim() == 1 or outputs.shape[1] == 1:
        single = outputs.reshape(len(outputs))
        return (single > 0).long() if single.is_floating_point() else single.long()
    return outputs.argmax(dim=1)


def doubts(outputs: Tensor) -> NDArray[np.float64]:
    """(inputs,) 1 - the largest probability, by the softmax of logits or the sigmoid of a single one."""
    flat = outputs.double().reshape(len(outputs), -1)
    chances = flat.abs().sigmoid() if flat.shape[1] == 1 else flat.softmax(dim=1)
    found: NDArray[np.float64] = (1 - chances.amax(dim=1)).numpy()
    return found


def read_labels(labels: Any, count: int, classes: int) -> Tensor:
    """``labels`` as (count,) whole numbers; for a single logit -1 and 1 are read as 0 and 1.

    Arguments:
        labels: one class for each input.
        count: of inputs.
        classes: that the model knows; 2 for a single logit.
    """
    try:
        found = torch.as_tensor(labels).reshape(-1).cpu()
    except (TypeError, ValueError, RuntimeError):
        raise UsageError("labels must be numbers, the class of each input") from None
    if len(found) != count:
        raise UsageError(f"there are {len(found)} labels for {count} inputs; give one for each")
    whole = found.round().long()
    if found.is_floating_point() and bool((whole != found).any()):
        raise UsageError("labels must be whole numbers, the class of each input")
    if classes == 2 and bool((whole.abs() == 1).all()) and bool((whole == -1).any()):
        whole = (whole + 1) // 2
    low, high = int(whole.min()), int(whole.max())
    if low < 0 or high >= classes:
        raise UsageError(f"labels go from {low} to {high}, and the model knows classes 0 to {classes - 1}")
    return whole
