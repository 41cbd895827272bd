"""What every dataset of texts is: sentences or pairs of sentences with labels, as people wrote them.

Here: the words. Not here: numbers that a network takes; ``jostle.data.encode`` makes them, with a tokenizer.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NoReturn

import torch
from torch import Tensor

from jostle.data.labels import check_labels, merged
from jostle.data.selection import Rows, choose
from jostle.errors import UsageError


@dataclass(frozen=True, eq=False)
class TextDataset:
    """Labelled texts of one split of one dataset.

    >>> import torch
    >>> pairs = (("Is it late?", "Is it early?"), ("Who won?", "Who was the winner?"))
    >>> questions = TextDataset("questions", pairs, torch.tensor([0, 1]), classes=2)
    >>> len(questions), questions.width, questions.subset(1).texts
    (2, 2, (('Is it late?', 'Is it early?'),))

    Arguments:
        name: what records and checkpoints call it.
        texts: for each example a tuple of one text, or in all examples of two.
        labels: whole numbers from 0 to ``classes`` - 1, # (examples,) of int64.
        classes: how many classes there are, whether or not each of them occurs.
        split: which part it is, e.g. ``train``.
        note: how it departs from the official split, e.g. that rows could not be read; empty if it does not.
    """

    name: str
    texts: tuple[tuple[str, ...], ...]
    labels: Tensor
    classes: int
    split: str = "train"
    note: str = ""

    def __post_init__(self) -> None:
        self._check_texts()
        said = f"text, got {len(self.texts)} texts"
        check_labels(self.labels, self.classes, name=self.name, examples=len(self.texts), said=said)

    def __len__(self) -> int:
        return len(self.texts)

    @property
    def width(self) -> int:
        """How many texts an example has: 1, or 2 for pairs."""
        return len(self.texts[0])

    @property
    def inputs(self) -> NoReturn:
        """Nothing: whoever takes texts for numbers is told what to do."""
        raise UsageError(
            f"dataset {self.name!r} holds texts, not numbers; encode them first: "
            "jostle.data.encode(dataset, tokenizer), with a tokenizer of jostle.data.train_tokenizer(dataset)"
        )

    def subset(self, n: int | None = None, *, seed: int | None = None, balanced: bool = False) -> "TextDataset":
        """``n`` examples: the first, or a random choice by ``seed``, or as many of each class.

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
            name: what records call the result.
        """
        labels, classes = merged(self.labels, self.classes, new_labels, self.name)
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
