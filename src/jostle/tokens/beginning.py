"""Texts from one of their tokens on: what was before it is left out."""

import torch
from torch import Tensor

from jostle.tokens.sources import Batch


def beginning_at(batch: Batch, key: str, begin: Tensor, width: int) -> Batch:
    """``batch`` with every text from its own column on, in new memory.

        a b c d -   from column 1 on and   e f g h i   from column 2 on, 3 columns wide, are   b c d   and   g h i

    >>> ids = torch.tensor([[5, 6, 7, 8, 0], [1, 2, 3, 4, 5]])
    >>> beginning_at({"": ids}, "", torch.tensor([1, 2]), 4)[""].tolist()
    [[6, 7, 8, 0], [3, 4, 5, 0]]

    Arguments:
        batch: named tensors; those of the shape of the ids (batch, columns) are cut, the others stay.
        key: the entry that holds the ids.
        begin: (batch,) the first column of each text that is kept.
        width: how many columns are kept; those beyond the last one are 0.
    """
    shape = batch[key].shape
    columns = begin[:, None] + torch.arange(width)  # (batch, width)
    source, is_beyond = columns.clamp(max=shape[1] - 1), columns >= shape[1]
    return {
        name: tensor.gather(1, source).masked_fill_(is_beyond, 0) if tensor.shape == shape else tensor
        for name, tensor in batch.items()
    }
