"""Weights and training state in one safetensors file: tensors and JSON, no pickle, whole or absent.

The weights stand under their ``state_dict`` names, so any reader of safetensors can use a checkpoint as a plain file
of weights. Optimiser state stands under ``optimizer/<parameter index>/<name>``; the settings and the loss and accuracy
of every epoch are JSON in the file's metadata.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from jostle.errors import FailureError, UsageError
from jostle.files import replacing
from jostle.training.evaluation import Evaluation

FORMAT = "jostle-training-1"
OPTIMIZER_PREFIX = "optimizer/"


@dataclass(frozen=True)
class Checkpoint:
    """Training after some epoch: everything needed to go on as if nothing had happened.

    Arguments:
        weights: the model's ``state_dict``.
        optimizer: for each parameter by its index, the optimiser's tensors by name.
        record: loss and accuracy after epoch 0 (before training), 1, 2, ...
        settings: what must be the same for the run to go on; JSON values.
    """

    weights: dict[str, Tensor]
    optimizer: dict[int, dict[str, Tensor]]
    record: list[Evaluation]
    settings: dict[str, Any]


def save(
    path: str | Path,
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    record: list[Evaluation],
    settings: Mapping[str, Any],
) -> None:
    """Write the state of training to ``path``, replacing an older checkpoint in one step."""
    tensors = _portable(model.state_dict())
    for index, state in optimizer.state_dict()["state"].items():
        present = {name: value for name, value in state.items() if value is not None}
        tensors |= _portable(present, prefix=f"{OPTIMIZER_PREFIX}{index}/")
    training = {"record": [asdict(evaluation) for evaluation in record], "settings": dict(settings)}
    _write(path, tensors, {"format": FORMAT, "training": json.dumps(training)})


def load(path: str | Path) -> Checkpoint:
    """Read what ``save`` wrote; any other file is one clear line."""
    tensors, metadata = _read(path)
    if "training" not in metadata:
        raise UsageError(f"{path} holds weights but no training state, so training cannot go on from it")
    if metadata.get("format") != FORMAT:
        raise UsageError(f"checkpoint {path} has format {metadata.get('format')!r}, this version reads {FORMAT!r}")
    optimizer: dict[int, dict[str, Tensor]] = {}
    try:
        training = json.loads(metadata["training"])
        record = [Evaluation(**evaluation) for evaluation in training["record"]]
        settings = dict(training["settings"])
        if not record:
            raise ValueError("no epoch in it")
        for key in [key for key in tensors if key.startswith(OPTIMIZER_PREFIX)]:
            _, index, name = key.split("/", maxsplit=2)
            optimizer.setdefault(int(index), {})[name] = tensors.pop(key)
    except (ValueError, KeyError, TypeError) as error:
        raise UsageError(f"checkpoint {path} is damaged ({error}); delete it to start again") from None
    return Checkpoint(tensors, optimizer, record, settings)


def restore(checkpoint: Checkpoint, model: nn.Module, optimizer: torch.optim.Optimizer, source: str | Path) -> None:
    """Put the weights and the optimiser state of ``checkpoint`` in place; ``source`` names it in errors."""
    _fill(model, checkpoint.weights, source)
    groups = optimizer.state_dict()["param_groups"]
    optimizer.load_state_dict({"state": checkpoint.optimizer, "param_groups": groups})


def save_weights(model: nn.Module, path: str | Path) -> None:
    """Write the weights of ``model`` as a plain safetensors file."""
    _write(path, _portable(model.state_dict()), {"format": "pt"})


def load_weights(model: nn.Module, path: str | Path) -> None:
    """Load weights into ``model`` from a plain safetensors file or from a checkpoint of ``fit``.

    Names and shapes must be exactly the model's; values are converted to the model's own floating-point type.
    """
    tensors, metadata = _read(path)
    if "training" in metadata:
        tensors = {name: tensor for name, tensor in tensors.items() if not name.startswith(OPTIMIZER_PREFIX)}
    _fill(model, tensors, path)


def _portable(tensors: Mapping[str, Tensor], prefix: str = "") -> dict[str, Tensor]:
    # Cloned, because safetensors refuses tensors that share memory, as tied weights do.
    return {prefix + name: tensor.detach().cpu().contiguous().clone() for name, tensor in tensors.items()}


def _write(path: str | Path, tensors: dict[str, Tensor], metadata: dict[str, str]) -> None:
    with replacing(path) as temporary:
        try:
            save_file(tensors, temporary, metadata=metadata)
        except SafetensorError as error:  # What a full disk raises here.
            raise FailureError(f"could not write {path}: {error}; nothing was left behind") from error


def _read(path: str | Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    """All tensors of a safetensors file and its metadata."""
    if not Path(path).exists():
        raise UsageError(f"weights file {path} does not exist")
    try:
        with safe_open(path, framework="pt") as file:
            return {name: file.get_tensor(name) for name in file.keys()}, file.metadata() or {}  # noqa: SIM118
    except SafetensorError as error:
        raise UsageError(f"{path} is not a whole safetensors file ({error})") from None
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror or error}") from None


def _fill(model: nn.Module, tensors: Mapping[str, Tensor], source: str | Path) -> None:
    """Copy ``tensors`` into ``model``, or say what does not fit and leave the model as it was."""
    own = model.state_dict()
    problems = [f"lacks {name}" for name in own if name not in tensors]
    problems += [f"has unexpected {name}" for name in tensors if name not in own]
    problems += [
        f"has {name} of shape {tuple(tensors[name].shape)} where the model has {tuple(own[name].shape)}"
        for name in own
        if name in tensors and tensors[name].shape != own[name].shape
    ]
    if problems:
        more = f" (and {len(problems) - 3} more)" if len(problems) > 3 else ""
        raise UsageError(f"{source} does not fit {type(model).__name__}: it {'; '.join(problems[:3])}{more}")
    model.load_state_dict(dict(tensors))
