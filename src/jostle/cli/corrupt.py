"""``jostle corrupt``: corrupted images as a picture or as arrays."""

import json
import sys
import warnings
import zipfile
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from jostle.base.errors import UsageError
from jostle.base.files import replacing
from jostle.cli.options import MODEL_HELP, WEIGHTS_HELP, Force, model_specs, whole
from jostle.cli.output import check_outputs, count_noun, say

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from jostle.data.image_folder import ImageFiles

_PICTURES = (".png", ".svg", ".pdf")
_PICTURE = Path("corruptions.png")
_ARRAYS = ".npz"
_SPLIT = "test"
_SIDE, _GAP = 0.8, 0.06  # of an image in the picture, in inches
_ENOUGH_TO_JUDGE = 16  # images whose range is checked, even if one is shown

DATA_HELP = (
    "Images: a dataset's name (jostle list datasets), a .npy, .npz or .safetensors file with one array, "
    "images:DIR, or py:MODULE_OR_FILE:FACTORY."
)
CORRUPTION_HELP = "Names or families, separated by commas, or all."
SEVERITY_HELP = "From 1 to 5, several as 1/3/5."
OUT_HELP = "A picture (.png, .svg, .pdf) of one image under all corruptions, or arrays (.npz) of --limit images."
RANGE_HELP = "Pixel values of black and white in a file of floats, for example --value-range 0/1."


def corrupt(
    *,
    data: Annotated[str, Parameter(help=DATA_HELP)],
    corruption: Annotated[str, Parameter(help=CORRUPTION_HELP)] = "all",
    severity: Annotated[str, Parameter(help=SEVERITY_HELP)] = "1/3/5",
    model: Annotated[str | None, Parameter(help=f"Print this model's accuracy. {MODEL_HELP}")] = None,
    weights: Annotated[str | None, Parameter(help=WEIGHTS_HELP)] = None,
    out: Annotated[Path | None, Parameter(name=["--out", "--output", "-o"], help=OUT_HELP)] = None,
    split: Annotated[str | None, Parameter(help="Which part of a named dataset; by default test.")] = None,
    image: Annotated[int, Parameter(converter=whole, help="Number of the image in the picture, from 0.")] = 0,
    limit: Annotated[
        int, Parameter(converter=whole, help="Number of images in the arrays, and for the accuracy; the first ones.")
    ] = 100,
    seed: Annotated[int, Parameter(converter=whole, help="Seed of the corruptions.")] = 0,
    value_range: Annotated[str, Parameter(help=RANGE_HELP, allow_leading_hyphen=True)] = "-1/1",
    as_json: Annotated[bool, Parameter(name="--json", negative="", show_default=False, help="Print JSON.")] = False,
    force: Force = False,
) -> None:
    """Corrupt images: noise, blur, weather, digital; five severities.

    The corruptions are our own implementation of Hendrycks and Dietterich
    (2019), with the settings of CIFAR-10-C; they are
    not the files published as CIFAR-10-C.

      jostle corrupt --data cifar-10 --out grid.png
      jostle corrupt --data fashion-mnist --corruption noise,fog --image 7
      jostle corrupt --data cifar-10 --corruption fog --severity 2
        --limit 1000 --out fog.npz
      jostle corrupt --model sample:mlp --data drawn-digits --corruption fog

    Arrays are named by corruption and severity, for example fog-2; the array
    labels holds the labels, if they are known.
    """
    if model is not None:
        _say_accuracy(model, weights, data, split, corruption, severity, value_range, limit, seed, as_json)
        if out is None:
            return
    out = _PICTURE if out is None else out
    check_outputs({"--out": out}, force=force, read=[("--data", data)])
    suffix = out.suffix.lower()
    if suffix not in (*_PICTURES, _ARRAYS):
        raise UsageError(f"--out {out} must end in {', '.join(_PICTURES)} for a picture or {_ARRAYS} for arrays")
    severities, ends = _read_severities(severity), _read_range(value_range)
    if image < 0 or limit < 1:
        raise UsageError(f"--image {image} must be at least 0 and --limit {limit} at least 1")
    import numpy as np

    from jostle.cli.subject import has_no_splits
    from jostle.corruptions.corruption import apply_corruption

    names = _read_names(corruption)
    is_picture = suffix in _PICTURES
    images, labels = _load(data, split, max(image + 1, _ENOUGH_TO_JUDGE) if is_picture else limit)
    _check_range(images, ends)
    first, end = (image, image + 1) if is_picture else (0, len(images))
    if first >= len(images):
        raise UsageError(f"--image {image}: {data} holds {count_noun(len(images), 'image')}, numbered from 0")
    shown, indices = images[first:end], np.arange(first, end)

    def results() -> Iterator[tuple[str, int, Any]]:
        for name in names:
            for one in severities:
                yield name, one, apply_corruption(shown, name, one, seed, ends, indices)

    if is_picture:
        from jostle.figures import save

        which = "" if has_no_splits(data) else f"{split or _SPLIT} "
        note = f"{data}, {which}image {image}, seed {seed}; self-made, not the CIFAR-10-C files"
        save(_draw_grid(shown[0], results(), len(names), severities, ends, note), out)
    else:
        _write_arrays(out, results(), labels)
    found = {"file": str(out), "corruptions": names, "severities": severities, "images": len(shown), "seed": seed}
    at = "severity" if len(severities) == 1 else "severities"
    summary = f"{count_noun(len(names), 'corruption')} at {at} {', '.join(map(str, severities))}: {out}"
    say(json.dumps(found, indent=1) if as_json else summary)


def _check_range(images: Any, ends: tuple[float, float]) -> None:
    """Raise, or print a warning, if images do not fit the values of black and white."""
    from jostle.corruptions.corruption import check_images

    with warnings.catch_warnings(record=True) as noticed:
        warnings.simplefilter("always")
        try:
            check_images(images, ends)
        except UsageError as error:
            raise UsageError(str(error).replace("value_range", "--value-range")) from None
    for warning in noticed:
        print(f"jostle: {warning.message}".replace("value_range=(0, 1)", "--value-range 0/1"), file=sys.stderr)  # noqa: T201


def _say_accuracy(
    model: str,
    weights: str | None,
    data: str,
    split: str | None,
    corruption: str,
    severity: str,
    value_range: str,
    limit: int,
    seed: int,
    as_json: bool,
) -> None:
    """Print the accuracy of a model under the corruptions; arguments as of ``corrupt``."""
    severities, ends, names = _read_severities(severity), _read_range(value_range), _read_names(corruption)
    from jostle.cli.subject import load_models, match_inputs
    from jostle.corruptions import accuracy_under

    [(spec_name, spec)] = model_specs([model]).items()
    models, _ = load_models({spec_name: spec}, {} if weights is None else {spec_name: weights}, seed)
    network = models[spec_name]
    images, labels = _labelled_files(data, split, limit, models) if _is_folder(data) else _load(data, split, limit)
    if labels is None:
        raise UsageError(
            f"--data {data} has no labels, so there is no accuracy: give a named dataset, or an .npz file with x and y"
        )
    inputs = match_inputs(images, [network])
    _check_range(inputs, ends)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*value_range=")  # said already
        found = accuracy_under(network, inputs, labels, names, severities, seed, value_range=ends)
    say(json.dumps({"model": spec_name, **found.to_dict()}, indent=1) if as_json else f"{spec_name}\n{found}")


def _read_names(text: str) -> list[str]:
    """The corruptions in a list of names and families, each once."""
    from jostle.corruptions import CORRUPTIONS, FAMILIES, names

    found: list[str] = []
    for word in (part.strip() for part in text.split(",")):
        if word == "all":
            found += names()
        elif word in (*FAMILIES, "common"):
            found += names(word)
        else:
            CORRUPTIONS.get(word)
            found.append(word)
    return list(dict.fromkeys(found))


def _read_severities(text: str) -> list[int]:
    words = text.replace(",", "/").split("/")
    if not all(word.strip() in ("1", "2", "3", "4", "5") for word in words):
        raise UsageError(f"--severity {text} must be whole numbers from 1 to 5, several as 1/3/5")
    return list(dict.fromkeys(int(word) for word in words))


def _read_range(text: str) -> tuple[float, float]:
    try:
        low, high = (float(word) for word in text.split("/"))
    except ValueError:
        raise UsageError(f"--value-range {text} must be two numbers, for example 0/1") from None
    return low, high


def _load(spec: str, split: str | None, limit: int) -> tuple[Any, Any]:
    """The first images, and their labels if they are known."""
    import jostle.data
    from jostle.cli.subject import check_name, has_no_splits, load_inputs

    if _is_folder(spec):
        files = _files(spec, split, limit)
        pixels = _stacked(files.with_preprocessing(files.preprocessing))
        return pixels, files.labels if len(files.classes) > 1 else None
    if spec.startswith("csv:") or spec in jostle.data.names("text"):
        raise UsageError(f"--data {spec} holds texts, and these are corruptions of images")
    if has_no_splits(spec):
        images, labels = load_inputs(spec, split or "train", limit)
        if isinstance(images, dict):
            raise UsageError(f"--data {spec} holds {', '.join(images)}; give a file with one array of images")
        return _as_readable(images), labels
    check_name(spec)
    dataset = jostle.data.load(spec, split or _SPLIT, limit)
    return dataset.inputs, dataset.labels


_PLAIN = {"mean": 0.5, "std": 0.5}  # pixels from -1 to 1, the usual --value-range


def _is_folder(spec: str) -> bool:
    return spec.startswith("images:")


def _files(spec: str, split: str | None, limit: int) -> "ImageFiles":
    """The first images of a folder, at most ``limit``, with pixels from -1 to 1 unless the spec says otherwise."""
    from jostle.data.image_folder import open_images

    files = open_images(spec, split or _SPLIT).first(limit)
    is_plain = not {"mean", "std"} & set(files.options)
    return replace(files, options={**files.options, **_PLAIN}) if is_plain else files


def _stacked(files: "ImageFiles") -> Any:
    import torch

    return torch.stack([files[number][0] for number in range(len(files))])


def _labelled_files(spec: str, split: str | None, limit: int, models: dict[str, Any]) -> tuple[Any, Any]:
    """Images as a model takes them, and their classes: those of the model that have the names of the folders."""
    from jostle import integrations
    from jostle.cli.labels import folder_labels

    files, notes = _files(spec, split, limit), list[str]()
    labels = folder_labels(files, models, notes)
    if labels is None and notes:
        raise UsageError(f"--data {spec}: {notes[0]}")
    return _stacked(integrations.prepare_images(files, list(models.values()))), labels


def _as_readable(images: Any) -> Any:
    """Images of a type that numpy does not have, such as bfloat16, as float32."""
    import torch

    is_half = isinstance(images, torch.Tensor) and images.dtype == torch.bfloat16
    return images.float() if is_half else images


def _write_arrays(path: Path, results: Iterable[tuple[str, int, Any]], labels: Any) -> None:
    """Write an .npz file, one array after the other, so that only one is in memory; the same bytes every time."""
    import numpy as np

    with replacing(path) as temporary, zipfile.ZipFile(temporary, "w", zipfile.ZIP_STORED) as archive:
        if labels is not None:
            _append(archive, "labels", np.asarray(labels))
        for name, severity, images in results:
            _append(archive, f"{name}-{severity}", np.asarray(images))


def _append(archive: zipfile.ZipFile, name: str, array: Any) -> None:
    from numpy.lib import format as npy

    with archive.open(zipfile.ZipInfo(f"{name}.npy"), "w", force_zip64=True) as file:
        npy.write_array(file, array, allow_pickle=False)


def _draw_grid(
    clean: Any,
    results: Iterable[tuple[str, int, Any]],
    rows: int,
    severities: list[int],
    ends: tuple[float, float],
    note: str,
) -> "Figure":
    """A figure whose rows are corruptions and whose columns are severities, with the clean image first in each row."""
    from matplotlib.figure import Figure

    from jostle.figures.style import INK, MUTED, styled

    clean_pixels = _pixels(clean, ends)
    ratio = clean_pixels.shape[0] / clean_pixels.shape[1]
    step_x, step_y, left, head, foot = _SIDE + _GAP, _SIDE * ratio + _GAP, 1.5, 0.3, 0.3
    width, height = left + step_x * (1 + len(severities)), head + step_y * rows + foot
    with styled():
        figure = Figure(figsize=(width, height))
        axes = figure.add_axes((0.0, 0.0, 1.0, 1.0))
        axes.set_axis_off()

        def draw(pixels: Any, row: int, column: int) -> None:
            x, y = left + column * step_x, height - head - row * step_y
            axes.imshow(
                pixels, extent=(x, x + _SIDE, y - _SIDE * ratio, y), cmap="gray", vmin=0, vmax=1, interpolation="none"
            )

        for column, title in enumerate(["clean", *map(str, severities)]):
            axes.text(left + column * step_x + _SIDE / 2, height - 0.2, title, color=MUTED, ha="center", va="center")
        for number, (name, _, images) in enumerate(results):
            row, column = divmod(number, len(severities))
            if column == 0:
                y = height - head - row * step_y - _SIDE * ratio / 2
                axes.text(left - 0.08, y, name.replace("_", " "), color=INK, ha="right", va="center")
                draw(clean_pixels, row, 0)
            draw(_pixels(images[0], ends), row, column + 1)
        axes.text(0.08, 0.15, note, color=MUTED, fontsize=7.5, va="center")
        axes.set(xlim=(0, width), ylim=(0, height))
    return figure


def _pixels(image: Any, ends: tuple[float, float]) -> Any:
    """An image as matplotlib takes it: from 0 to 1, channels last, or no channels if it is grey."""
    import numpy as np

    values = np.asarray(image)
    low, high = (0.0, 255.0) if values.dtype == np.uint8 else ends
    values = np.clip((values.astype(np.float64) - low) / (high - low), 0, 1).transpose(1, 2, 0)
    return values if values.shape[2] == 3 else values[:, :, 0]
