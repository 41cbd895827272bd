"""Labels of classes: what datasets of inputs and of texts ask of them, and merging classes."""

from collections.abc import Sequence

import torch
from torch import Tensor

from jostle.errors import UsageError


def check_labels(labels: Tensor, classes: int, *, name: str, examples: int, said: str) -> None:
    """Raise unless there is one whole number from 0 to ``classes`` - 1 for each example, and an example.

    Arguments:
        labels: (examples,) of whole numbers.
        classes: how many there are.
        name: of the dataset.
        examples: how many the dataset has.
        said: what an example is, and what there is of them, e.g. "input, got inputs (3, 8, 8)".
    """
    if labels.ndim != 1 or labels.is_floating_point() or examples != len(labels):
        shape = f"labels {tuple(labels.shape)} of {labels.dtype}"
        raise UsageError(f"dataset {name!r} needs one whole-number label for each {said}, {shape}")
    if examples == 0:
        raise UsageError(f"dataset {name!r} holds no examples; give at least one")
    low, high = int(labels.min()), int(labels.max())
    if low < 0 or high >= classes:
        raise UsageError(
            f"dataset {name!r} has labels from {low} to {high}; with classes={classes} they must lie in 0 to "
            f"{classes - 1}"
        )


def merged(labels: Tensor, classes: int, new_labels: Sequence[int], name: str) -> tuple[Tensor, int]:
    """The labels with the classes renamed or merged, and how many classes there are then.

    >>> merged(torch.tensor([0, 1, 2, 1]), 3, [0, 1, 1], "points")
    (tensor([0, 1, 1, 1]), 2)

    Arguments:
        labels: (examples,) from 0 to ``classes`` - 1.
        classes: how many there are now.
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
