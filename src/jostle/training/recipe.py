"""The settings of a training run that decide its outcome, and whether two runs have the same."""

import re
import zlib
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import nn

from jostle.base import checks
from jostle.base.errors import KeptFileError, UsageError
from jostle.data import Dataset
from jostle.training.precision import PRECISIONS
from jostle.training.schedules import Schedule

OPTIMIZERS = ("adam", "adamw", "sgd")


@dataclass(frozen=True)
class Recipe:
    """Optimiser, learning rates, batches, precision and seed of a training run; see ``fit`` for each of them.

    Penalty and augmentation are here by their descriptions; the loop applies them.
    """

    optimizer: str
    lr: float
    schedule: Schedule
    momentum: float
    weight_decay: float
    clip: float | None
    batch_size: int
    precision: str
    seed: int
    penalty: str | None = None
    augment: str | None = None

    def __post_init__(self) -> None:
        checks.choice("optimizer", self.optimizer, OPTIMIZERS)
        checks.number("lr", self.lr, above=0)
        checks.number("momentum", self.momentum, least=0, below=1)
        if self.momentum and self.optimizer != "sgd":
            raise UsageError(f"momentum={self.momentum} is for optimizer='sgd'; {self.optimizer} has its own")
        checks.number("weight_decay", self.weight_decay, least=0)
        if self.clip is not None:
            checks.number("clip", self.clip, above=0, hint="; None for no clipping")
        checks.sizes(batch_size=self.batch_size)
        checks.whole("seed", self.seed)
        checks.choice("precision", self.precision, PRECISIONS)

    def lr_of(self, epoch: int) -> float:
        """The learning rate of ``epoch``, counted from 1."""
        return self.lr * self.schedule.multiplier(epoch)

    def check_length(self, max_epochs: int) -> None:
        """Raise if the learning rate of the last epoch is 0."""
        if self.lr_of(max_epochs) == 0:
            spec = self.schedule.describe()
            raise UsageError(
                f"max_epochs={max_epochs} is past the end of schedule={spec!r}: the learning rate is 0 there"
            )

    def build_optimizer(self, model: nn.Module) -> torch.optim.Optimizer:
        """The optimiser for all parameters of ``model``."""
        parameters = list(model.parameters())
        if not parameters:
            raise UsageError(f"{type(model).__name__} has no parameters: there is nothing to train")
        # foreach: the same weights, bit for bit, as torch's loop over the parameters, in two thirds of the time for a
        # small ViT (485 against 739 us a step of Adam). fused takes 174 us, but rounds otherwise.
        shared: dict[str, Any] = {"lr": self.lr, "weight_decay": self.weight_decay, "foreach": True}
        if self.optimizer == "sgd":
            return torch.optim.SGD(parameters, momentum=self.momentum, **shared)
        return (torch.optim.AdamW if self.optimizer == "adamw" else torch.optim.Adam)(parameters, **shared)

    def describe(self, model: nn.Module, dataset: Dataset) -> dict[str, Any]:
        """Everything that must be the same for a checkpoint to belong to this run, as JSON values.

        Architecture and contents are checksums. That of the architecture is of the printed model, which shows heads and
        activations that the shapes of the weights do not show.
        """
        printed = re.sub(r" at 0x[0-9a-f]+", "", repr(model))  # Addresses change from one process to the next.
        own = asdict(self)
        for name in ("penalty", "augment"):  # Left out where there is none, as in files from before there were any.
            if own[name] is None:
                del own[name]
        return own | {
            "schedule": self.schedule.describe(),
            "model": type(model).__name__,
            "model architecture": zlib.crc32(printed.encode()),
            "model dtype": str(next(model.parameters()).dtype),
            "dataset": dataset.name,
            "dataset split": dataset.split,
            "dataset length": len(dataset),
            "dataset classes": dataset.classes,
            "dataset contents": checksum(dataset),
        }


def check_same(stored: dict[str, Any], current: dict[str, Any], source: object) -> None:
    """Raise if the settings ``stored`` in a checkpoint differ from those of the ``current`` run, naming which.

    >>> check_same({"lr": 0.1, "seed": 0}, {"lr": 0.2, "seed": 0}, "a.file")
    Traceback (most recent call last):
    jostle.base.errors.KeptFileError: a.file is from another run: lr was 0.1, is 0.2; use those settings or another file
    """
    names = [*current, *(name for name in stored if name not in current)]
    differing = [
        f"{name} was {stored.get(name)}, is {current.get(name)}"
        for name in names
        if stored.get(name) != current.get(name)
    ]
    if differing:
        raise KeptFileError(
            f"{source} is from another run: {'; '.join(differing)}; use those settings or another file", str(source)
        )


def checksum(dataset: Dataset) -> int:
    """A number that tells the contents of datasets apart: crc32 of inputs and labels."""
    found = 0
    for tensor in (dataset.inputs, dataset.labels):
        found = zlib.crc32(f"{tensor.dtype} {tuple(tensor.shape)}".encode(), found)
        found = zlib.crc32(tensor.detach().cpu().contiguous().numpy().data, found)
    return found
