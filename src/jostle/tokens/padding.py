"""Padded texts: where each begins and ends, and batches from which tokens are left out.

``Padding`` knows the columns of the real tokens, ``share_by_position`` gives the share of special tokens at each
position, ``beginning_at`` leaves out the beginning of each text, and ``close_up`` removes one token from each text.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from jostle.base import checks
from jostle.base.errors import UsageError

Integers = NDArray[np.int64]


@dataclass(frozen=True)
class Padding:
    """The columns from the first real token of each input to its last; the others are padding.

    >>> padding = Padding.of(np.array([[1, 1, 0, 0], [1, 1, 1, 0]], dtype=bool))
    >>> padding.lengths.tolist(), padding.side, padding.window(np.array([0, 1]))
    ([2, 3], 'right', (0, 3))

    Arguments:
        first, stop: (N,) the column of the first real token, and the column after the last one.
        width: the number of columns.
        has_gaps: whether some input has padding between real tokens.
    """

    first: Integers
    stop: Integers
    width: int
    has_gaps: bool = False

    @classmethod
    def of(cls, real: NDArray[np.bool_]) -> "Padding":
        """The padding of inputs with ``real`` (N, width) true for real tokens; an input without a real token raises."""
        empty = np.flatnonzero(~real.any(axis=1))
        if len(empty):
            raise UsageError(
                f"{len(empty)} of {len(real)} inputs are all padding (first: input {empty[0]}): leave out empty texts"
            )
        width = real.shape[1]
        first = real.argmax(axis=1)
        stop = width - real[:, ::-1].argmax(axis=1)
        has_gaps = bool((real.sum(axis=1) < stop - first).any())
        return cls(first.astype(np.int64), stop.astype(np.int64), width, has_gaps)

    @property
    def lengths(self) -> Integers:
        """(N,) tokens from the first real one to the last."""
        return self.stop - self.first

    @property
    def side(self) -> str:
        """Where the padding is: ``left``, or ``right``, also if there is none, or ``both``."""
        if not self.first.any():
            return "right"
        return "left" if (self.stop == self.width).all() else "both"

    def window(self, indices: Integers) -> tuple[int, int]:
        """The columns (from, to) that hold all real tokens of these inputs."""
        return int(self.first[indices].min()), int(self.stop[indices].max())

    def numbers(self, indices: Integers, columns: Integers, alignment: str = "left") -> Integers:
        """The number of each token in its text, from 0; with ``right`` the last token has number width - 1."""
        if alignment == "left":
            return columns - self.first[indices]
        return columns + self.width - self.stop[indices]


Truths = NDArray[np.bool_]


def read_special_ids(ids: object) -> tuple[int, ...] | None:
    """``special_ids`` of a view as a tuple of token ids; None stays None.

    >>> read_special_ids([2, 3]), read_special_ids(2)
    ((2, 3), (2,))
    """
    if ids is None:
        return None
    given = tuple(ids) if isinstance(ids, Iterable) and not isinstance(ids, str) else (ids,)
    return checks.wholes("special_ids", given, least=0, example="(2, 3)")


def share_by_position(special: Truths, real: Truths, padding: Padding, alignment: str) -> NDArray[np.float64]:
    """(positions,): among the texts that have a token at this position, the share in which it is special.

    >>> real = np.array([[1, 1, 1, 0], [1, 1, 1, 1]], dtype=bool)
    >>> special = np.array([[1, 0, 1, 0], [1, 0, 0, 1]], dtype=bool)
    >>> share_by_position(special, real, Padding.of(real), "left").tolist()
    [1.0, 0.0, 0.5, 1.0]

    Arguments:
        special, real: (N, columns), true for special tokens, and for tokens that are not padding.
        padding: of these texts.
        alignment: what a position is, as for ``TextView``.
    """
    rows, columns = np.nonzero(real)
    numbers = padding.numbers(rows, columns, alignment)
    counts = np.bincount(numbers, minlength=padding.width)
    marked = np.bincount(numbers, weights=special[rows, columns], minlength=padding.width)
    with np.errstate(invalid="ignore"):
        return np.asarray(marked / counts)


def beginning_at(batch: dict[str, Tensor], key: str, begin: Tensor, width: int) -> dict[str, Tensor]:
    """``batch`` with each text from its own first column on, in new memory.

        a b c d -  from column 1 on and  e f g h i  from column 2 on, 3 columns wide, are  b c d  and  g h i

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
        name: tensor.gather(1, source).masked_fill_(is_beyond, 0) if _is_of_tokens(name, tensor, shape) else tensor
        for name, tensor in batch.items()
    }


_POSITION_KEY = "position_ids"
DECODER = "decoder_"  # begins the entries that belong to the decoder of a model, and not to the text


def close_up(batch: dict[str, Tensor], key: str, gone: Tensor, last: Tensor, pad: int, side: str) -> dict[str, Tensor]:
    """``batch`` without token ``gone[i]`` of text i, in new memory.

        a b c d - -   without c is   a b d - - -,   and with padding on the left   - - a b c d   is   - - - a b d

    ``position_ids`` belong to the nth token, whichever token that is: they lose their last entry instead.

    >>> ids = torch.tensor([[5, 6, 7, 0]])
    >>> close_up({"": ids}, "", gone=torch.tensor([1]), last=torch.tensor([2]), pad=0, side="right")[""].tolist()
    [[5, 7, 0, 0]]

    Arguments:
        batch: named tensors; those of the shape of the ids (batch, tokens) close up, the others stay.
        key: the entry that holds the ids.
        gone: (batch,) the columns that are left out.
        last: (batch,) the columns of the last real tokens.
        pad: the id in the column that becomes free; the other tensors have 0 there.
        side: where the padding is, and so the free column: ``left`` or ``right``.
    """
    shape = batch[key].shape
    return {
        name: _shifted(tensor, last if name == _POSITION_KEY else gone, side, pad if name == key else 0)
        if _is_of_tokens(name, tensor, shape)
        else tensor
        for name, tensor in batch.items()
    }


def _is_of_tokens(name: str, tensor: Tensor, shape: torch.Size) -> bool:
    """Whether an entry of a batch has a number for each token; that of a decoder has one for each of its own."""
    return tensor.shape == shape and not name.startswith(DECODER)


def without_free_column(batch: dict[str, Tensor], key: str, side: str) -> dict[str, Tensor]:
    """``batch`` without the column that became free in every row."""
    shape, kept = batch[key].shape, slice(1, None) if side == "left" else slice(None, -1)
    return {
        name: tensor[:, kept].contiguous() if _is_of_tokens(name, tensor, shape) else tensor
        for name, tensor in batch.items()
    }


def _shifted(tensor: Tensor, gone: Tensor, side: str, fill: int) -> Tensor:
    """(batch, tokens) without one column of every row, and with ``fill`` in the column that becomes free."""
    columns = torch.arange(tensor.shape[1], device=tensor.device)[None, :]
    gone = gone.to(tensor.device)[:, None]
    if side == "left":
        source, free = (columns - (columns <= gone).long()).clamp(min=0), 0
    else:
        source, free = (columns + (columns >= gone).long()).clamp(max=tensor.shape[1] - 1), -1
    shifted = tensor.gather(1, source)
    shifted[:, free] = fill
    return shifted
