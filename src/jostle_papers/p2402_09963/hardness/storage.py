"""Training on disk: what to go on from; safetensors, whole or absent."""

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from jostle.base.errors import FailureError, UsageError
from jostle.base.files import check_writable, replacing
from jostle.training.recipe import check_same
from jostle_papers.stacked.adamw import StackedAdamW

FORMAT = "jostle-hardness-1"
STATE = "training.safetensors"


@dataclass
class State:
    """Training after some steps.

    Arguments:
        weights: (networks, columns).
        optimizer: its state, with the number of steps.
        loss: smoothed, (networks,); NaN before the first step of a length.
        fitted: after which step each network had fitted the full length, (networks,); -1 before.
        stage: which of the lengths is trained on.
    """

    weights: Tensor
    optimizer: StackedAdamW
    loss: Tensor
    fitted: Tensor
    stage: int = 0

    @classmethod
    def start(cls, weights: Tensor) -> "State":
        """Before the first step, from first weights (networks, columns)."""
        count = len(weights)
        nothing = torch.full((count,), torch.nan, dtype=torch.float64)
        return cls(weights, StackedAdamW.start(weights), nothing, torch.full((count,), -1))

    @property
    def steps(self) -> int:
        """How many are done."""
        return self.optimizer.steps


def checked_folder(folder: str | Path) -> Path:
    """``folder`` as a path, made if need be; raises at once, before any training, if no state can be written there."""
    if not isinstance(folder, str | os.PathLike):
        raise UsageError(f"folder={folder!r} must be the path of a folder, or None")
    path = Path(folder)
    if path.is_file():
        raise UsageError(f"folder={str(path)!r} is a file; expected a folder, or a name that is free")
    check_writable(path / STATE)
    return path


def save_state(path: Path, state: State, settings: dict[str, Any]) -> None:
    """Write the state of training, replacing an older one in one step."""
    tensors = {"weights": state.weights, "mean": state.optimizer.mean, "square": state.optimizer.square}
    tensors |= {"loss": state.loss, "fitted": state.fitted}
    about = json.dumps({"steps": state.steps, "stage": state.stage, "settings": settings})
    portable = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    with replacing(path) as temporary:
        try:
            save_file(portable, temporary, metadata={"format": FORMAT, "training": about})
        except SafetensorError as error:  # what a full disk raises here
            raise FailureError(f"could not write {path}: {error}; nothing was left behind") from error


def load_state(path: Path, settings: dict[str, Any]) -> State | None:
    """What ``save_state`` wrote, None if there is nothing; settings of another run are one clear line."""
    if not path.exists():
        return None
    try:
        with safe_open(path, framework="pt") as file:
            tensors = {name: file.get_tensor(name).clone() for name in file.keys()}  # noqa: SIM118
            metadata = file.metadata() or {}
        about = json.loads(metadata["training"])
        optimizer = StackedAdamW(tensors["mean"], tensors["square"], int(about["steps"]))
        state = State(tensors["weights"], optimizer, tensors["loss"], tensors["fitted"], int(about["stage"]))
        stored = dict(about["settings"])
    except (SafetensorError, OSError, KeyError, ValueError, TypeError) as error:
        raise UsageError(f"{path} cannot be read ({error}); delete it to start again") from None
    check_same(stored, settings, path)
    return state
