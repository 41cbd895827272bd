"""Special tokens of text: the classification token, separators, and where they stand."""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from jostle.errors import UsageError
from jostle.tokens.padding import Padding

Truths = NDArray[np.bool_]


def checked_ids(ids: object) -> tuple[int, ...] | None:
    """``special_ids`` of a view as a tuple of token ids; None stays None.

    >>> checked_ids([2, 3]), checked_ids(2)
    ((2, 3), (2,))
    """
    if ids is None:
        return None
    given = tuple(ids) if isinstance(ids, Iterable) and not isinstance(ids, str) else (ids,)
    if not given or any(isinstance(each, bool) or not isinstance(each, int) or each < 0 for each in given):
        raise UsageError(f"special_ids={ids!r} must be token ids, whole numbers from 0 on, at least one")
    return given


def share_by_position(special: Truths, real: Truths, padding: Padding, alignment: str) -> NDArray[np.float64]:
    """(positions,): of the texts that have a token at this position, the share in which it is special.

    >>> real = np.array([[1, 1, 1, 0], [1, 1, 1, 1]], dtype=bool)
    >>> special = np.array([[1, 0, 1, 0], [1, 0, 0, 1]], dtype=bool)
    >>> share_by_position(special, real, Padding.of(real), "left").tolist()
    [1.0, 0.0, 0.5, 1.0]

    Arguments:
        special, real: (N, columns), true for special tokens, and for those that are not padding.
        padding: of these texts.
        alignment: what a position is, as for ``TextView``.
    """
    rows, columns = np.nonzero(real)
    numbers = padding.numbers(rows, columns, alignment)
    counts = np.bincount(numbers, minlength=padding.width)
    marked = np.bincount(numbers, weights=special[rows, columns], minlength=padding.width)
    with np.errstate(invalid="ignore"):
        return np.asarray(marked / counts)
