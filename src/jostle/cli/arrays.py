"""Files of arrays on the command line: .npy, .npz and .safetensors, and the labels in them. No pickle is read.

A large .npy file is mapped into memory, so that it may be larger than the memory there is.
"""

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from jostle.base.errors import UsageError
from jostle.cli.labels import as_labels
from jostle.cli.mapped import LARGE

_LABELS = ("labels", "y", "label", "target", "targets")  # names of arrays that are not inputs


def _read_npy(path: Path) -> Any:
    return np.load(path, allow_pickle=False, mmap_mode="r" if path.stat().st_size > LARGE else None)


def _read_npz(path: Path) -> Any:
    with np.load(path, allow_pickle=False) as archive:
        arrays = {key: archive[key] for key in archive.files}
    return next(iter(arrays.values())) if len(arrays) == 1 else arrays


def _read_safetensors(path: Path) -> Any:
    from safetensors.torch import load_file

    tensors = load_file(path)
    return next(iter(tensors.values())) if len(tensors) == 1 else tensors


READERS = {".npy": _read_npy, ".npz": _read_npz, ".safetensors": _read_safetensors}


def read_arrays(path: Path, notes: list[str]) -> tuple[Any, Tensor | None]:
    """Inputs and labels of a file.

    Arguments:
        path: a .npy, .npz or .safetensors file.
        notes: gets a line about labels that cannot be used.
    """
    if not path.is_file():
        why = "it is no ordinary file" if path.exists() else "the file does not exist"
        raise UsageError(f"--data {path}: {why}")
    suffix = path.suffix.lower()
    try:
        arrays = READERS[suffix](path)
    except Exception as error:  # each format has its own errors for a truncated or foreign file
        reason = " ".join(str(error).split())
        if "allow_pickle" in reason:  # numpy's advice, which is none here
            reason = "it is not of that format, or holds Python objects, which are not loaded"
        raise UsageError(f"--data {path} cannot be read as {suffix}: {reason}") from None
    if not isinstance(arrays, dict):
        return _tensor(path, arrays), None
    tensors = {key: _tensor(path, array, f" as {key!r}") for key, array in arrays.items() if key not in _LABELS}
    if not tensors:
        raise UsageError(f"--data {path} holds {', '.join(arrays) or 'nothing'} and no inputs")
    inputs = tensors if len(tensors) > 1 else next(iter(tensors.values()))
    for key in (key for key in _LABELS if key in arrays):
        try:
            return inputs, as_labels(arrays[key], len(next(iter(tensors.values()))))
        except ValueError as reason:
            notes.append(f"no accuracy: the labels {key!r} of {path} cannot be used, {reason}")
    return inputs, None


def _tensor(path: Path, array: Any, name: str = "") -> Tensor:
    if isinstance(array, np.ndarray) and not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    if isinstance(array, np.ndarray) and array.dtype == np.longdouble:
        array = array.astype(np.float64)
    try:
        with warnings.catch_warnings():  # nothing is written into it
            warnings.filterwarnings("ignore", message=".*not writable.*")
            return torch.as_tensor(array)
    except (TypeError, ValueError):
        kind = "text" if array.dtype.kind in "SUT" else str(array.dtype)
        hint = ", of texts csv:FILE" if kind == "text" else ""
        raise UsageError(f"--data {path} holds {kind}{name}; expected an array of numbers{hint}") from None
