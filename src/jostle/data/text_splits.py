"""Test splits for texts that come without one: fixed once and for all, and no text on both sides."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from jostle.data.selection import shuffled


def first_of_each(texts: Sequence[tuple[str, ...]]) -> NDArray[np.intp]:
    """The rows that hold a text for the first time, in order.

    >>> first_of_each([("a",), ("b",), ("a",)]).tolist()
    [0, 1]
    """
    rows: dict[tuple[str, ...], int] = {}
    for row, text in enumerate(texts):
        rows.setdefault(text, row)
    return np.array(list(rows.values()), dtype=np.intp)


def balanced_split(labels: NDArray[np.int64], split: str, test_per_class: int, seed: int) -> NDArray[np.intp]:
    """The rows of one split: of each class the first ``test_per_class`` in shuffled order test, the others train.

    Rows are in shuffled order, because files of reviews are sorted by class.

    Arguments:
        labels: the class of each row, # (rows,).
        split: ``train`` or ``test``.
        test_per_class: how many rows of each class are held out.
        seed: of the order.
    """
    order = shuffled(len(labels), seed)
    in_order = labels[order]
    is_test = np.zeros(len(labels), dtype=bool)
    for label in np.unique(labels):
        is_test[np.flatnonzero(in_order == label)[:test_per_class]] = True
    rows = order[is_test if split == "test" else ~is_test]
    # Shuffled again: the first rows left over are all of the class whose test rows were found first.
    return rows[shuffled(len(rows), seed + 1)]


def share_split(texts: Sequence[tuple[str, ...]], split: str, share: float, seed: int) -> NDArray[np.intp]:
    """The rows of one split if ``share`` of the distinct texts are held out for testing, in the order of the file.

    Repeats of a text are all on one side.

    >>> texts = [("a",), ("b",), ("a",), ("c",), ("d",)]
    >>> [share_split(texts, split, 0.5, seed=0).tolist() for split in ("train", "test")]
    [[0, 1, 2], [3, 4]]
    """
    distinct = first_of_each(texts)
    held_out = shuffled(len(distinct), seed)[: round(share * len(distinct))]
    test = {texts[row] for row in distinct[held_out]}
    return np.array([row for row, text in enumerate(texts) if (text in test) == (split == "test")], dtype=np.intp)
