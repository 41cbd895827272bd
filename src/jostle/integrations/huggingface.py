"""``hf:DIR``: a model of Hugging Face transformers from a local folder, as ``save_pretrained`` writes it.

Image classifiers with their image processor, and text classifiers with their tokenizer; the configuration says which.
``hf:DIR:features`` is an encoder of texts without a classifier. Nothing is downloaded or unpickled.
"""

import contextlib
import importlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

from jostle.base.errors import UsageError
from jostle.integrations import register
from jostle.integrations.image_classifier import ImageClassifier
from jostle.integrations.image_processor import read_image_processor
from jostle.integrations.text_classifier import TextClassifier

_FEATURES = "features"
_HEADS = {"ForImageClassification": "image", "ForSequenceClassification": "text"}
_LISTED = 3  # weights that an error names


@register("hf")
def from_huggingface(rest: str, seed: int) -> ImageClassifier | TextClassifier:  # noqa: ARG001 - the folder has the weights
    """The classifier in a folder that holds ``config.json`` and ``model.safetensors``, in float32.

    Missing weights are an error: transformers would draw them at random and go on. An image classifier gets its pixels
    from its own image processor, if the folder has a ``preprocessor_config.json``. A text classifier uses the tokenizer
    in ``tokenizer.json`` of the folder. With ``:features`` after the folder, the weights of an encoder are enough: the
    model answers with the output of its pooler, or with the mean of its last layer if the folder has no pooler.
    """
    place, colon, word = rest.rpartition(":")
    wants_features = bool(colon) and word == _FEATURES
    folder, spec = Path(place if wants_features else rest).expanduser(), f"hf:{rest}"
    check_folder(folder if rest else Path("nothing"), spec)
    transformers = import_transformers(spec)
    with quiet(transformers):
        if wants_features:
            return TextClassifier(_load_encoder(transformers, folder, spec), folder, spec, has_head=False)
        if kind_of(folder, transformers, spec) == "image":
            network, lacking = load_network(transformers, "AutoModelForImageClassification", folder, spec)
            check_complete(lacking, spec)
            is_grey = getattr(network.config, "num_channels", 3) == 1
            return ImageClassifier(network, read_image_processor(transformers, folder, is_grey), spec)
        network, lacking = load_network(transformers, "AutoModelForSequenceClassification", folder, spec)
    check_complete(lacking, spec, f"; for the outputs of the encoder itself, write {spec}:{_FEATURES}")
    return TextClassifier(network, folder, spec)


def _load_encoder(transformers: Any, folder: Path, spec: str) -> Any:
    """A network without a classifier, and without its pooler if the folder has no weights of one."""
    network, lacking = load_network(transformers, "AutoModel", folder, spec)
    if lacking and all(name.startswith("pooler.") for name in lacking):
        network, lacking = load_network(transformers, "AutoModel", folder, spec, add_pooling_layer=False)
    check_complete(lacking, spec)
    return network


def check_folder(folder: Path, spec: str) -> None:
    """Raise unless ``folder`` holds a configuration and weights in safetensors files."""
    if not str(folder) or not folder.is_dir():
        raise UsageError(
            f"model {spec!r}: {folder} is not a folder here, and jostle downloads no models; save it with "
            "save_pretrained, or fetch it with: hf download NAME --local-dir DIR"
        )
    if not (folder / "config.json").is_file():
        raise UsageError(f"model {spec!r}: the folder has no config.json; give one that save_pretrained wrote")
    if not any((folder / name).is_file() for name in ("model.safetensors", "model.safetensors.index.json")):
        raise UsageError(
            f"model {spec!r}: the folder has no model.safetensors; only weights in safetensors files are read"
        )


def kind_of(folder: Path, transformers: Any, spec: str) -> str:
    """``image`` or ``text``: the inputs of the classifier in ``folder``, by its configuration."""
    try:
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        architecture, model_type = str((config.get("architectures") or [""])[0]), config.get("model_type")
    except (OSError, ValueError, AttributeError, KeyError, TypeError) as error:
        raise UsageError(f"model {spec!r}: config.json cannot be read ({error})") from None
    for ending, kind in _HEADS.items():
        if architecture.endswith(ending):
            return kind
    known = transformers.models.auto.modeling_auto
    if model_type in known.MODEL_FOR_IMAGE_CLASSIFICATION_MAPPING_NAMES:
        return "image"
    if model_type in known.MODEL_FOR_SEQUENCE_CLASSIFICATION_MAPPING_NAMES:
        return "text"
    raise UsageError(
        f"model {spec!r}: {model_type!r} is neither an image classifier nor a text classifier of transformers, and hf: "
        "reads only these"
    )


def load_network(transformers: Any, loader: str, folder: Path, spec: str, **options: Any) -> tuple[Any, list[str]]:
    """The network in a folder, in float32, and the names of the weights that the folder lacks.

    Arguments:
        transformers: the package.
        loader: the name of the class, e.g. ``AutoModelForImageClassification``.
        folder, spec: of the network; messages name the spec.
        options: for the class.
    """
    try:
        network, found = getattr(transformers, loader).from_pretrained(
            folder,
            local_files_only=True,
            use_safetensors=True,
            trust_remote_code=False,
            dtype=torch.float32,
            output_loading_info=True,
            **options,
        )
    except Exception as error:  # configurations, shapes and files go wrong in many ways
        reason = " ".join(str(error).split())
        raise UsageError(f"model {spec!r} cannot be loaded: {reason[:300]}") from None
    return network, sorted(map(str, [*found["missing_keys"], *found["mismatched_keys"]]))


def check_complete(lacking: list[str], spec: str, advice: str = "") -> None:
    """Raise if weights are missing: transformers would draw them at random and go on."""
    if lacking:
        more = f" and {len(lacking) - _LISTED} more" if len(lacking) > _LISTED else ""
        raise UsageError(
            f"model {spec!r}: the file lacks weights that fit {', '.join(lacking[:_LISTED])}{more}; expected a trained "
            f"classifier, not only its backbone{advice}"
        )


def import_transformers(spec: str) -> Any:
    """The package, or one line on how to get it."""
    try:
        return importlib.import_module("transformers")
    except ImportError as error:
        raise UsageError(f'model {spec!r} needs transformers: pip install "jostle[hf]" ({error})') from None


@contextlib.contextmanager
def quiet(transformers: Any) -> Iterator[None]:
    """Without transformers' own progress bars and reports: what matters in them is an error here."""
    logging = transformers.utils.logging
    level, shows = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(level)
        if shows:
            logging.enable_progress_bar()
