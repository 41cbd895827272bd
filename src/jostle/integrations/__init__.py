"""Models by spec: of our own zoo, of your own code, and of other libraries, which are imported only when asked for.

``load("hf:checkpoints/vit")`` turns text into a model; ``prepare_images`` and ``reader_of`` turn images and texts into
the inputs that a model takes. To add a source, imitate ``zoo.py``: put ``register`` on a function from the rest of the
spec to a model, and its module in the list below. Nothing here uses the network, and no code in a file of weights runs.
"""

import difflib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from jostle.base import checks
from jostle.base.errors import UsageError
from jostle.base.registry import Registry
from jostle.integrations.answers import AnswerChoices, Continuation
from jostle.integrations.image_classifier import ImageClassifier, prepare_images
from jostle.integrations.prompts import Prompts, network_of, read_prompts
from jostle.integrations.text_network import TextNetwork, TextReader, reader_of

__all__ = [
    "SOURCES",
    "AnswerChoices",
    "Continuation",
    "ImageClassifier",
    "Prompts",
    "TextNetwork",
    "TextReader",
    "class_names",
    "load",
    "network_of",
    "prepare_images",
    "read_prompts",
    "reader_of",
    "register",
]

Source = Callable[[str, int], Callable[..., Any]]

SOURCES = Registry[Source](
    "source of models",
    homes={
        "hf": "jostle.integrations.huggingface",
        "onnx": "jostle.integrations.onnx",
        "py": "jostle.integrations.python",
        "sample": "jostle.integrations.sample",
        "timm": "jostle.integrations.timm",
        "torchvision": "jostle.integrations.torchvision",
        "zoo": "jostle.integrations.zoo",
    },
)
register = SOURCES.register


def class_names(model: Any) -> tuple[str, ...]:
    """Names of a model's classes in the order of its outputs; empty if nobody named them."""
    if isinstance(model, TextNetwork):
        return model.classes if model.has_names else ()
    names = getattr(model, "classes", ())  # of image classifiers and networks of ONNX; a number in many others
    is_named = isinstance(names, tuple | list) and all(isinstance(name, str) for name in names)
    return tuple(names) if is_named else ()


def load(spec: str, *, seed: int = 0) -> Callable[..., Any]:
    """The model a spec names, in eval mode.

        zoo:NAME[:key=value,...]                    a network of jostle.models with random weights
        py:MODULE_OR_FILE:FACTORY[:key=value,...]   the return value of your own function
        hf:DIR                                      a network of transformers from a local folder: a classifier of
                                                    images, texts or tokens, a language model, an encoder-decoder
        hf:NAME                                     the same, of the hub, if it is in the local cache
        hf:DIR:features                             an encoder of texts without a classifier
        onnx:FILE[:output=NAME]                     a network in ONNX's format, run by ONNX Runtime
        timm:NAME[:checkpoint=FILE,key=value,...]   a network of timm, with weights from a local file
        torchvision:NAME[:checkpoint=FILE,...]      the same of torchvision
        sample:NAME                                 a small trained network that comes with jostle: vit, mlp or cnn

    Pretrained ones are an ``ImageClassifier``, from pixels to logits, with the maker of its pixels, or a
    ``TextNetwork``, from token ids to logits, with its tokenizer. A factory may also return an estimator of
    scikit-learn, a session of ONNX Runtime, or a function of arrays or strings.

    >>> model = load("zoo:mlp:image_size=8,channels=1,classes=3")
    >>> sum(parameter.numel() for parameter in model.parameters())
    99328
    >>> load("zo:mlp")
    Traceback (most recent call last):
    jostle.base.errors.UsageError: model 'zo:mlp' must start with zoo: or py:, or with hf:, onnx:, timm: or torchvision: for a pretrained network, for example zoo:mlp or py:my_module:make_model

    Arguments:
        spec: one of these.
        seed: of the random weights of ``zoo:``.
    """  # noqa: E501 - an error is one line
    kind, _, rest = checks.text("model", spec).partition(":")
    if kind not in SOURCES:
        if meant := _meant(kind):
            raise UsageError(f"model {spec!r} lacks its prefix: write {meant}")
        raise UsageError(
            f"model {spec!r} must start with zoo: or py:, or with hf:, onnx:, timm: or torchvision: for a pretrained "
            "network, for example zoo:mlp or py:my_module:make_model"
        )
    return SOURCES.get(kind)(rest, seed)


def _meant(name: str) -> str:
    """The spec that a path or a name without its prefix most likely stands for; empty if none is near."""
    path = Path(name)
    if path.suffix == ".py":
        return f"py:{name}:NAME, with the NAME of the function or class in it that makes the model"
    if path.suffix == ".onnx":
        return f"onnx:{name}"
    if (path / "config.json").is_file():
        return f"hf:{name}"
    from jostle import models

    near = difflib.get_close_matches(name.lower(), models.names(), n=1, cutoff=0.85)
    return f"zoo:{near[0]}, a network with random weights" if near else ""
