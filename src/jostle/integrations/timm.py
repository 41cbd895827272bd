"""``timm:NAME[:checkpoint=FILE,key=value,...]``: a network of timm with weights from a local file."""

import importlib
from typing import Any

import torch
from torch import nn

from jostle.base import specs
from jostle.base.errors import UsageError
from jostle.base.randomness import torch_seed
from jostle.base.weights import fill_weights, read_weights
from jostle.data.preprocessing import Preprocessing
from jostle.integrations import register
from jostle.integrations.image_classifier import ImageClassifier
from jostle.integrations.torchvision_operators import broken_package, mend_torchvision


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
        tensors, _ = read_weights(str(checkpoint))
        fill_weights(network, tensors, f"model {spec!r}: the checkpoint")
    return ImageClassifier(network, _read_preprocessing(timm, network, named), spec)


def _create(timm: Any, name: str, options: dict[str, Any], seed: int, spec: str) -> nn.Module:
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(torch_seed(seed))
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
    mend_torchvision()
    try:
        timm = importlib.import_module("timm")
        importlib.import_module("timm.data")
    except ModuleNotFoundError as error:
        missing = (error.name or "timm").partition(".")[0]
        needed = "timm" if missing == "timm" else f"{missing}, which timm imports"
        raise UsageError(f"model {spec!r} needs {needed}: pip install timm torchvision") from None
    except Exception as error:  # a torchvision that was built for another torch raises its own errors
        reason = " ".join(str(error).split())[:200]
        broken = broken_package(error) or "timm"
        raise UsageError(f"model {spec!r}: {broken} is installed but cannot be imported: {reason}") from None
    return timm
