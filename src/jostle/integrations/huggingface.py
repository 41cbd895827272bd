"""Folders that transformers wrote: what is in them, and the network out of them. Nothing is fetched or unpickled.

What a folder of transformers says about the pixels that its image classifier takes.

``hf:DIR``: a model of Hugging Face transformers from a local folder, as ``save_pretrained`` writes it.

Image classifiers, and text classifiers with their tokenizer; the configuration says which. ``hf:DIR:features`` is an
encoder of texts without a classifier.
"""

import contextlib
import importlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from PIL import Image

from jostle.base.errors import UsageError
from jostle.data.preprocessing import Preprocessing
from jostle.integrations import register
from jostle.integrations.image_classifier import ImageClassifier
from jostle.integrations.text_classifier import TextClassifier

_LISTED = 3
_HEADS = {"ForImageClassification": "image", "ForSequenceClassification": "text"}


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
    """``image`` or ``text``: what the classifier in ``folder`` takes, by its configuration."""
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
    """The network that a class of transformers makes of a folder, in float32, and which weights the folder lacks.

    Arguments:
        transformers: the package.
        loader: the name of the class, e.g. ``AutoModelForImageClassification``.
        folder, spec: where it is, and how messages call it.
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
    """Raise if weights are lacking: transformers would draw them at random and go on."""
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
    """Without transformers' own bars and reports: what matters in them is an error here."""
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


_SQUASHED = 384  # from this side on, the processor of ConvNeXt does not crop


def preprocessing(folder: Path) -> Preprocessing | None:
    """What ``preprocessor_config.json`` in ``folder`` asks for; None if there is no such file."""
    path = folder / "preprocessor_config.json"
    if not path.is_file():
        return None
    try:
        written = json.loads(path.read_text(encoding="utf-8"))
        size, resize = _sides(written)
        factor = 255 * written.get("rescale_factor", 1 / 255) if written.get("do_rescale", True) else 255.0
        shift = 1.0 if written.get("rescale_offset") else 0.0  # these processors take 1 off before they normalise
        normalises = written.get("do_normalize", True)
        mean, std = (written["image_mean"], written["image_std"]) if normalises else ([0.0] * 3, [1.0] * 3)
        return Preprocessing(
            size=size,
            resize=resize,
            mean=tuple(_rounded((number + shift) / factor) for number in mean),
            std=tuple(_rounded(number / factor) for number in std),
            interpolation=Image.Resampling(written.get("resample", Image.Resampling.BICUBIC)).name.lower(),
        )
    except UsageError as error:
        raise UsageError(f"{path}: {error}") from None
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise UsageError(f"{path} cannot be understood ({type(error).__name__}: {error}); mend or remove it") from None


def _sides(written: dict[str, Any]) -> tuple[int, int]:
    """Side of the crop, and shorter side before it."""
    resize = _side(written["size"])
    if written.get("do_center_crop") and "crop_size" in written:
        return _side(written["crop_size"]), resize
    if "crop_pct" in written and resize < _SQUASHED:
        return resize, int(resize / written["crop_pct"])
    return resize, resize


def _side(size: Any) -> int:
    """The side of a square, or the shorter side: 224, {shortest_edge: 224}, {height: 224, width: 224}."""
    if isinstance(size, dict):
        if "shortest_edge" in size:
            return int(size["shortest_edge"])
        if size["height"] != size["width"]:
            raise UsageError(f"size {size} is not a square, and only squares are cut from images here")
        return int(size["height"])
    return int(size)


def _rounded(number: float) -> float:
    return float(f"{number:.12g}")  # 255 * (1 / 255) need not be 1


__all__ = ["from_huggingface", "preprocessing"]

_FEATURES = "features"


@register("hf")
def from_huggingface(rest: str, seed: int) -> ImageClassifier | TextClassifier:  # noqa: ARG001 - the folder has the weights
    """The classifier in a folder that holds ``config.json`` and ``model.safetensors``, in float32.

    Weights that the folder lacks are an error: transformers would draw them at random and go on. An image classifier
    knows its size, mean and std if there is a ``preprocessor_config.json``; a text classifier finds its tokenizer in
    ``tokenizer.json`` of the same folder. With ``:features`` after the folder, the weights of an encoder are enough; it
    answers with what its pooler gives out, or with the mean of its last layer if the folder has no weights of one.

    Differs: an image keeps its proportions and its middle is cropped, where some processors squash it to a square.
    """
    place, colon, word = rest.rpartition(":")
    wants_features = bool(colon) and word == _FEATURES
    folder, spec = Path(place if wants_features else rest).expanduser(), f"hf:{rest}"
    check_folder(folder if rest else Path("nothing"), spec)
    transformers = import_transformers(spec)
    with quiet(transformers):
        if wants_features:
            return TextClassifier(_encoder(transformers, folder, spec), folder, spec, has_head=False)
        if kind_of(folder, transformers, spec) == "image":
            network, lacking = load_network(transformers, "AutoModelForImageClassification", folder, spec)
            check_complete(lacking, spec)
            return ImageClassifier(network, preprocessing(folder), spec)
        network, lacking = load_network(transformers, "AutoModelForSequenceClassification", folder, spec)
    check_complete(lacking, spec, f"; for what the encoder itself gives out, write {spec}:{_FEATURES}")
    return TextClassifier(network, folder, spec)


def _encoder(transformers: Any, folder: Path, spec: str) -> Any:
    """A network without a classifier; a pooler of which the folder has no weights is left out."""
    network, lacking = load_network(transformers, "AutoModel", folder, spec)
    if lacking and all(name.startswith("pooler.") for name in lacking):
        network, lacking = load_network(transformers, "AutoModel", folder, spec, add_pooling_layer=False)
    check_complete(lacking, spec)
    return network
