"""What every dataset is: inputs, labels, and enough names to say in a record where they came from."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from jostle.data.labels import check_labels, merged
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
        name: what records and checkpoints call it.
        inputs: a batch of examples, # (examples, ...).
        labels: whole numbers from 0 to ``classes`` - 1, # (examples,) of int64.
        classes: how many classes there are, whether or not each of them occurs.
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
        said = f"input, got inputs {tuple(self.inputs.shape)}"
        check_labels(self.labels, self.classes, name=self.name, examples=len(self.inputs), said=said)

    def __len__(self) -> int:
        return len(self.labels)

    def subset(self, n: int | None = None, *, seed: int | None = None, balanced: bool = False) -> "Dataset":
        """``n`` examples: the first, or a random choice by ``seed``, or as many of each class.

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
            name: what records call the result.
        """
        labels, classes = merged(self.labels, self.classes, new_labels, self.name)
        return replace(self, name=name, labels=labels, classes=classes)
