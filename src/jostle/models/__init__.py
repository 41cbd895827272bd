"""Networks by name: one file for each architecture family, written from its paper, and ``create`` to build one.

A model takes images or token ids and returns logits; ``jostle.training`` trains it. To add a model of images, imitate
``mlp.py``: a class whose sizes are keyword-only and have defaults, with ``register`` on it, and its module in the list
below. It takes ``image_size``, ``channels`` and ``classes``, and is ``classifier(features(images))``. For a model of
texts imitate ``text_bag.py``, with ``register_text``: it takes ``vocabulary``, ``classes``, ``dim``, ``depth``,
``max_length`` and ``dropout``, and is ``classifier(features(input_ids, attention_mask))``.
"""

import inspect
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from jostle.base import checks
from jostle.base.randomness import torch_seed
from jostle.base.registry import Registry, making, unknown_name

__all__ = ["BIT_MODELS", "MODELS", "TEXT_MODELS", "create", "names", "register", "register_bits", "register_text"]

MODELS = Registry[Callable[..., nn.Module]](
    "model",
    homes={
        "cnn": "jostle.models.cnn",
        "convmixer": "jostle.models.convmixer",
        "convnext": "jostle.models.convnext",
        "densenet-121": "jostle.models.densenet",
        "mlp": "jostle.models.mlp",
        "mlp-mixer": "jostle.models.mixer",
        "resnet-18": "jostle.models.resnet",
        "vision-ssm": "jostle.models.ssm",
        "vit-simple": "jostle.models.vit",
        "vit-small": "jostle.models.vit_small",
    },
    group="jostle.models",
)
TEXT_MODELS = Registry[Callable[..., nn.Module]](
    "text model",
    homes={
        "text-bag": "jostle.models.text_bag",
        "text-decoder": "jostle.models.text_decoder",
        "text-encoder": "jostle.models.text_encoder",
        "text-gru": "jostle.models.text_recurrent",
        "text-lstm": "jostle.models.text_recurrent",
        "text-ssm": "jostle.models.text_ssm",
    },
    group="jostle.text_models",
)
BIT_MODELS = Registry[Callable[..., nn.Module]](
    "bit model",
    homes={"bit-encoder": "jostle.models.bit_encoder", "bit-scratchpad": "jostle.models.bit_scratchpad"},
)
KINDS = {"image": MODELS, "text": TEXT_MODELS, "bits": BIT_MODELS}
register = MODELS.register
register_text = TEXT_MODELS.register
register_bits = BIT_MODELS.register


def names(kind: str = "image") -> list[str]:
    """The names that ``create`` knows, sorted: models of images, or of another kind: ``"text"`` or ``"bits"``.

    >>> names("text")
    ['text-bag', 'text-decoder', 'text-encoder', 'text-gru', 'text-lstm', 'text-ssm']
    """
    return KINDS[checks.choice("kind of model", kind, KINDS)].names()


def create(name: str, *, seed: int | None = None, **sizes: Any) -> nn.Module:
    """The model called ``name`` with random weights, of the sizes in its paper unless ``sizes`` says otherwise.

    Arguments:
        name: one of ``names()``, of ``names("text")`` or of ``names("bits")``.
        seed: makes the weights a function of name, sizes and this number, and leaves torch's global generator alone;
            without a seed they are drawn from the global generator.
        sizes: keyword arguments of that model, e.g. ``image_size``, ``channels``, ``classes``.

    >>> model = create("vit-simple", image_size=28, channels=1, depth=2, seed=0)
    >>> tuple(model(torch.zeros(5, 1, 28, 28, dtype=torch.get_default_dtype())).shape)
    (5, 10)
    >>> create("vit-simple", depht=2)
    Traceback (most recent call last):
    jostle.base.errors.UsageError: unknown vit-simple argument 'depht'; did you mean depth?
    """
    model_class = class_of(name)
    known = inspect.signature(model_class).parameters
    for size in sizes:
        if size not in known:
            raise unknown_name(f"{name} argument", size, known)
    with making("model", name, sizes):
        if seed is None:
            return _put_channels_last(model_class(**sizes))
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(torch_seed(seed))
            return _put_channels_last(model_class(**sizes))


def class_of(name: str) -> Callable[..., nn.Module]:
    """The class of the model called ``name``, of any kind."""
    for registry in KINDS.values():
        if name in registry:
            return registry.get(name)
    raise unknown_name("model", name, [each for registry in KINDS.values() for each in registry.names()])


def _put_channels_last(model: nn.Module) -> nn.Module:
    """Put the channels of convolution weights last in memory, with which CPUs train faster."""
    return model.to(memory_format=torch.channels_last)  # type: ignore[call-overload, no-any-return]
