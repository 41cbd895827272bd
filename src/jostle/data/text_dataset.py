"""``TextDataset``: labelled texts or pairs of texts, as people wrote them; and test splits for texts without one.

``jostle.data.encode`` turns the words into the numbers that a network takes, with a tokenizer. Test splits are fixed
once and for all, and no text is in both splits.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NoReturn

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from jostle.base.errors import UsageError
from jostle.data.dataset import check_labels, merge_labels
from jostle.data.selection import Rows, choose, random_order


@dataclass(frozen=True, eq=False)
class TextDataset:
    """Labelled texts of one split of one dataset.

    >>> import torch
    >>> pairs = (("Is it late?", "Is it early?"), ("Who won?", "Who was the winner?"))
    >>> questions = TextDataset("questions", pairs, torch.tensor([0, 1]), classes=2)
    >>> len(questions), questions.width, questions.subset(1).texts
    (2, 2, (('Is it late?', 'Is it early?'),))

    Arguments:
        name: as records and checkpoints name it.
        texts: for each example a tuple of one text, or in all examples of two.
        labels: whole numbers from 0 to ``classes`` - 1, # (examples,) of int64.
        classes: number of classes; not every class need occur.
        split: which part it is, e.g. ``train``.
        note: how it departs from the official split, e.g. that rows could not be read; empty if it does not.
        remarks: for files of your own, what is worth saying about their rows and labels.
    """

    name: str
    texts: tuple[tuple[str, ...], ...]
    labels: Tensor
    classes: int
    split: str = "train"
    note: str = ""
    remarks: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        self._check_texts()
        found = f"text, got {len(self.texts)} texts"
        check_labels(self.labels, self.classes, name=self.name, examples=len(self.texts), found=found)

    def __len__(self) -> int:
        return len(self.texts)

    @property
    def width(self) -> int:
        """Number of texts of an example: 1, or 2 for pairs."""
        return len(self.texts[0])

    @property
    def inputs(self) -> NoReturn:
        """An error that says how to turn texts into numbers."""
        raise UsageError(
            f"dataset {self.name!r} holds texts, not numbers; encode them first: "
            "jostle.data.encode(dataset, tokenizer), with a tokenizer of jostle.data.train_tokenizer(dataset)"
        )

    def subset(self, n: int | None = None, *, seed: int | None = None, balanced: bool = False) -> "TextDataset":
        """``n`` examples: the first, or a random choice by ``seed``, or the same number of each class.

        Arguments:
            n, seed, balanced: as ``limit``, ``seed`` and ``balanced`` of ``jostle.data.load``.
        """
        called = f"{self.split} examples of {self.name!r}"
        return self.take(choose(self.labels.numpy(), self.classes, n, seed=seed, balanced=balanced, called=called))

    def take(self, rows: Rows) -> "TextDataset":
        """The examples in ``rows``, in that order."""
        if isinstance(rows, slice):
            return replace(self, texts=self.texts[rows], labels=self.labels[rows])
        texts = tuple(self.texts[row] for row in rows.tolist())
        return replace(self, texts=texts, labels=self.labels[torch.from_numpy(rows)])

    def relabelled(self, new_labels: Sequence[int], name: str) -> "TextDataset":
        """The same texts with the classes renamed or merged.

        >>> import torch
        >>> stars = TextDataset("stars", (("bad",), ("fine",), ("good",)), torch.tensor([0, 1, 2]), classes=3)
        >>> two = stars.relabelled([0, 1, 1], "two")
        >>> two.labels.tolist(), two.classes
        ([0, 1, 1], 2)

        Arguments:
            new_labels: for each of the present classes, the class it becomes, from 0.
            name: of the result, as records name it.
        """
        labels, classes = merge_labels(self.labels, self.classes, new_labels, self.name)
        return replace(self, name=name, labels=labels, classes=classes)

    def _check_texts(self) -> None:
        if len(self.texts) == 0:
            raise UsageError(f"dataset {self.name!r} holds no examples; give at least one")
        width = len(self.texts[0])
        for row, texts in enumerate(self.texts):
            is_tuple = isinstance(texts, tuple) and all(isinstance(text, str) for text in texts)
            if not is_tuple or len(texts) not in (1, 2):
                shown = repr(texts) if len(repr(texts)) <= 40 else f"{repr(texts)[:40]}..."
                raise UsageError(
                    f"dataset {self.name!r}: texts[{row}]={shown} must be a tuple of one or two texts, for example "
                    "('a text',)"
                )
            if len(texts) != width:
                raise UsageError(
                    f"dataset {self.name!r}: texts[{row}] has {len(texts)} texts where texts[0] has {width}; give "
                    "every example the same number"
                )


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
        test_per_class: number of rows of each class that are held out.
        seed: of the order.
    """
    order = random_order(len(labels), seed)
    in_order = labels[order]
    is_test = np.zeros(len(labels), dtype=bool)
    for label in np.unique(labels):
        is_test[np.flatnonzero(in_order == label)[:test_per_class]] = True
    rows = order[is_test if split == "test" else ~is_test]
    # Shuffled again: otherwise the first rows left over are all of the class whose test rows were found first.
    return rows[random_order(len(rows), seed + 1)]


def share_split(texts: Sequence[tuple[str, ...]], split: str, share: float, seed: int) -> NDArray[np.intp]:
    """The rows of one split if ``share`` of the distinct texts are held out for testing, in the order of the file.

    Repeats of a text are all on one side.

    >>> texts = [("a",), ("b",), ("a",), ("c",), ("d",)]
    >>> [share_split(texts, split, 0.5, seed=0).tolist() for split in ("train", "test")]
    [[0, 1, 2], [3, 4]]
    """
    distinct = first_of_each(texts)
    held_out = random_order(len(distinct), seed)[: round(share * len(distinct))]
    test = {texts[row] for row in distinct[held_out]}
    return np.array([row for row, text in enumerate(texts) if (text in test) == (split == "test")], dtype=np.intp)
