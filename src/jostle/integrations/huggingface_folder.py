"""Folders that transformers wrote: what is in them, and the network out of them. Nothing is fetched or unpickled."""

import contextlib
import importlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

from jostle.errors import UsageError

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
