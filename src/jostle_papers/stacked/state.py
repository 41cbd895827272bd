"""Training on disk: the state to resume from, and weights kept along the way. Safetensors, no pickle, whole or absent.

``jostle.training.checkpoints`` is for one module and an optimiser of torch; here both are plain tensors.
"""

import dataclasses
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self, TypeVar

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from jostle.base import checks
from jostle.base.errors import KeptFileError, UsageError
from jostle.base.files import check_writable, parse_json
from jostle.base.model import on_device
from jostle.base.weights import checksum, write_weights
from jostle.training.recipe import check_same
from jostle_papers.stacked.adamw import StackedAdamW

FORMAT = "jostle-stacked-1"
STATE = "training.safetensors"

AnyState = TypeVar("AnyState", bound="StackedState")


@dataclass
class StackedState:
    """Training after some steps. A subclass adds what its training must remember, as fields that are tensors.

    Arguments:
        weights: (networks, columns).
        optimizer: its state, with the number of steps.
    """

    weights: Tensor
    optimizer: StackedAdamW

    @classmethod
    def start(cls, weights: Tensor) -> Self:
        """The state before the first step, from first weights (networks, columns)."""
        return cls(weights, StackedAdamW.start(weights))

    @classmethod
    def from_tensors(cls, tensors: dict[str, Tensor], steps: int) -> Self:
        """The state with these tensors, after ``steps`` steps."""
        own = {name: tensor for name, tensor in tensors.items() if name not in ("mean", "square")}
        return cls(optimizer=StackedAdamW(tensors["mean"], tensors["square"], steps), **own)

    @property
    def steps(self) -> int:
        """How many are done."""
        return self.optimizer.steps

    def tensors(self) -> dict[str, Tensor]:
        """All tensors by name."""
        own = {field.name: getattr(self, field.name) for field in dataclasses.fields(self) if field.name != "optimizer"}
        return own | {"mean": self.optimizer.mean, "square": self.optimizer.square}

    def to(self, device: str | torch.device) -> Self:
        """The same state on ``device``."""
        place = on_device(device)
        return self.from_tensors({name: tensor.to(place) for name, tensor in self.tensors().items()}, self.steps)


def check_folder(folder: str | Path) -> Path:
    """``folder`` as a path. Makes it if it is missing; raises, before any training, if it cannot hold a state."""
    if not isinstance(folder, str | os.PathLike):
        raise checks.wrong("folder", folder, "the path of a folder, or None")
    path = Path(folder)
    if path.is_file():
        raise UsageError(f"folder={str(path)!r} is a file; expected a folder, or a name that is free")
    check_writable(path / STATE)
    return path


def save_state(folder: Path, state: StackedState, settings: dict[str, Any]) -> None:
    """Write the state of training, replacing an older one in one step.

    Arguments:
        folder: where training is.
        state: what to resume from.
        settings: what must be the same for training to resume; JSON values.
    """
    about = json.dumps({"steps": state.steps, "settings": settings})
    _write(folder / STATE, state.tensors(), {"format": FORMAT, "training": about})


def load_state(kind: type[AnyState], folder: Path, settings: dict[str, Any]) -> AnyState | None:
    """What ``save_state`` wrote, None if there is nothing. A state of other settings raises an error of one line."""
    path = folder / STATE
    if not path.exists():
        return None
    tensors, about = _read_training(path)
    try:
        # Cloned into memory of torch's own, aligned as before: the alignment of numbers to the cache rounds products.
        state = kind.from_tensors({name: tensor.clone() for name, tensor in tensors.items()}, int(about["steps"]))
    except (KeyError, ValueError, TypeError) as error:
        raise KeptFileError(f"{path} is damaged ({error}); delete it to start again", path) from None
    check_same(about["settings"], settings, path)
    return state


def load_settings(folder: Path) -> dict[str, Any]:
    """The settings of the training in ``folder``."""
    path = folder / STATE
    if not path.exists():
        raise UsageError(f"there is no training in {folder}: {STATE} is missing")
    return dict(_read_training(path)[1]["settings"])


def save_weights(folder: Path, step: int, weights: Tensor) -> None:
    """Keep the weights after ``step``."""
    _write(_weights_path(folder, step), {"weights": weights}, {"format": FORMAT})


def load_weights(folder: Path, step: int) -> Tensor:
    """The weights that ``save_weights`` kept."""
    path = _weights_path(folder, step)
    if not path.exists():
        raise UsageError(f"there are no weights of step {step} in {folder}")
    return _read(path)[0]["weights"]


def kept_steps(folder: Path) -> tuple[int, ...]:
    """The steps after which the weights were kept in ``folder``, in order."""
    return tuple(sorted(int(path.stem.removeprefix("weights-")) for path in folder.glob("weights-*.safetensors")))


def _weights_path(folder: Path, step: int) -> Path:
    return folder / f"weights-{step:06d}.safetensors"


def _read_training(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Tensors of a state, and its steps and settings."""
    tensors, metadata = _read(path)
    if metadata.get("format") != FORMAT:
        raise KeptFileError(
            f"{path} has format {metadata.get('format')!r}, this version reads {FORMAT!r}; delete it to start again",
            path,
        )
    try:
        about: dict[str, Any] = parse_json(metadata["training"])
        if not isinstance(about["steps"], int) or not isinstance(about["settings"], dict):
            raise TypeError("no steps or no settings")
    except (KeyError, ValueError, TypeError) as error:
        raise KeptFileError(f"{path} is damaged ({error}); delete it to start again", path) from None
    return tensors, about


def _write(path: Path, tensors: dict[str, Tensor], metadata: dict[str, str]) -> None:
    portable = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    write_weights(path, portable, {**metadata, "crc32": checksum(portable, metadata.get("training", ""))})


def _read(path: Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    try:
        with safe_open(path, framework="pt") as file:
            tensors, metadata = {name: file.get_tensor(name) for name in file.keys()}, file.metadata() or {}  # noqa: SIM118
    except (SafetensorError, OSError) as error:
        raise KeptFileError(f"{path} cannot be read ({error}); delete it to start again", path) from None
    if metadata.get("crc32") not in (None, checksum(tensors, metadata.get("training", ""))):  # earlier files have none
        raise KeptFileError(f"{path} is damaged (its checksum does not fit); delete it to start again", path)
    return tensors, metadata
