"""Training on disk: the state to go on from, and the weights along the way; safetensors, whole or absent.

``jostle.training.checkpoints`` is for one module and one optimiser of torch; here both are three plain tensors.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from jostle.base.errors import FailureError, UsageError
from jostle.base.files import replacing
from jostle.training.recipe import check_same
from jostle_papers.stacked.adamw import StackedAdamW

FORMAT = "jostle-grokking-1"
STATE = "training.safetensors"


@dataclass
class State:
    """Training after some epochs.

    Arguments:
        weights: (networks, columns).
        optimizer: its state; the number of its steps is the number of epochs.
    """

    weights: Tensor
    optimizer: StackedAdamW

    @property
    def epochs(self) -> int:
        """How many are done."""
        return self.optimizer.steps


def save_state(folder: Path, state: State, settings: dict[str, Any]) -> None:
    """Write the state of training, replacing an older one in one step."""
    tensors = {"weights": state.weights, "mean": state.optimizer.mean, "square": state.optimizer.square}
    about = {"epochs": state.epochs, "settings": settings}
    _write(folder / STATE, tensors, {"format": FORMAT, "training": json.dumps(about)})


def load_state(folder: Path, settings: dict[str, Any]) -> State | None:
    """What ``save_state`` wrote, None if there is nothing; settings of another run are one clear line."""
    path = folder / STATE
    if not path.exists():
        return None
    state, stored = _state(path)
    check_same(stored, settings, path)
    return state


def load_settings(folder: Path) -> dict[str, Any]:
    """The settings of the training in ``folder``."""
    path = folder / STATE
    if not path.exists():
        raise UsageError(f"there is no training in {folder}: {STATE} is missing")
    return _state(path)[1]


def kept(folder: Path) -> tuple[int, ...]:
    """The epochs of which ``folder`` has the weights, in order."""
    return tuple(sorted(int(path.stem.removeprefix("weights-")) for path in folder.glob("weights-*.safetensors")))


def save_weights(folder: Path, epoch: int, weights: Tensor) -> None:
    """Write the weights after ``epoch``."""
    _write(_snapshot(folder, epoch), {"weights": weights}, {"format": FORMAT})


def load_weights(folder: Path, epoch: int) -> Tensor:
    """What ``save_weights`` wrote."""
    path = _snapshot(folder, epoch)
    if not path.exists():
        raise UsageError(f"there are no weights of epoch {epoch} in {folder}")
    return _read(path)[0]["weights"]


def _snapshot(folder: Path, epoch: int) -> Path:
    return folder / f"weights-{epoch:06d}.safetensors"


def _state(path: Path) -> tuple[State, dict[str, Any]]:
    tensors, metadata = _read(path)
    if metadata.get("format") != FORMAT:
        raise UsageError(
            f"{path} has format {metadata.get('format')!r}, this version reads {FORMAT!r}; delete it to start again"
        )
    try:
        about = json.loads(metadata["training"])
        # Cloned into memory of torch's own, arranged as it was: how numbers lie to a line of the cache rounds products.
        weights, mean, square = (tensors[name].clone() for name in ("weights", "mean", "square"))
        return State(weights, StackedAdamW(mean, square, int(about["epochs"]))), dict(about["settings"])
    except (KeyError, ValueError, TypeError) as error:
        raise UsageError(f"{path} is damaged ({error}); delete it to start again") from None


def _write(path: Path, tensors: dict[str, Tensor], metadata: dict[str, str]) -> None:
    portable = {name: tensor.cpu().contiguous() for name, tensor in tensors.items()}
    with replacing(path) as temporary:
        try:
            save_file(portable, temporary, metadata=metadata)
        except SafetensorError as error:  # what a full disk raises here
            raise FailureError(f"could not write {path}: {error}; nothing was left behind") from error


def _read(path: Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    try:
        with safe_open(path, framework="pt") as file:
            return {name: file.get_tensor(name) for name in file.keys()}, file.metadata() or {}  # noqa: SIM118
    except (SafetensorError, OSError) as error:
        raise UsageError(f"{path} cannot be read ({error}); delete it to start again") from None
