"""Models and inputs named on the command line."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

import jostle.data
from jostle import integrations
from jostle.base.errors import UsageError
from jostle.data.image_folder import PREFIX, SUFFIXES, ImageFiles, open_images
from jostle.integrations.python import call_factory
from jostle.training import load_weights

_LABELS = ("labels", "y")  # names of arrays that are no inputs
_TABLES = (".csv", ".tsv", ".tab")


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
        return integrations.prepare_images(inputs, models)
    parameters = (parameter for model in models if isinstance(model, nn.Module) for parameter in model.parameters())
    wanted = next((parameter.dtype for parameter in parameters if parameter.is_floating_point()), None)

    def cast(value: Any) -> Any:
        is_real = isinstance(value, torch.Tensor) and value.is_floating_point()
        return value.to(wanted) if is_real and wanted is not None else value

    return {key: cast(value) for key, value in inputs.items()} if isinstance(inputs, dict) else cast(inputs)


def load_inputs(spec: str, split: str, limit: int | None) -> Any:
    """The inputs a spec names: a dataset, ``images:DIR``, a file (.npy, .npz, .safetensors), or ``py:FILE:FACTORY``."""
    return load_labelled(spec, split, limit)[0]


def load_labelled(spec: str, split: str, limit: int | None) -> tuple[Any, torch.Tensor | None]:
    """The same, and the labels that a file holds beside them, (N,) of whole numbers; None if there are none."""
    if limit is not None and limit < 1:
        raise UsageError(f"--limit {limit} must be at least 1")
    if has_no_splits(spec) and split != "train":
        raise UsageError(f"--split {split}: --data {spec} has no splits, it is used as it is: leave --split out")
    if spec.startswith("py:"):
        return _first(call_factory(spec), limit), None
    if spec.startswith(PREFIX):
        return open_images(spec, split, limit), None
    if has_no_splits(spec):
        inputs, labels = _read(Path(spec))
        return _first(inputs, limit), _first(labels, limit)
    check_name(spec)
    return jostle.data.load(spec, split=split, limit=limit).inputs, None


def has_no_splits(spec: str) -> bool:
    """Whether data are used as they are: a file of arrays, or what a function of your own returns."""
    return spec.startswith("py:") or Path(spec).suffix.lower() in _READERS


def check_name(spec: str) -> None:
    """Raise if a spec that should name a dataset is a file or a folder instead: most likely its prefix is missing."""
    path = Path(spec)
    if ":" in spec or spec in jostle.data.names("all"):
        return
    if path.is_dir():
        raise UsageError(f"--data {spec} is a folder and no dataset: write images:{spec} for the images in it")
    if any(suffix in _TABLES for suffix in path.suffixes):
        raise UsageError(f"--data {spec} is a table and no dataset: write csv:{spec} for the texts in it")
    if path.suffix.lower() in SUFFIXES:
        raise UsageError(f"--data {spec} is one image and no dataset: write images:{path.parent} for its folder")
    if path.is_file():
        raise UsageError(f"--data {spec} is a file that cannot be read: {', '.join(_READERS)} or csv:FILE expected")


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


def _read(path: Path) -> tuple[Any, torch.Tensor | None]:
    """Inputs and labels of a file."""
    if not path.is_file():
        raise UsageError(f"--data {path}: the file does not exist")
    suffix = path.suffix.lower()
    try:
        arrays = _READERS[suffix](path)
    except Exception as error:  # each format has its own errors for a truncated or foreign file
        raise UsageError(f"--data {path} cannot be read as {suffix}: {' '.join(str(error).split())}") from None
    if not isinstance(arrays, dict):
        return _tensor(path, arrays), None
    tensors = {key: _tensor(path, array, f" as {key!r}") for key, array in arrays.items() if key not in _LABELS}
    if not tensors:
        raise UsageError(f"--data {path} holds {', '.join(arrays) or 'nothing'} and no inputs")
    inputs = tensors if len(tensors) > 1 else next(iter(tensors.values()))
    labels = [array for key, array in arrays.items() if key in _LABELS]
    return inputs, _labels(labels[0], tensors.values()) if labels else None


def _tensor(path: Path, array: Any, name: str = "") -> torch.Tensor:
    if isinstance(array, np.ndarray) and not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    try:
        return torch.as_tensor(array)
    except (TypeError, ValueError):
        kind = "text" if array.dtype.kind in "SUT" else str(array.dtype)
        hint = ", of texts csv:FILE" if kind == "text" else ""
        raise UsageError(f"--data {path} holds {kind}{name}; expected an array of numbers{hint}") from None


def _labels(given: Any, inputs: Iterable[torch.Tensor]) -> torch.Tensor | None:
    """The labels, if they are the number of a class for each input."""
    if isinstance(given, np.ndarray):
        given = torch.from_numpy(given.astype(np.int64)) if given.dtype.kind in "biu" else torch.empty(())
    is_whole = given.dim() == 1 and not given.is_floating_point()
    return given.long() if is_whole and all(tensor.shape[:1] == given.shape for tensor in inputs) else None


def _first(inputs: Any, limit: int | None) -> Any:
    if limit is None or inputs is None:
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
