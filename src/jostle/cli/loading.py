"""Models and inputs named on the command line."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

import jostle.data
from jostle import integrations
from jostle.data.image_folder import PREFIX, ImageFiles, open_images
from jostle.errors import UsageError
from jostle.integrations.python import made
from jostle.training import load_weights


def load_model(spec: str, weights: str | None = None, seed: int = 0) -> Callable[..., Any]:
    """The model a spec names, see ``jostle.integrations.load``, with the weights of a safetensors file if given."""
    model = integrations.load(spec, seed=seed)
    if weights is not None:
        if not isinstance(model, nn.Module):
            raise UsageError(f"--weights {weights}: the model {spec} is not an nn.Module, so it has no weights to load")
        wrapped = integrations.ImageClassifier | integrations.TextClassifier
        load_weights(model.network if isinstance(model, wrapped) else model, Path(weights))
    return model


def matching(inputs: Any, models: Iterable[Any]) -> Any:
    """Inputs as the models take them.

    Real numbers get the type of the first model's parameters: files made by numpy are often float64. Images of a folder
    get the size and the normalisation that the models ask for.
    """
    models = list(models)
    if isinstance(inputs, ImageFiles):
        return integrations.fitted(inputs, models)
    parameters = (parameter for model in models if isinstance(model, nn.Module) for parameter in model.parameters())
    wanted = next((parameter.dtype for parameter in parameters if parameter.is_floating_point()), None)

    def cast(value: Any) -> Any:
        is_real = isinstance(value, torch.Tensor) and value.is_floating_point()
        return value.to(wanted) if is_real and wanted is not None else value

    return {key: cast(value) for key, value in inputs.items()} if isinstance(inputs, dict) else cast(inputs)


def load_inputs(spec: str, split: str, limit: int | None) -> Any:
    """The inputs a spec names: a dataset, ``images:DIR``, a file (.npy, .npz, .safetensors), or ``py:FILE:FACTORY``."""
    if limit is not None and limit < 1:
        raise UsageError(f"--limit {limit} must be at least 1")
    if spec.startswith("py:"):
        return _first(made(spec), limit)
    if spec.startswith(PREFIX):
        return open_images(spec, split, limit)
    path = Path(spec)
    if path.suffix in _READERS:
        return _first(_read(path), limit)
    return jostle.data.load(spec, split=split, limit=limit).inputs


def _read_npy(path: Path) -> Any:
    return np.load(path, allow_pickle=False)


def _read_npz(path: Path) -> Any:
    with np.load(path, allow_pickle=False) as archive:
        arrays = {key: archive[key] for key in archive.files}
    return next(iter(arrays.values())) if len(arrays) == 1 else arrays


def _read_safetensors(path: Path) -> Any:
    from safetensors.torch import load_file

    tensors = load_file(path)
    return next(iter(tensors.values())) if len(tensors) == 1 else tensors


_READERS = {".npy": _read_npy, ".npz": _read_npz, ".safetensors": _read_safetensors}


def _read(path: Path) -> Any:
    if not path.is_file():
        raise UsageError(f"--data {path}: the file does not exist")
    try:
        arrays = _READERS[path.suffix](path)
    except Exception as error:  # each format has its own errors for a truncated or foreign file
        raise UsageError(f"--data {path} cannot be read as {path.suffix}: {' '.join(str(error).split())}") from None
    if isinstance(arrays, dict):
        return {key: torch.as_tensor(array) for key, array in arrays.items() if key not in ("labels", "y")}
    return torch.as_tensor(arrays)


def _first(inputs: Any, limit: int | None) -> Any:
    if limit is None:
        return inputs
    if isinstance(inputs, dict):
        return {key: value[:limit] for key, value in inputs.items()}
    if isinstance(inputs, torch.Tensor | np.ndarray):
        return inputs[:limit]
    if isinstance(inputs, ImageFiles):
        return inputs.first(limit)
    if isinstance(inputs, jostle.data.TextDataset):
        return inputs.subset(min(limit, len(inputs)))
    raise UsageError(f"--limit {limit} cannot be applied to inputs of type {type(inputs).__name__}")
