"""Texts without one of their tokens: what is left closes up, and there is one more padding."""

import torch
from torch import Tensor

from jostle.tokens.sources import Batch

_POSITION_KEY = "position_ids"


def closed_up(batch: Batch, key: str, gone: Tensor, last: Tensor, pad: int, side: str) -> Batch:
    """``batch`` without token ``gone[i]`` of text i, in new memory.

        a b c d - -   without c is   a b d - - -,   and with padding on the left   - - a b c d   is   - - - a b d

    Given ``position_ids`` are those of the nth token, whichever that is: they lose their last instead.

    >>> ids = torch.tensor([[5, 6, 7, 0]])
    >>> closed_up({"": ids}, "", gone=torch.tensor([1]), last=torch.tensor([2]), pad=0, side="right")[""].tolist()
    [[5, 7, 0, 0]]

    Arguments:
        batch: named tensors; those of the shape of the ids (batch, tokens) close up, the others stay.
        key: the entry that holds the ids.
        gone: (batch,) the columns that go.
        last: (batch,) the columns of the last real tokens.
        pad: the id that the column that falls free is given; it is 0 in the other tensors.
        side: where padding is, and so the new one: ``left`` or ``right``.
    """
    shape = batch[key].shape
    return {
        name: _shifted(tensor, last if name == _POSITION_KEY else gone, side, pad if name == key else 0)
        if tensor.shape == shape
        else tensor
        for name, tensor in batch.items()
    }


def without_free_column(batch: Batch, key: str, side: str) -> Batch:
    """``batch`` without the column that deleting left free in every row."""
    shape, kept = batch[key].shape, slice(1, None) if side == "left" else slice(None, -1)
    return {name: tensor[:, kept].contiguous() if tensor.shape == shape else tensor for name, tensor in batch.items()}


def _shifted(tensor: Tensor, gone: Tensor, side: str, fill: int) -> Tensor:
    """(batch, tokens) with one column less in every row, and ``fill`` in the column that falls free."""
    columns = torch.arange(tensor.shape[1], device=tensor.device)[None, :]
    gone = gone.to(tensor.device)[:, None]
    if side == "left":
        source, free = (columns - (columns <= gone).long()).clamp(min=0), 0
    else:
        source, free = (columns + (columns >= gone).long()).clamp(max=tensor.shape[1] - 1), -1
    shifted = tensor.gather(1, source)
    shifted[:, free] = fill
    return shifted
