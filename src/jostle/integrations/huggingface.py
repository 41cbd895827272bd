"""``hf:DIR``: a model of Hugging Face transformers from a local folder, as ``save_pretrained`` writes it.

Image classifiers with their image processor, and networks of texts with their tokenizer: classifiers of texts and of
tokens, language models and encoder-decoders; the configuration says which. ``hf:NAME`` is a model of the hub that is
in the local cache already. ``hf:DIR:features`` is an encoder of texts without a classifier. Nothing is downloaded, and
weights in the older ``pytorch_model.bin`` are read without running code from them. The images of an image classifier go
through its own processor, ``ImageProcessor`` below, so that jostle measures the pixels of the deployed pipeline.
"""

import contextlib
import importlib
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image, ImageOps
from torch import Tensor

from jostle.base import checks
from jostle.base.errors import UsageError
from jostle.base.files import parse_json
from jostle.data.preprocessing import Preprocessing, read_colours, to_8_bits
from jostle.integrations import register
from jostle.integrations.image_classifier import ImageClassifier
from jostle.integrations.text_network import Task, TextNetwork
from jostle.integrations.torchvision_operators import mend_torchvision

_FEATURES = "features"
_HEADS = {  # the end of the name of a class of transformers, and the class that loads it
    "ForImageClassification": "AutoModelForImageClassification",
    "ForSequenceClassification": "AutoModelForSequenceClassification",
    "ForCausalLM": "AutoModelForCausalLM",
    "LMHeadModel": "AutoModelForCausalLM",
    "ForConditionalGeneration": "AutoModelForSeq2SeqLM",
    "ForTokenClassification": "AutoModelForTokenClassification",
}
_TASKS: dict[str, Task] = {
    "AutoModelForSequenceClassification": "classes",
    "AutoModelForCausalLM": "next-token",
    "AutoModelForSeq2SeqLM": "next-token",
    "AutoModelForTokenClassification": "labels",
}
_LISTED = 3  # weights that an error names
_SAFE = ("model.safetensors", "model.safetensors.index.json")
_PICKLED = ("pytorch_model.bin", "pytorch_model.bin.index.json")


@register("hf")
def from_huggingface(rest: str, seed: int) -> ImageClassifier | TextNetwork:  # noqa: ARG001 - the folder has the weights
    """The network in a folder that holds ``config.json`` and weights, in float32.

    Weights are ``model.safetensors`` or, where there is none, ``pytorch_model.bin``, read with ``weights_only=True``.

    Missing weights are an error: transformers would draw them at random and go on. An image classifier gets its pixels
    from its own image processor, if the folder has a ``preprocessor_config.json``. A text classifier uses the tokenizer
    in ``tokenizer.json`` of the folder. With ``:features`` after the folder, the weights of an encoder are enough: the
    model answers with the output of its pooler, or with the mean of its last layer if the folder has no pooler.
    """
    place, colon, word = rest.rpartition(":")
    wants_features = bool(colon) and word == _FEATURES
    spec = f"hf:{rest}"
    folder = _find_folder(place if wants_features else rest, spec)
    check_folder(folder, spec)
    transformers = import_transformers(spec)
    with quiet(transformers):
        if wants_features:
            return TextNetwork(_load_encoder(transformers, folder, spec), folder, spec, task="features")
        loader = loader_of(folder, transformers, spec)
        network, lacking = load_network(transformers, loader, folder, spec)
        if loader == "AutoModelForImageClassification":
            check_complete(lacking, spec)
            is_grey = getattr(network.config, "num_channels", 3) == 1
            return ImageClassifier(network, read_image_processor(transformers, folder, is_grey), spec)
    check_complete(lacking, spec, f"; for the outputs of the encoder itself, write {spec}:{_FEATURES}")
    return TextNetwork(network, folder, spec, task=_TASKS[loader])


def _find_folder(place: str, spec: str) -> Path:
    """The folder of a model: a path, or the place of a model of the hub in the local cache."""
    folder = Path(place or "nothing").expanduser()
    if folder.is_file():
        raise UsageError(f"model {spec!r}: {place} is a file: give the folder that holds it, hf:{folder.parent}")
    if folder.is_dir() or not re.fullmatch(r"[\w.-]+(/[\w.-]+)?", place):
        return folder
    try:
        hub = importlib.import_module("huggingface_hub")
    except ImportError:
        return folder
    try:
        held = hub.try_to_load_from_cache(place, "config.json")
    except ValueError:  # no model of the hub can have this name
        return folder
    if not isinstance(held, str):
        raise UsageError(
            f"model {spec!r}: {place} is not a folder here, and jostle downloads no models; it is not in the cache of "
            f"Hugging Face either: fetch it with hf download {place}, or save it with save_pretrained"
        )
    return Path(held).parent


def _load_encoder(transformers: Any, folder: Path, spec: str) -> Any:
    """A network without a classifier, and without its pooler if the folder has no weights of one."""
    network, lacking = load_network(transformers, "AutoModel", folder, spec)
    if lacking and all(name.startswith("pooler.") for name in lacking):
        network, lacking = load_network(transformers, "AutoModel", folder, spec, add_pooling_layer=False)
    check_complete(lacking, spec)
    return network


def check_folder(folder: Path, spec: str) -> None:
    """Raise unless ``folder`` holds a configuration and weights."""
    if not str(folder) or not folder.is_dir():
        raise UsageError(
            f"model {spec!r}: {folder} is not a folder here, and jostle downloads no models; save it with "
            "save_pretrained, or fetch it with: hf download NAME --local-dir DIR"
        )
    if not (folder / "config.json").is_file():
        raise UsageError(f"model {spec!r}: the folder has no config.json; give one that save_pretrained wrote")
    if not any((folder / name).is_file() for name in (*_SAFE, *_PICKLED)):
        raise UsageError(
            f"model {spec!r}: the folder has no weights that are read here, model.safetensors or pytorch_model.bin"
        )


def loader_of(folder: Path, transformers: Any, spec: str) -> str:
    """The class of transformers that loads the model in ``folder``, by its configuration."""
    try:
        config = parse_json((folder / "config.json").read_text(encoding="utf-8"))
        architecture, model_type = str((config.get("architectures") or [""])[0]), config.get("model_type")
    except (OSError, ValueError, AttributeError, KeyError, TypeError) as error:
        raise UsageError(f"model {spec!r}: config.json cannot be read ({error})") from None
    for ending, loader in _HEADS.items():
        if architecture.endswith(ending):
            return loader
    known = transformers.models.auto.modeling_auto
    if model_type in known.MODEL_FOR_IMAGE_CLASSIFICATION_MAPPING_NAMES:
        return "AutoModelForImageClassification"
    if model_type in known.MODEL_FOR_SEQUENCE_CLASSIFICATION_MAPPING_NAMES:
        return "AutoModelForSequenceClassification"
    raise UsageError(
        f"model {spec!r}: {architecture or model_type!r} is no classifier of images, texts or tokens of transformers "
        "and no language model, and hf: reads only these"
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
            use_safetensors=any((folder / name).is_file() for name in _SAFE),
            weights_only=True,
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
    """The package, or one line on how to get it; a torchvision built for another torch is mended first."""
    mend_torchvision()
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


_PROBES = ((64, 48), (48, 64))  # width and height of the pictures by which a processor is probed
_FILES = ("preprocessor_config.json", "processor_config.json")


class ImageProcessor:
    """An image processor of transformers as a ``PixelMaker``: its own resizing, crop, normalisation and channel order.

    A picture is turned as its file says and converted to RGB, as transformers' pipelines do; then the processor makes
    the pixels. How it normalises is measured with pictures of one colour, not read from its configuration: processors
    have many options for it, and some flip the colours.

    Arguments:
        processor: called with a picture; answers with ``pixel_values``.
        source: what error messages call it.
        is_grey: whether the network takes grey pixels.
        replaced: arguments of the processor's call that replace its own sizes and filter.
        normalisation: mean and std in place of the processor's own; None to keep these.
    """

    def __init__(
        self,
        processor: Any,
        source: str,
        *,
        is_grey: bool = False,
        replaced: Mapping[str, Any] | None = None,
        normalisation: tuple[tuple[float, ...], tuple[float, ...]] | None = None,
    ) -> None:
        self._processor, self._source, self._is_grey, self._replaced = processor, source, is_grey, dict(replaced or {})
        self.shape, self.order, own_mean, own_std = self._probe()
        self.mean, self.std = normalisation or (own_mean, own_std)
        self._gain: Tensor | None = None
        self._offset: Tensor | None = None
        if normalisation is not None:
            old_mean, old_std, mean, std = (
                torch.tensor(numbers, dtype=torch.float64).view(-1, 1, 1)
                for numbers in (own_mean, own_std, self.mean, self.std)
            )
            self._gain, self._offset = (old_std / std).float(), ((old_mean - mean) / std).float()

    def pixels(self, image: Image.Image, path: Path | str = "") -> Tensor:
        """The pixels of a picture, # (channels, height, width) of float32."""
        picture = ImageOps.exif_transpose(to_8_bits(image, path)).convert("L" if self._is_grey else "RGB")
        values = torch.from_numpy(self._process(picture))
        return values if self._gain is None or self._offset is None else values * self._gain + self._offset

    def with_options(self, options: Mapping[str, Any]) -> "ImageProcessor | Preprocessing":
        """The same with some parts replaced.

        ``size`` multiplies all sizes of the processor, ``interpolation`` is its filter, ``mean`` and ``std`` normalise
        its pixels anew. With ``resize``, or if the processor has no size of its own, jostle's ``Preprocessing`` takes
        its place: resize the shorter side, crop the middle.
        """
        mean, std = (self._read_colours(name, options) for name in ("mean", "std"))  # red, green, blue
        if "resize" in options or (self.shape is None and "size" in options):
            return Preprocessing(
                size=options.get("size", self.shape[1] if self.shape is not None else None),
                resize=options.get("resize", 0),
                mean=mean,
                std=std,
                interpolation=options.get("interpolation", self._filter),
            )
        replaced = dict(self._replaced)
        if "interpolation" in options:
            filters = {one.name.lower(): one for one in Image.Resampling}
            replaced["resample"] = filters[checks.choice("interpolation", options["interpolation"], filters)]
        if "size" in options:
            replaced |= self._multiply_sizes(checks.whole("size", options["size"], least=1))
        renormalises = self._gain is not None or "mean" in options or "std" in options
        in_order = tuple(mean[colour] for colour in self.order), tuple(std[colour] for colour in self.order)
        made = ImageProcessor(
            self._processor,
            self._source,
            is_grey=self._is_grey,
            replaced=replaced,
            normalisation=in_order if renormalises else None,
        )
        if "size" in options and (made.shape is None or set(made.shape[1:]) != {options["size"]}):
            raise UsageError(
                f"{self._source} does not make pixels of size={options['size']}; give resize too, and jostle makes them"
            )
        return made

    def describe(self) -> dict[str, Any]:
        """All settings as JSON values, for records."""
        shown = {key: str(value) for key, value in self._replaced.items()}
        own = {"processor": type(self._processor).__name__, "shape": list(self.shape or ()), "order": list(self.order)}
        return own | {"mean": list(self.mean), "std": list(self.std)} | shown

    def __repr__(self) -> str:
        return f"ImageProcessor({type(self._processor).__name__}, shape={self.shape}, mean={self.mean}, std={self.std})"

    def _process(self, picture: Image.Image) -> NDArray[np.float32]:
        try:
            found = self._processor(picture, return_tensors="np", **self._replaced)["pixel_values"][0]
        except Exception as error:  # sizes, filters and numbers go wrong in many ways
            reason = " ".join(str(error).split())[:200]
            raise UsageError(f"{self._source} cannot be followed ({type(error).__name__}: {reason})") from None
        return np.asarray(found, dtype=np.float32)

    def _probe(self) -> tuple[tuple[int, int, int] | None, tuple[int, ...], tuple[float, ...], tuple[float, ...]]:
        """Shape, order, mean and std, from what the processor makes of black pictures and of primary colours."""
        mode, colours = ("L", [255]) if self._is_grey else ("RGB", [(255, 0, 0), (0, 255, 0), (0, 0, 255)])
        black = [self._process(Image.new(mode, size)) for size in _PROBES]
        lit = [self._process(Image.new(mode, _PROBES[0], colour)) for colour in colours]
        dark, *bright = (_middle(pixels) for pixels in (black[0], *lit))
        rises = np.stack(bright, axis=1) - dark[:, None]  # (channels, colours)
        one_each = ((rises > 0).sum(axis=1) == 1) & ((rises != 0).sum(axis=1) == 1) & np.isfinite(rises).all(axis=1)
        if rises.shape != (len(colours),) * 2 or not one_each.all():
            raise UsageError(f"{self._source}: a channel of its pixels is not one colour of the picture")
        order = tuple(int(colour) for colour in rises.argmax(axis=1))
        std = 1 / rises.max(axis=1)
        shapes = {pixels.shape for pixels in black}
        channels, height, width = black[0].shape
        shape = (channels, height, width) if len(shapes) == 1 else None
        return shape, order, _round(-dark * std), _round(std)

    @property
    def _filter(self) -> str:
        """The processor's own filter, by its name in Pillow."""
        return Image.Resampling(self._processor.to_dict().get("resample") or Image.Resampling.BICUBIC).name.lower()

    def _read_colours(self, name: str, options: Mapping[str, Any]) -> tuple[float, ...]:
        """``mean`` or ``std`` for red, green and blue: from the options, or else this processor's."""
        own: tuple[float, ...] = getattr(self, name)
        by_colour = tuple(number for _, number in sorted(zip(self.order, own, strict=True)))
        return read_colours(name, options[name], len(own)) if name in options else by_colour

    def _multiply_sizes(self, size: int) -> dict[str, Any]:
        """The processor's own sizes, all multiplied so that its pixels get the side ``size``."""
        factor = size / self.shape[1] if self.shape is not None else 1.0
        settings = self._processor.to_dict() | self._replaced
        return {
            key: {side: round(length * factor) for side, length in settings[key].items() if length is not None}
            for key in ("size", "crop_size")
            if isinstance(settings.get(key), Mapping)
        }


def read_image_processor(transformers: Any, folder: Path, is_grey: bool) -> ImageProcessor | None:
    """The image processor that is saved in ``folder``; None if there is none.

    Its Pillow form is used, also where torchvision is installed, so that the pixels are the same everywhere.
    """
    file = next((folder / name for name in _FILES if (folder / name).is_file()), None)
    if file is None:
        return None
    try:
        processor = transformers.AutoImageProcessor.from_pretrained(
            folder, backend="pil", local_files_only=True, trust_remote_code=False
        )
    except Exception as error:  # configurations go wrong in many ways
        reason = " ".join(str(error).split())[:200]
        raise UsageError(f"{file} cannot be understood ({type(error).__name__}: {reason}); mend or remove it") from None
    return ImageProcessor(processor, str(file), is_grey=is_grey)


def _middle(pixels: NDArray[np.float32]) -> NDArray[np.float64]:
    """The channels of the middle pixel, # (channels,)."""
    return pixels[:, pixels.shape[1] // 2, pixels.shape[2] // 2].astype(np.float64)


def _round(numbers: NDArray[np.float64]) -> tuple[float, ...]:
    return tuple(float(f"{number:.7g}") for number in numbers)  # as many digits as float32 has
