"""``torchvision:NAME[:checkpoint=FILE,key=value,...]``: a network of torchvision with weights from a local file."""

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


@register("torchvision")
def from_torchvision(rest: str, seed: int) -> ImageClassifier:
    """The network ``torchvision.models.get_model(NAME, key=value, ...)``, with the weights of ``checkpoint`` if given.

    Without ``checkpoint`` the weights are random, drawn by ``seed``; nothing is downloaded. Pixels are those of the
    transforms that belong to the newest published weights of the network.
    """
    name, _, options = rest.partition(":")
    spec = f"torchvision:{rest}"
    positional, named = specs.arguments(options)
    checkpoint = named.pop("checkpoint", None)
    if not name or positional:
        raise UsageError(f"model {spec!r} must read torchvision:NAME or torchvision:NAME:checkpoint=FILE,key=value")
    if named.get("weights") or named.get("pretrained"):
        raise UsageError(f"model {spec!r}: jostle downloads no models; give torchvision:NAME:checkpoint=FILE")
    models = _import_models(spec)
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(torch_seed(seed))
        try:
            network: nn.Module = models.get_model(name, weights=None, **named).float()
        except Exception as error:  # an unknown name is a ValueError, an unknown option a TypeError
            reason = " ".join(str(error).split())[:200]
            raise UsageError(f"model {spec!r} cannot be made by torchvision: {reason}") from None
    if checkpoint is not None:
        tensors, _ = read_weights(str(checkpoint))
        fill_weights(network, tensors, f"model {spec!r}: the checkpoint")
    return ImageClassifier(network, _read_preprocessing(models, name), spec)


def _read_preprocessing(models: Any, name: str) -> Preprocessing | None:
    """The preprocessing of the network's published weights; None if there are none for classes of images."""
    try:
        wanted = models.get_model_weights(name).DEFAULT.transforms()
        return Preprocessing(
            size=int(wanted.crop_size[0]),
            resize=max(int(wanted.resize_size[0]), int(wanted.crop_size[0])),
            mean=tuple(map(float, wanted.mean)),
            std=tuple(map(float, wanted.std)),
            interpolation=str(wanted.interpolation.value),
        )
    except (AttributeError, ValueError, TypeError):
        return None


def _import_models(spec: str) -> Any:
    mend_torchvision()
    try:
        return importlib.import_module("torchvision.models")
    except ModuleNotFoundError as error:
        raise UsageError(f"model {spec!r} needs torchvision: pip install torchvision ({error})") from None
    except Exception as error:  # one that was built for another torch raises its own errors
        reason = " ".join(str(error).split())[:200]
        broken = broken_package(error) or "torchvision"
        raise UsageError(f"model {spec!r}: {broken} is installed but cannot be imported: {reason}") from None
