"""``timm:NAME[:checkpoint=FILE,key=value,...]``: a network of timm with weights from a local file."""

import importlib
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from jostle.base import specs
from jostle.base.errors import UsageError
from jostle.data.preprocessing import Preprocessing
from jostle.integrations import register
from jostle.integrations.image_classifier import ImageClassifier

_WRAPPED = ("state_dict_ema", "state_dict", "model")  # entries under which training scripts keep the weights
_LISTED = 3


@register("timm")
def from_timm(rest: str, seed: int) -> ImageClassifier:
    """The network ``timm.create_model(NAME, key=value, ...)``, with the weights of ``checkpoint`` if one is given.

    Without ``checkpoint`` the weights are random, drawn by ``seed``. Names and shapes in the file must be exactly the
    network's; a file that is not safetensors is read by ``torch.load(weights_only=True)``.
    """
    name, _, options = rest.partition(":")
    spec = f"timm:{rest}"
    positional, named = specs.arguments(options)
    checkpoint = named.pop("checkpoint", None)
    if not name or positional:
        raise UsageError(f"model {spec!r} must read timm:NAME or timm:NAME:checkpoint=FILE,key=value")
    if named.get("pretrained") or name.replace("_", "-") == "hf-hub":
        raise UsageError(f"model {spec!r}: jostle downloads no models; give timm:NAME:checkpoint=FILE")
    timm = _import_timm(spec)
    named.pop("pretrained", None)
    network = _create(timm, name, named, seed, spec)
    if checkpoint is not None:
        _fill(network, read_weights(Path(str(checkpoint)).expanduser()), spec)
    return ImageClassifier(network, _read_preprocessing(timm, network, named), spec)


def read_weights(path: Path) -> dict[str, Tensor]:
    """The weights in a file by name: safetensors, or a torch file that holds tensors and nothing else."""
    if not path.is_file():
        raise UsageError(f"checkpoint {path} does not exist")
    try:
        if path.suffix == ".safetensors":
            from safetensors.torch import load_file

            return dict(load_file(path))
        found = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # a foreign, cut off or unsafe file: each has its own kinds of error
        reason = " ".join(str(error).split())[:200]
        raise UsageError(f"checkpoint {path} cannot be read as weights without running code in it: {reason}") from None
    for key in _WRAPPED:
        if isinstance(found, dict) and isinstance(found.get(key), dict):
            found = found[key]
            break
    if not isinstance(found, dict) or not all(isinstance(value, Tensor) for value in found.values()):
        raise UsageError(f"checkpoint {path} holds no dictionary of tensors; expected a network's state_dict")
    return {str(key).removeprefix("module."): value for key, value in found.items()}


def _fill(network: nn.Module, found: dict[str, Tensor], spec: str) -> None:
    own = network.state_dict()
    problems = [f"lacks {name}" for name in own if name not in found]
    problems += [f"has unexpected {name}" for name in found if name not in own]
    problems += [
        f"has {name} of shape {tuple(found[name].shape)}, not {tuple(own[name].shape)}"
        for name in own
        if name in found and found[name].shape != own[name].shape
    ]
    if problems:
        more = f" (and {len(problems) - _LISTED} more)" if len(problems) > _LISTED else ""
        raise UsageError(f"model {spec!r}: the checkpoint {'; '.join(problems[:_LISTED])}{more}")
    network.load_state_dict(found)


def _create(timm: Any, name: str, options: dict[str, Any], seed: int, spec: str) -> nn.Module:
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        try:
            network: nn.Module = timm.create_model(name, pretrained=False, **options)
        except Exception as error:  # an unknown name is a RuntimeError, an unknown option a TypeError
            reason = " ".join(str(error).split())[:200]
            raise UsageError(f"model {spec!r} cannot be made by timm: {reason}") from None
    return network.float()


def _read_preprocessing(timm: Any, network: nn.Module, options: dict[str, Any]) -> Preprocessing:
    """The preprocessing of timm's own evaluation."""
    wanted = timm.data.resolve_model_data_config(network)
    size = int(options.get("img_size", wanted["input_size"][-1]))
    interpolation = str(wanted.get("interpolation", "bicubic"))
    return Preprocessing(
        size=size,
        resize=max(int(size / wanted.get("crop_pct", 0.875)), size),
        mean=tuple(map(float, wanted["mean"])),
        std=tuple(map(float, wanted["std"])),
        interpolation=interpolation if interpolation in ("bilinear", "bicubic", "nearest", "lanczos") else "bicubic",
    )


def _import_timm(spec: str) -> Any:
    try:
        timm = importlib.import_module("timm")
        importlib.import_module("timm.data")
    except ModuleNotFoundError as error:
        missing = (error.name or "timm").partition(".")[0]
        needed = "timm" if missing == "timm" else f"{missing}, which timm imports"
        raise UsageError(f"model {spec!r} needs {needed}: pip install timm torchvision") from None
    except Exception as error:  # a torchvision that was built for another torch raises its own errors
        reason = " ".join(str(error).split())[:200]
        raise UsageError(f"model {spec!r}: timm is installed but cannot be imported: {reason}") from None
    return timm
