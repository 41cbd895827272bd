"""``Dataset``: labelled inputs, with names that say in a record where they came from; and operations on labels."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from jostle.base.errors import UsageError
from jostle.data.selection import Rows, choose

SPLITS = ("train", "test")


@dataclass(frozen=True, eq=False)
class Dataset:
    """Labelled inputs of one split of one dataset.

    >>> import torch
    >>> points = Dataset("points", torch.tensor([[-1.0], [1.0], [2.0]]), torch.tensor([0, 1, 1]), classes=2)
    >>> len(points), points.subset(2).labels.tolist()
    (3, [0, 1])

    Arguments:
        name: as records and checkpoints name it.
        inputs: a batch of examples, # (examples, ...).
        labels: whole numbers from 0 to ``classes`` - 1, # (examples,) of int64.
        classes: number of classes; not every class need occur.
        split: which part it is, e.g. ``train``.
        note: how it departs from the official split, e.g. that files were absent; empty if it does not.
    """

    name: str
    inputs: Tensor
    labels: Tensor
    classes: int
    split: str = "train"
    note: str = ""

    def __post_init__(self) -> None:
        found = f"input, got inputs {tuple(self.inputs.shape)}"
        check_labels(self.labels, self.classes, name=self.name, examples=len(self.inputs), found=found)

    def __len__(self) -> int:
        return len(self.labels)

    def subset(self, n: int | None = None, *, seed: int | None = None, balanced: bool = False) -> "Dataset":
        """``n`` examples: the first, or a random choice by ``seed``, or the same number of each class.

        Without ``seed`` and ``balanced`` the tensors share memory with this dataset's.

        Arguments:
            n, seed, balanced: as ``limit``, ``seed`` and ``balanced`` of ``jostle.data.load``.
        """
        called = f"{self.split} examples of {self.name!r}"
        labels = self.labels.detach().cpu().numpy()
        return self.take(choose(labels, self.classes, n, seed=seed, balanced=balanced, called=called))

    def take(self, rows: Rows) -> "Dataset":
        """The examples in ``rows``, in that order."""
        index = rows if isinstance(rows, slice) else torch.from_numpy(rows).to(self.labels.device)
        return replace(self, inputs=self.inputs[index], labels=self.labels[index])

    def relabelled(self, new_labels: Sequence[int], name: str) -> "Dataset":
        """The same inputs with the classes renamed or merged.

        Paper 1's binary MNIST (2403.06925, appendix A.1), digits below 5 against the others, is
        ``load("mnist").relabelled([0] * 5 + [1] * 5, "mnist-binary")``.

        >>> import torch
        >>> points = Dataset("points", torch.zeros(4, 1), torch.tensor([0, 1, 2, 1]), classes=3)
        >>> two = points.relabelled([0, 1, 1], "two")
        >>> two.labels.tolist(), two.classes
        ([0, 1, 1, 1], 2)

        Arguments:
            new_labels: for each of the present classes, the class it becomes, from 0.
            name: of the result, as records name it.
        """
        labels, classes = merge_labels(self.labels, self.classes, new_labels, self.name)
        return replace(self, name=name, labels=labels, classes=classes)


def check_labels(labels: Tensor, classes: int, *, name: str, examples: int, found: str) -> None:
    """Raise unless there is one whole number from 0 to ``classes`` - 1 for each example, and an example.

    Arguments:
        labels: (examples,) of whole numbers.
        classes: number of classes.
        name: of the dataset.
        examples: number of examples of the dataset.
        found: what an example is, and the shape of what was given, e.g. "input, got inputs (3, 8, 8)".
    """
    if labels.ndim != 1 or labels.is_floating_point() or examples != len(labels):
        shape = f"labels {tuple(labels.shape)} of {labels.dtype}"
        raise UsageError(f"dataset {name!r} needs one whole-number label for each {found}, {shape}")
    if examples == 0:
        raise UsageError(f"dataset {name!r} holds no examples; give at least one")
    low, high = int(labels.min()), int(labels.max())
    if low < 0 or high >= classes:
        raise UsageError(
            f"dataset {name!r} has labels from {low} to {high}; with classes={classes} they must lie in 0 to "
            f"{classes - 1}"
        )


def merge_labels(labels: Tensor, classes: int, new_labels: Sequence[int], name: str) -> tuple[Tensor, int]:
    """The labels with the classes renamed or merged, and the new number of classes.

    >>> merge_labels(torch.tensor([0, 1, 2, 1]), 3, [0, 1, 1], "points")
    (tensor([0, 1, 1, 1]), 2)

    Arguments:
        labels: (examples,) from 0 to ``classes`` - 1.
        classes: number of classes before.
        new_labels: for each of them the class it becomes, from 0.
        name: of the dataset.
    """
    if len(new_labels) != classes or any(not isinstance(new, int) or new < 0 for new in new_labels):
        raise UsageError(
            f"new_labels={list(new_labels)!r} must give a whole number of at least 0 for each of the {classes} "
            f"classes of {name!r}"
        )
    table = torch.tensor(new_labels, dtype=torch.int64, device=labels.device)
    return table[labels.long()], max(new_labels) + 1
