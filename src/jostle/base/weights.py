"""Weights in files: safetensors, or a file of ``torch.save`` read without running code from it."""

import json
import pickle
import zlib
from collections.abc import Mapping
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from jostle.base.errors import FailureError, UsageError
from jostle.base.files import replacing

_PICKLED = (".pt", ".pth", ".th", ".bin", ".ckpt", ".tar")
_NESTED = ("state_dict_ema", "state_dict", "model_state_dict", "model")  # where training scripts keep the weights
_PARALLEL = "module."  # what torch.nn.DataParallel puts before each name
_LISTED = 3  # problems that a message names


def read_weights(path: str | Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    """All tensors of a file by name, and the metadata of a safetensors file.

    Arguments:
        path: a safetensors file, or a file of ``torch.save`` that ends in .pt, .pth, .th, .bin, .ckpt or .tar and holds
            a state dict, or a dict with one under a usual name such as ``state_dict`` or ``model``.
    """
    path = Path(path).expanduser()
    if not path.exists():
        raise UsageError(f"weights file {path} does not exist")
    if path.suffix.lower() in _PICKLED:
        return _read_pickled(path), {}
    try:
        with safe_open(path, framework="pt") as file:
            return {name: file.get_tensor(name) for name in file.keys()}, file.metadata() or {}  # noqa: SIM118
    except SafetensorError as error:
        raise UsageError(f"{path} is not a safetensors file, or not the whole of one ({error})") from None
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror or error}") from None


def write_weights(path: str | Path, tensors: dict[str, Tensor], metadata: dict[str, str]) -> None:
    """Write a safetensors file. Equal contents are equal bytes; after an error there is no file, or the one before."""
    with replacing(path) as temporary:
        try:
            save_file(tensors, temporary, metadata=metadata)
        except SafetensorError as error:  # as for a full disk
            raise FailureError(f"could not write {path}: {error}; nothing was left behind") from error
        _sort_metadata(temporary)


def _sort_metadata(path: Path) -> None:
    """Put the metadata of a safetensors file in order: the library writes them in one of chance."""
    with path.open("r+b") as file:
        length = int.from_bytes(file.read(8), "little")
        header = json.loads(file.read(length))
        header["__metadata__"] = dict(sorted(header["__metadata__"].items()))
        text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
        if len(text) <= length:
            file.seek(8)
            file.write(text.ljust(length))


def checksum(tensors: Mapping[str, Tensor], about: str = "") -> str:
    """The CRC-32 of tensors with their names, types and shapes, and of a text beside them, in hexadecimal digits."""
    found = zlib.crc32(about.encode())
    for name in sorted(tensors):
        tensor = tensors[name].detach().cpu().contiguous()
        found = zlib.crc32(f"{name} {tensor.dtype} {tuple(tensor.shape)} ".encode(), found)
        found = zlib.crc32(tensor.reshape(-1).view(torch.uint8).numpy().data, found)
    return f"{found:08x}"


def _read_pickled(path: Path) -> dict[str, Tensor]:
    try:
        found = torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError:
        raise UsageError(
            f"{path} cannot be read without running code in it, and jostle runs no code from a file of weights; save "
            "the weights alone with torch.save(model.state_dict(), FILE)"
        ) from None
    except Exception as error:  # a truncated or foreign file: each part of torch has its own errors
        reason = " ".join(str(error).split())[:200]
        raise UsageError(f"{path} cannot be read as a file of torch.save: {reason}") from None
    for key in _NESTED:
        if isinstance(found, dict) and isinstance(found.get(key), dict):
            found = found[key]
            break
    if not isinstance(found, dict) or not found or not all(isinstance(value, Tensor) for value in found.values()):
        raise UsageError(f"{path} holds no dictionary of tensors; expected a model's state_dict")
    return {str(key).removeprefix(_PARALLEL): value for key, value in found.items()}


def fill_weights(model: nn.Module, tensors: Mapping[str, Tensor], source: str | Path) -> None:
    """Copy ``tensors`` into ``model``; if some do not fit, raise and leave the model as it was.

    Arguments:
        model: whose names and shapes must be exactly those of the tensors; values get its floating-point types.
        tensors: by name.
        source: where they come from, for the message.
    """
    own = model.state_dict()
    problems = [f"lacks {name}" for name in own if name not in tensors]
    problems += [f"has unexpected {name}" for name in tensors if name not in own]
    problems += [
        f"has {name} of shape {tuple(tensors[name].shape)} where the model has {tuple(own[name].shape)}"
        for name in own
        if name in tensors and tensors[name].shape != own[name].shape
    ]
    if problems:
        more = f" (and {len(problems) - _LISTED} more)" if len(problems) > _LISTED else ""
        raise UsageError(f"{source} does not fit {type(model).__name__}: it {'; '.join(problems[:_LISTED])}{more}")
    model.load_state_dict(dict(tensors))
