"""How weights are changed: the settings of a run that decide its outcome, checked once."""

import contextlib
import math
import re
import zlib
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import nn

from jostle.base.errors import UsageError
from jostle.base.registry import unknown_name
from jostle.data import Dataset
from jostle.training.schedules import Schedule

_AUTOCAST = {"float32": None, "bfloat16": torch.bfloat16, "float16": torch.float16}
PRECISIONS = tuple(_AUTOCAST)


def check_precision(precision: str, model: nn.Module, device: torch.device) -> None:
    """Raise if steps in ``precision`` are impossible for this model on this device."""
    check_name(precision)
    if precision == "float16" and device.type != "cuda":
        raise UsageError(f"precision='float16' needs a cuda device, not {device.type}; use precision='bfloat16'")
    types = {parameter.dtype for parameter in model.parameters()}
    if precision != "float32" and types != {torch.float32}:
        found = ", ".join(sorted(str(kind).removeprefix("torch.") for kind in types))
        # Autocast leaves weights of any other type as they are, so nothing would change, silently.
        raise UsageError(f"precision={precision!r} needs float32 weights, the model has {found}; call model.float()")


def check_name(precision: str) -> None:
    """Raise unless ``precision`` is one of ``PRECISIONS``."""
    if precision not in PRECISIONS:
        raise unknown_name("precision", str(precision), PRECISIONS)


def autocast(precision: str, device: torch.device) -> contextlib.AbstractContextManager[object]:
    """A context for a forward pass; it does nothing for ``float32``."""
    kind = _AUTOCAST[precision]
    return contextlib.nullcontext() if kind is None else torch.autocast(device.type, dtype=kind)


def gradient_scaler(precision: str, device: torch.device) -> torch.amp.GradScaler:
    """Scales the loss where small gradients would be rounded to 0, in ``float16``; otherwise it passes all through."""
    return torch.amp.GradScaler(device.type, enabled=precision == "float16")


OPTIMIZERS = ("adam", "adamw", "sgd")


@dataclass(frozen=True)
class Recipe:
    """Optimiser, learning rates, batches, precision and seed of a training run; see ``fit`` for each of them.

    Penalty and augmentation are named by their description; what they do is the loop's.
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
        if self.optimizer not in OPTIMIZERS:
            raise unknown_name("optimizer", str(self.optimizer), OPTIMIZERS)
        if not 0 < self.lr < math.inf:
            raise UsageError(f"lr must be a positive number, got {self.lr}")
        if not 0 <= self.momentum < 1:
            raise UsageError(f"momentum must lie in [0, 1), got {self.momentum}")
        if self.momentum and self.optimizer != "sgd":
            raise UsageError(f"momentum={self.momentum} is for optimizer='sgd'; {self.optimizer} has its own")
        if not 0 <= self.weight_decay < math.inf:
            raise UsageError(f"weight_decay must be at least 0, got {self.weight_decay}")
        if self.clip is not None and not 0 < self.clip < math.inf:
            raise UsageError(f"clip must be a positive norm, got {self.clip}; None for no clipping")
        if not isinstance(self.batch_size, int) or self.batch_size < 1:
            raise UsageError(f"batch_size must be a whole number of at least 1, got {self.batch_size!r}")
        if not isinstance(self.seed, int):
            raise UsageError(f"seed must be a whole number, got {self.seed!r}")
        check_name(self.precision)

    def lr_of(self, epoch: int) -> float:
        """The learning rate of ``epoch``, counted from 1."""
        return self.lr * self.schedule.multiplier(epoch)

    def check_length(self, max_epochs: int) -> None:
        """Raise if the last of so many epochs would learn nothing."""
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

        Architecture and contents are checksums; the architecture's is of the printed model, which shows heads and
        activations that the shapes of the weights do not.
        """
        printed = re.sub(r" at 0x[0-9a-f]+", "", repr(model))  # Addresses change from one process to the next.
        own = asdict(self)
        for name in ("penalty", "augment"):  # Named only where there is one: runs without know nothing of them.
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
    jostle.base.errors.UsageError: a.file is from another run: lr was 0.1, is 0.2; use those settings or another file
    """
    names = [*current, *(name for name in stored if name not in current)]
    differing = [
        f"{name} was {stored.get(name)}, is {current.get(name)}"
        for name in names
        if stored.get(name) != current.get(name)
    ]
    if differing:
        raise UsageError(f"{source} is from another run: {'; '.join(differing)}; use those settings or another file")


def checksum(dataset: Dataset) -> int:
    """A number that tells the contents of datasets apart: crc32 of inputs and labels."""
    found = 0
    for tensor in (dataset.inputs, dataset.labels):
        found = zlib.crc32(f"{tensor.dtype} {tuple(tensor.shape)}".encode(), found)
        found = zlib.crc32(tensor.detach().cpu().contiguous().numpy().data, found)
    return found
