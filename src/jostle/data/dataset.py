"""What every dataset is: inputs, labels, and enough names to say in a record where they came from."""

from dataclasses import dataclass, replace

from torch import Tensor

from jostle.errors import UsageError

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
    """

    name: str
    inputs: Tensor
    labels: Tensor
    classes: int
    split: str = "train"

    def __post_init__(self) -> None:
        if self.labels.ndim != 1 or self.labels.is_floating_point() or len(self.inputs) != len(self.labels):
            shapes = f"inputs {tuple(self.inputs.shape)}, labels {tuple(self.labels.shape)} of {self.labels.dtype}"
            raise UsageError(f"dataset {self.name!r} needs one whole-number label for each input, got {shapes}")
        if len(self.labels) == 0:
            raise UsageError(f"dataset {self.name!r} holds no examples; give at least one")
        low, high = int(self.labels.min()), int(self.labels.max())
        if low < 0 or high >= self.classes:
            raise UsageError(
                f"dataset {self.name!r} has labels from {low} to {high}; with classes={self.classes} "
                f"they must lie in 0 to {self.classes - 1}"
            )

    def __len__(self) -> int:
        return len(self.labels)

    def subset(self, n: int) -> "Dataset":
        """The first ``n`` examples; the tensors share memory with this dataset's."""
        if not 1 <= n <= len(self):
            raise UsageError(f"cannot take {n} of the {len(self)} {self.split} examples of {self.name!r}")
        return replace(self, inputs=self.inputs[:n], labels=self.labels[:n])
