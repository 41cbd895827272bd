"""``hf:DIR``: a model of Hugging Face transformers from a local folder, as ``save_pretrained`` writes it.

Image classifiers only. Text classifiers will be another branch of ``from_huggingface``, chosen by the configuration.
"""

import contextlib
import importlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from PIL import Image

from jostle.data.preprocessing import Preprocessing
from jostle.errors import UsageError
from jostle.integrations import register
from jostle.integrations.image_classifier import ImageClassifier

_SQUASHED = 384  # from this side on, the processor of ConvNeXt does not crop
_LISTED = 3


@register("hf")
def from_huggingface(rest: str, seed: int) -> ImageClassifier:  # noqa: ARG001 - the folder holds the weights
    """The image classifier in a folder that holds ``config.json`` and ``model.safetensors``, in float32.

    Weights that the folder lacks are an error: transformers would draw them at random and go on. If there is a
    ``preprocessor_config.json``, the classifier knows its size, mean and std.

    Differs: an image keeps its proportions and its middle is cropped, where some processors squash it to a square.
    """
    folder, spec = Path(rest).expanduser(), f"hf:{rest}"
    if not rest or not folder.is_dir():
        raise UsageError(
            f"model {spec!r}: {rest or 'nothing'} is not a folder here, and jostle downloads no models; save it with "
            "save_pretrained, or fetch it with: hf download NAME --local-dir DIR"
        )
    if not (folder / "config.json").is_file():
        raise UsageError(f"model {spec!r}: the folder has no config.json; give one that save_pretrained wrote")
    if not any((folder / name).is_file() for name in ("model.safetensors", "model.safetensors.index.json")):
        raise UsageError(
            f"model {spec!r}: the folder has no model.safetensors; only weights in safetensors files are read"
        )
    transformers = _transformers(spec)
    with _quiet(transformers):
        network = _network(transformers, folder, spec)
    return ImageClassifier(network, preprocessing(folder), spec)


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


def _network(transformers: Any, folder: Path, spec: str) -> torch.nn.Module:
    try:
        network, found = transformers.AutoModelForImageClassification.from_pretrained(
            folder,
            local_files_only=True,
            use_safetensors=True,
            trust_remote_code=False,
            dtype=torch.float32,
            output_loading_info=True,
        )
    except Exception as error:  # configurations, shapes and files go wrong in many ways
        reason = " ".join(str(error).split())
        if "Unrecognized configuration class" in reason:
            kind = json.loads((folder / "config.json").read_text(encoding="utf-8")).get("model_type")
            reason = f"{kind!r} is not an image classifier of transformers, and hf: reads only these"
        raise UsageError(f"model {spec!r} cannot be loaded: {reason[:300]}") from None
    lacking = sorted(map(str, [*found["missing_keys"], *found["mismatched_keys"]]))
    if lacking:
        more = f" and {len(lacking) - _LISTED} more" if len(lacking) > _LISTED else ""
        raise UsageError(
            f"model {spec!r}: the file lacks weights that fit {', '.join(lacking[:_LISTED])}{more}; expected a trained "
            "classifier, not only its backbone"
        )
    made: torch.nn.Module = network
    return made


def _transformers(spec: str) -> Any:
    try:
        return importlib.import_module("transformers")
    except ImportError as error:
        raise UsageError(f'model {spec!r} needs transformers: pip install "jostle[hf]" ({error})') from None


@contextlib.contextmanager
def _quiet(transformers: Any) -> Iterator[None]:
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
