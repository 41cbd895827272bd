"""Models and inputs named on the command line."""

import importlib
import importlib.util
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import torch
from torch import nn

import jostle.data
import jostle.models
from jostle import specs
from jostle.errors import UsageError
from jostle.training import load_weights


def load_model(spec: str, weights: str | None = None, seed: int = 0) -> Callable[..., Any]:
    """The model a spec names: ``zoo:NAME[:key=value,...]`` or ``py:MODULE_OR_FILE:FACTORY[:key=value,...]``."""
    kind, _, rest = spec.partition(":")
    if kind == "zoo":
        name, _, options = rest.partition(":")
        positional, named = specs.arguments(options)
        if positional:
            raise UsageError(f"--model {spec}: write options as key=value, for example zoo:{name}:depth=2")
        model: Any = jostle.models.create(name, seed=seed, **named)
    elif kind == "py":
        model = _from_python(spec, rest)
        if not callable(model):
            raise UsageError(f"--model {spec}: the factory returned {type(model).__name__}, which cannot be called")
    else:
        raise UsageError(
            f"--model {spec!r} must start with zoo: or py:, for example zoo:mlp or py:my_module:make_model"
        )
    if weights is not None:
        if not isinstance(model, nn.Module):
            raise UsageError(f"--weights {weights}: the model {spec} is not an nn.Module, so it has no weights to load")
        load_weights(model, Path(weights))
    if isinstance(model, nn.Module):
        model.eval()
    made: Callable[..., Any] = model
    return made


def matching(inputs: Any, models: Iterable[Any]) -> Any:
    """Real-valued inputs in the type of the first model's parameters: files made by numpy are often float64."""
    parameters = (parameter for model in models if isinstance(model, nn.Module) for parameter in model.parameters())
    wanted = next((parameter.dtype for parameter in parameters if parameter.is_floating_point()), None)

    def cast(value: Any) -> Any:
        is_real = isinstance(value, torch.Tensor) and value.is_floating_point()
        return value.to(wanted) if is_real and wanted is not None else value

    return {key: cast(value) for key, value in inputs.items()} if isinstance(inputs, dict) else cast(inputs)


def load_inputs(spec: str, split: str, limit: int | None) -> Any:
    """The inputs a spec names: a dataset, a file (.npy, .npz, .safetensors), or ``py:MODULE_OR_FILE:FACTORY``."""
    if limit is not None and limit < 1:
        raise UsageError(f"--limit {limit} must be at least 1")
    if spec.startswith("py:"):
        return _first(_from_python(spec, spec.removeprefix("py:")), limit)
    path = Path(spec)
    if path.suffix in _READERS:
        return _first(_read(path), limit)
    return jostle.data.load(spec, split=split, limit=limit).inputs


def _from_python(spec: str, rest: str) -> Any:
    place, _, call = rest.partition(":")
    name, _, options = call.partition(":")
    if not place or not name:
        raise UsageError(f"{spec!r} must read py:MODULE_OR_FILE:FACTORY, for example py:my_module:make_model")
    module = _module(place)
    if not hasattr(module, name):
        raise UsageError(f"{spec!r}: {place} has no {name!r}")
    factory = getattr(module, name)
    positional, named = specs.arguments(options)
    return factory(*positional, **named) if callable(factory) and not isinstance(factory, nn.Module) else factory


def _module(place: str) -> ModuleType:
    if place.endswith(".py"):
        path = Path(place)
        if not path.is_file():
            raise UsageError(f"Python file {place} does not exist")
        description = importlib.util.spec_from_file_location(path.stem, path)
        assert description is not None
        assert description.loader is not None
        module = importlib.util.module_from_spec(description)
        sys.modules[path.stem] = module
        description.loader.exec_module(module)
        return module
    sys.path.insert(0, "")  # a module in the current folder, as with python -m
    try:
        return importlib.import_module(place)
    except ModuleNotFoundError as error:
        raise UsageError(f"Python module {place!r} cannot be imported: {error}") from None
    finally:
        sys.path.remove("")


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
    raise UsageError(f"--limit {limit} cannot be applied to inputs of type {type(inputs).__name__}")
