"""What a corruption is, the registry of all of them, and ``corrupt``, which applies one to images of any kind.

A corruption is a function of images, random numbers and a setting for each of five severities, filed under a name and a
family. The functions themselves are in one file for each family.
"""

import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from scipy import special
from torch import Tensor

from jostle.base import checks
from jostle.base.errors import UsageError, shown
from jostle.base.randomness import Stream
from jostle.base.registry import Registry, unknown_name

Floats = NDArray[np.float64]
Apply = Callable[..., Floats]
Range = tuple[float, float]
Pictures = TypeVar("Pictures", Tensor, NDArray[np.generic])

FAMILIES = ("noise", "blur", "weather", "digital", "extra")
COMMON = "common"  # the first four families: the fifteen corruptions of the benchmark
MOST_SEVERE = 5
CIFAR_SIDE = 32
_VALUES_AT_ONCE = 2**19  # 4 MiB of float64: a few such arrays stay in the cache of one core
_SMALLEST_SIDE = 4
_TOLERANCE = 1e-4  # of the range: rounding, not another scale
_ENOUGH_TO_TELL = 8  # images; a single image may well have no dark pixel
_BYTES = 255
_FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)


@dataclass(frozen=True)
class Draws:
    """The random numbers of a batch: those of an image depend on the seed, the corruption and the image's index alone.

    They do not depend on the severity: a corruption that only grows stronger uses the same noise.

    Arguments:
        stream: named after the corruption.
        indices: of the images, # (images,).
    """

    stream: Stream
    indices: NDArray[np.int64]

    def uniforms(self, part: int, *shape: int) -> Floats:
        """Numbers strictly between 0 and 1, # (images, *shape); each ``part`` of a corruption has its own numbers."""
        zeros = np.zeros_like(self.indices)
        numbers = self.stream.uniforms(self.indices, zeros + part, zeros, int(np.prod(shape)))
        return numbers.reshape(len(self.indices), *shape)

    def between(self, part: int, low: float, high: float, *shape: int) -> Floats:
        """Uniform numbers between ``low`` and ``high``, # (images, *shape)."""
        return low + (high - low) * self.uniforms(part, *shape)

    def normals(self, part: int, *shape: int) -> Floats:
        """Standard normal numbers, # (images, *shape)."""
        numbers: Floats = special.ndtri(self.uniforms(part, *shape))
        return numbers


class Corruption:
    """One corruption and its five settings.

    Arguments:
        name: as registered.
        family: one of ``FAMILIES``.
        settings: for each severity from 1 to 5, the arguments of ``apply`` after images and draws.
        apply: from images in [0, 1], # (images, channels, height, width), their ``Draws`` and the settings to new
            images; the caller clips them to [0, 1].
    """

    def __init__(self, name: str, family: str, settings: tuple[tuple[Any, ...], ...], apply: Apply) -> None:
        self.name, self.family, self.settings, self._apply = name, family, settings, apply
        self.__doc__ = apply.__doc__

    def __repr__(self) -> str:
        return f"Corruption({self.name!r}, family={self.family!r})"

    def __call__(self, images: Floats, severity: int, draws: Draws) -> Floats:
        """The corrupted images, clipped to [0, 1]; ``severity`` from 1 to 5."""
        return np.clip(self._apply(images, draws, *self.settings[severity - 1]), 0.0, 1.0)


CORRUPTIONS = Registry[Corruption](
    "corruption",
    homes={
        "defocus_blur": "jostle.corruptions.blur",
        "glass_blur": "jostle.corruptions.blur",
        "motion_blur": "jostle.corruptions.blur",
        "zoom_blur": "jostle.corruptions.blur",
        "contrast": "jostle.corruptions.digital",
        "elastic_transform": "jostle.corruptions.digital",
        "jpeg_compression": "jostle.corruptions.digital",
        "pixelate": "jostle.corruptions.digital",
        "gaussian_blur": "jostle.corruptions.extra",
        "saturate": "jostle.corruptions.extra",
        "spatter": "jostle.corruptions.extra",
        "speckle_noise": "jostle.corruptions.extra",
        "gaussian_noise": "jostle.corruptions.noise",
        "impulse_noise": "jostle.corruptions.noise",
        "shot_noise": "jostle.corruptions.noise",
        "brightness": "jostle.corruptions.weather",
        "fog": "jostle.corruptions.weather",
        "frost": "jostle.corruptions.weather",
        "snow": "jostle.corruptions.weather",
    },
)


def corruption(name: str, family: str, settings: Iterable[tuple[Any, ...]]) -> Callable[[Apply], Apply]:
    """A decorator that registers a function as the corruption ``name``; see ``Corruption`` for its arguments."""
    five = tuple(settings)
    checks.choice("family of corruptions", family, FAMILIES)
    if len(five) != MOST_SEVERE:
        raise UsageError(f"corruption {name!r} has {len(five)} settings; give one tuple for each severity from 1 to 5")

    def file(apply: Apply) -> Apply:
        CORRUPTIONS.register(name)(Corruption(name, family, five, apply))
        return apply

    return file


def names(family: str | None = None) -> list[str]:
    """Names of corruptions, family by family.

    >>> names("blur")
    ['defocus_blur', 'glass_blur', 'motion_blur', 'zoom_blur']
    >>> len(names("common")), len(names())
    (15, 19)

    Arguments:
        family: ``noise``, ``blur``, ``weather``, ``digital`` or ``extra``; ``common`` for the first four together, the
            fifteen of the benchmark; everything if left out.
    """
    if family is None:
        wanted: tuple[str, ...] = FAMILIES
    elif family == COMMON:
        wanted = FAMILIES[:-1]
    elif family in FAMILIES:
        wanted = (family,)
    else:
        raise unknown_name("family of corruptions", str(family), (*FAMILIES, COMMON))
    family_of = {name: CORRUPTIONS.get(name).family for name in CORRUPTIONS.names()}
    return [name for one in wanted for name in family_of if family_of[name] == one]


def scale_of(images: Floats) -> float:
    """The factor for lengths in pixels: shorter side / 32, and at least 1. At 32 pixels lengths are CIFAR-10-C's.

    Images smaller than that keep the lengths: a blur with a radius below one pixel would do nothing.
    """
    height, width = images.shape[2:]
    return max(1.0, float(min(height, width)) / CIFAR_SIDE)


def corrupt(
    images: Pictures,
    name: str,
    severity: int = 2,
    seed: int = 0,
    *,
    value_range: Range = (-1.0, 1.0),
    indices: ArrayLike | None = None,
) -> Pictures:
    """``images`` under a common corruption (Hendrycks and Dietterich 2019), with the settings of CIFAR-10-C.

    Self-made: the same definitions and settings, not the files published as CIFAR-10-C, which
    ``jostle.data.cifar_10_c`` reads. ``docs/corruptions.md`` says where the images differ from the published ones.

    >>> grey = np.full((2, 1, 32, 32), 0.5)
    >>> corrupt(grey, "brightness", severity=5, value_range=(0, 1))[0, 0, 0, :2].tolist()
    [0.8, 0.8]
    >>> bool((corrupt(grey, "fog", severity=0) == grey).all())
    True

    Arguments:
        images: (images, channels, height, width), one or three channels, at least 4 pixels a side: a tensor or an
            array, of floats in ``value_range`` or of uint8 from 0 to 255.
        name: one of ``names()``.
        severity: 0 (the images stay as they are, bit for bit) to 5.
        seed: with the index of an image it decides all random numbers of that image.
        value_range: the values of black and white in images of floats; jostle's datasets have (-1, 1).
        indices: the index of each image in its dataset, # (images,); 0, 1, .. by default. Images of a part of a
            dataset, given with their indices, are corrupted as in the whole dataset.

    Returns:
        New images of the same kind: type, shape, dtype, device and range.
    """
    find(name)
    checks.whole("severity", severity, least=0, most=MOST_SEVERE, hint="; 0 changes nothing")
    check_images(images, value_range)
    numbers = read_indices(indices, len(images))
    return apply_corruption(images, name, severity, checks.whole("seed", seed), value_range, numbers)


def apply_corruption(
    images: Pictures, name: str, severity: int, seed: int, value_range: Range, numbers: NDArray[np.int64]
) -> Pictures:
    """The images that ``corrupt`` returns, for checked arguments; ``numbers`` are the indices, # (images,)."""
    if severity == 0 or len(images) == 0:
        return images.clone() if isinstance(images, Tensor) else images.copy()
    corruption, stream = CORRUPTIONS.get(name), Stream(seed, f"corruption/{name}")
    made = images.detach().clone() if isinstance(images, Tensor) else np.array(images)
    low, high = (0.0, 255.0) if is_bytes(images) else map(float, value_range)
    step = max(1, _VALUES_AT_ONCE // int(np.prod(images.shape[1:])))
    for start in range(0, len(images), step):
        rows = slice(start, start + step)
        part = np.clip((_as_float64(images[rows]) - low) / (high - low), 0.0, 1.0)
        part = low + (high - low) * corruption(part, severity, Draws(stream, numbers[rows]))
        _put(made, rows, part, low, high)
    return made


def _as_float64(images: Tensor | NDArray[np.generic]) -> NDArray[np.float64]:
    if isinstance(images, Tensor):
        return images.detach().to("cpu", torch.float64).numpy()
    return images.astype(np.float64)


def _put(
    images: Tensor | NDArray[np.generic], rows: slice, values: NDArray[np.float64], low: float, high: float
) -> None:
    """Write ``values`` into ``rows`` of ``images``: rounded if they are bytes, clipped to the range after rounding."""
    if is_bytes(images):
        values = np.rint(values)
    if isinstance(images, Tensor):
        images[rows] = torch.from_numpy(values).to(images.device, images.dtype).clamp(low, high)
    else:
        images[rows] = np.clip(values.astype(images.dtype), low, high)


def find(name: Any) -> Corruption:
    """The corruption called ``name``; raises with near matches if there is none."""
    if not isinstance(name, str):
        raise UsageError(f"name={shown(name)} must be the name of a corruption, for example 'fog'; names() lists them")
    return CORRUPTIONS.get(name)


def read_names(corruptions: Any) -> tuple[str, ...]:
    """Names of corruptions, each once, from a name, a family, or a list of names."""
    if isinstance(corruptions, str):
        if corruptions in (*FAMILIES, COMMON):
            return tuple(names(corruptions))
        if corruptions in CORRUPTIONS.names():
            return (corruptions,)
        raise unknown_name("corruption or family", corruptions, (*names(), *FAMILIES, COMMON))
    try:
        chosen = tuple(dict.fromkeys(find(name).name for name in corruptions))
    except TypeError:
        raise UsageError(f"corruptions={shown(corruptions)} must be names or a family, for example 'common'") from None
    if not chosen:
        raise UsageError("corruptions is empty; name at least one, or a family, for example 'common'")
    return chosen


def read_severities(severities: Any) -> tuple[int, ...]:
    """Severities from 1 to 5, each once."""
    if isinstance(severities, str) or not hasattr(severities, "__iter__"):
        example = f"[{severities}]" if isinstance(severities, int) else "[1, 2]"
        raise UsageError(f"severities must be a list, got {shown(severities)}; write {example}")
    chosen = severities.tolist() if isinstance(severities, Tensor) else list(severities)
    for severity in chosen:
        checks.whole("severity", severity, least=0, most=MOST_SEVERE)
    if not chosen or 0 in chosen:
        raise UsageError(
            f"severities={chosen} must be from 1 to 5, at least one; clean images are always in the result"
        )
    return tuple(dict.fromkeys(int(severity) for severity in chosen))


def read_indices(indices: ArrayLike | None, count: int) -> NDArray[np.int64]:
    """The index of each image in its dataset, # (count,); 0, 1, .. for None."""
    if indices is None:
        return np.arange(count)
    found = as_array(indices)
    fits = found.shape == (count,) and (count == 0 or np.issubdtype(found.dtype, np.integer))
    if not fits or (count and not (found.min() >= 0 and found.max() < 2**32)):
        raise UsageError(
            f"indices must be {count} whole numbers from 0 on, one for each image, got {found.dtype} of shape "
            f"{found.shape}"
        )
    return found.astype(np.int64)


def check_images(images: Any, value_range: Range) -> None:
    """Raise unless ``corrupt`` can take ``images``; warn if their values look like values of another range."""
    if not isinstance(images, Tensor | np.ndarray):
        held = "; give its .inputs" if hasattr(images, "inputs") else ""
        raise UsageError(f"images must be a tensor or a numpy array, got {type(images).__name__}{held}")
    if isinstance(images, Tensor) and (images.layout != torch.strided or images.is_meta):
        raise UsageError("images must be a dense tensor with values, not a sparse or a meta tensor")
    _check_shape(tuple(images.shape))
    ends = read_range(value_range)
    if not is_bytes(images) and not _is_float(images):
        raise UsageError(f"images have type {images.dtype}; expected floats in value_range, or uint8 from 0 to 255")
    if len(images) == 0:
        return
    values = images.detach() if isinstance(images, Tensor) else images
    lowest, highest = float(values.min()), float(values.max())
    if is_bytes(images):
        ends = (0.0, float(_BYTES))
    else:
        _check_values(lowest, highest, ends)
    doubt = _doubt(lowest, highest, ends, is_bytes(images)) if len(images) >= _ENOUGH_TO_TELL else ""
    if doubt:
        warnings.warn(f"none of {len(images)} images has a value {doubt}", UserWarning, stacklevel=3)


def _check_shape(shape: tuple[int, ...]) -> None:
    if len(shape) == 4 and shape[1] in (1, 3) and min(shape[2:]) >= _SMALLEST_SIDE:
        return
    hint = ""
    if len(shape) == 3:
        hint = "; add the missing axis: images[None] for one image, images[:, None] for grey ones"
    elif len(shape) == 4 and shape[1] not in (1, 3) and shape[3] in (1, 3):
        hint = "; if the channels come last, move them: images.transpose(0, 3, 1, 2), or .permute for a tensor"
    raise UsageError(
        f"images have shape {shape}; expected (images, channels, height, width) with 1 or 3 channels and at least "
        f"{_SMALLEST_SIDE} pixels a side{hint}"
    )


def _is_float(images: Tensor | NDArray[np.generic]) -> bool:
    return images.dtype in _FLOATS if isinstance(images, Tensor) else np.issubdtype(images.dtype, np.floating)


def is_bytes(images: Tensor | NDArray[np.generic]) -> bool:
    """Whether images are uint8: values from 0 to 255."""
    return images.dtype in (torch.uint8, np.dtype(np.uint8))


def _check_values(lowest: float, highest: float, ends: Range) -> None:
    """Raise unless values from ``lowest`` to ``highest`` lie between the values of black and white."""
    low, high = ends
    if not (np.isfinite(lowest) and np.isfinite(highest)):
        raise UsageError("images have values that are not finite; mend them before corrupting")
    slack = _TOLERANCE * (high - low)
    if lowest >= low - slack and highest <= high + slack:
        return
    fix = (
        "they look like pixels from 0 to 255: convert them to uint8, or give value_range=(0, 255)"
        if lowest >= 0 and 2 < highest <= _BYTES
        else "give the values of black and white as value_range, or undo a normalisation by mean and std first"
    )
    raise UsageError(
        f"images have values from {lowest:.4g} to {highest:.4g}, outside of value_range=({low:g}, {high:g}); {fix}"
    )


def _doubt(lowest: float, highest: float, ends: Range, are_bytes: bool) -> str:
    """Why values that fit the range look like values of another scale, from 0 to 1; empty if they do not."""
    low, high = ends
    if low < 0 <= lowest and highest > 0:
        return f"below 0, with value_range=({low:g}, {high:g}); if they are scaled to [0, 1], give value_range=(0, 1)"
    if low == 0 and high >= _BYTES and 0 < highest <= 1:
        fix = "multiply by 255 before converting to uint8" if are_bytes else "give value_range=(0, 1)"
        return f"above 1, where white is {high:g}; if they are scaled to [0, 1], {fix}"
    return ""


def read_range(value_range: Any) -> Range:
    """``value_range``, the values of black and white, as floats."""
    try:
        low, high = (float(end) for end in value_range)
    except (TypeError, ValueError):
        low, high = np.nan, np.nan
    if not (np.isfinite(low) and np.isfinite(high) and low < high):
        raise UsageError(
            f"value_range={shown(value_range)} must be the values of black and white, the smaller first, for example "
            "(0, 1)"
        )
    return low, high


def as_array(values: Any) -> NDArray[Any]:
    """``values`` as an array on the CPU; an empty array of objects if that is impossible, as for ragged lists."""
    try:
        return values.detach().cpu().numpy() if isinstance(values, Tensor) else np.asarray(values)
    except (TypeError, ValueError):
        return np.empty(0, dtype=object)
