"""Weights and training state in one safetensors file: tensors and JSON, no pickle, whole or absent.

The weights stand under their ``state_dict`` names, so any reader of safetensors can use a checkpoint as a plain file
of weights. Optimiser state stands under ``optimizer/<parameter index>/<name>``; the settings, the number of epochs, the
loss and accuracy of every evaluation and the state of the gradient scaler are JSON in the file's metadata.
"""

import json
import zlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from jostle.base.errors import KeptFileError, UsageError
from jostle.base.files import parse_json
from jostle.base.weights import checksum, fill_weights, read_weights, write_weights
from jostle.training.evaluation import Evaluation

FORMAT, _BEFORE = "jostle-training-3", "jostle-training-2"
OPTIMIZER_PREFIX = "optimizer/"


@dataclass(frozen=True)
class Checkpoint:
    """The state of training after some epoch, from which it continues as if it had never stopped.

    Arguments:
        weights: the model's ``state_dict``.
        optimizer: for each parameter by its index, the optimiser's tensors by name.
        scaler: state of the gradient scaler; empty unless training is in float16.
        epochs: number of epochs done.
        record: loss and accuracy by the number of epochs done; 0 is before training.
        settings: those that must be the same for the run to continue; JSON values.
    """

    weights: dict[str, Tensor]
    optimizer: dict[int, dict[str, Tensor]]
    scaler: dict[str, Any]
    epochs: int
    record: dict[int, Evaluation]
    settings: dict[str, Any]


def save(
    path: str | Path,
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    scaler: torch.amp.GradScaler,
    *,
    epochs: int,
    record: Mapping[int, Evaluation],
    settings: Mapping[str, Any],
) -> None:
    """Write the state of training to ``path``, replacing an older checkpoint in one step."""
    tensors = _portable(model.state_dict())
    for index, state in optimizer.state_dict()["state"].items():
        present = {name: value for name, value in state.items() if value is not None}
        tensors |= _portable(present, prefix=f"{OPTIMIZER_PREFIX}{index}/")
    training = {
        "epochs": epochs,
        "record": [{"epoch": epoch} | asdict(evaluation) for epoch, evaluation in record.items()],
        "settings": dict(settings),
        "scaler": scaler.state_dict(),
    }
    about = json.dumps(training)
    write_weights(path, tensors, {"format": FORMAT, "training": about, "crc32": checksum(tensors, about)})


def load(path: str | Path) -> Checkpoint:
    """Read the file that ``save`` wrote; any other file is an error of one line."""
    try:
        tensors, metadata = read_weights(path)
    except UsageError as error:
        raise KeptFileError(str(error), path) from None
    if "training" not in metadata:
        raise KeptFileError(f"{path} holds weights but no training state, so training cannot continue from it", path)
    if metadata.get("format") not in (FORMAT, _BEFORE):
        found = metadata.get("format")
        raise KeptFileError(
            f"checkpoint {path} has format {found!r}, this version reads {FORMAT!r}; delete it to start again", path
        )
    if not _fits(tensors, metadata):
        raise KeptFileError(f"checkpoint {path} is damaged (its checksum does not fit); delete it to start again", path)
    optimizer: dict[int, dict[str, Tensor]] = {}
    try:
        training = parse_json(metadata["training"])
        record = {entry.pop("epoch"): Evaluation(**entry) for entry in training["record"]}
        epochs, settings, scaler = int(training["epochs"]), dict(training["settings"]), dict(training["scaler"])
        if not record:
            raise ValueError("no epoch in it")
        for key in [key for key in tensors if key.startswith(OPTIMIZER_PREFIX)]:
            _, index, name = key.split("/", maxsplit=2)
            optimizer.setdefault(int(index), {})[name] = tensors.pop(key)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise KeptFileError(f"checkpoint {path} is damaged ({error}); delete it to start again", path) from None
    return Checkpoint(tensors, optimizer, scaler, epochs, record, settings)


def restore(
    checkpoint: Checkpoint,
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    scaler: torch.amp.GradScaler,
    source: str | Path,
) -> None:
    """Restore the weights and the state of optimiser and scaler; ``source`` names the checkpoint in errors."""
    fill_weights(model, checkpoint.weights, source)
    groups = optimizer.state_dict()["param_groups"]
    optimizer.load_state_dict({"state": checkpoint.optimizer, "param_groups": groups})
    for parameter, state in optimizer.state.items():  # arranged in memory as it was, for the same speed and rounding
        for name, value in state.items():
            if value.shape == parameter.shape:
                state[name] = torch.empty_like(parameter, dtype=value.dtype, requires_grad=False).copy_(value)
    scaler.load_state_dict(checkpoint.scaler)


def save_weights(model: nn.Module, path: str | Path) -> None:
    """Write the weights of ``model`` as a plain safetensors file."""
    write_weights(path, _portable(model.state_dict()), {"format": "pt"})


def load_weights(model: nn.Module, path: str | Path) -> None:
    """Load weights into ``model`` from a safetensors file, a checkpoint of ``fit`` or a file of ``torch.save``.

    Names and shapes must be exactly the model's; values are converted to the model's own floating-point type. A file
    of ``torch.save`` is read without running code from it: see ``jostle.base.weights``.
    """
    tensors, metadata = read_weights(path)
    if "training" in metadata:
        tensors = {name: tensor for name, tensor in tensors.items() if not name.startswith(OPTIMIZER_PREFIX)}
    fill_weights(model, tensors, path)


def _fits(tensors: Mapping[str, Tensor], metadata: Mapping[str, str]) -> bool:
    """Whether a file holds what was written. The format before had a checksum without names and shapes, or none."""
    if metadata["format"] == FORMAT:
        return metadata.get("crc32") == checksum(tensors, metadata["training"])
    return metadata.get("crc32") in (None, _checksum_before(tensors, metadata["training"]))


def _checksum_before(tensors: Mapping[str, Tensor], about: str) -> str:
    found = zlib.crc32(about.encode())
    for name in sorted(tensors):
        found = zlib.crc32(tensors[name].contiguous().reshape(-1).view(torch.uint8).numpy().data, found)
    return f"{found:08x}"


def _portable(tensors: Mapping[str, Tensor], prefix: str = "") -> dict[str, Tensor]:
    # Cloned, because safetensors refuses tensors that share memory, as tied weights do.
    return {prefix + name: tensor.detach().cpu().contiguous().clone() for name, tensor in tensors.items()}
