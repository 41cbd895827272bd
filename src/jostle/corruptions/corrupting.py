"""``corrupt``: images of any kind in, the same kind out, with everything checked on the way."""

import warnings
from typing import TypeVar

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from jostle.corruptions.corruption import CORRUPTIONS, MOST_SEVERE, Draws
from jostle.errors import UsageError
from jostle.randomness import Stream

Pictures = TypeVar("Pictures", Tensor, NDArray[np.generic])
Range = tuple[float, float]

_SMALLEST_SIDE = 4
_VALUES_AT_ONCE = 2**19  # 4 MiB of float64: a few such arrays stay in the cache of one core
_TOLERANCE = 1e-4  # of the range: rounding, not another scale
_ENOUGH_TO_TELL = 8  # images; a single one may well have no dark pixel


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

    Self-made: the same definitions and settings, not the files that were published as CIFAR-10-C; those are read by
    ``jostle.data.cifar_10_c``. Where an image differs from the published kind, ``docs/corruptions.md`` says how.

    >>> grey = np.full((2, 1, 32, 32), 0.5)
    >>> corrupt(grey, "brightness", severity=5, value_range=(0, 1))[0, 0, 0, :2].tolist()
    [0.8, 0.8]
    >>> bool((corrupt(grey, "fog", severity=0) == grey).all())
    True

    Arguments:
        images: (images, channels, height, width), one or three channels, at least 4 pixels a side: a tensor or an
            array, of floats in ``value_range`` or of uint8 from 0 to 255.
        name: one of ``names()``.
        severity: 0 (nothing happens, bit for bit) to 5.
        seed: with the index of an image it decides everything random about it.
        value_range: the values of black and white in images of floats; jostle's datasets have (-1, 1).
        indices: the index of every image in its dataset, # (images,); 0, 1, .. if left out. A part of a dataset, given
            with its indices, is corrupted as in the whole.

    Returns:
        New images of the same kind: type, shape, dtype, device and range.
    """
    corruption = CORRUPTIONS.get(name)
    check_severity(severity)
    check_images(images, value_range)
    numbers = _checked_indices(indices, len(images))
    if severity == 0 or len(images) == 0:
        return images.clone() if isinstance(images, Tensor) else images.copy()
    stream = Stream(_checked_seed(seed), f"corruption/{name}")
    corrupted = images.detach().clone() if isinstance(images, Tensor) else np.array(images)
    low, high = (0.0, 255.0) if _is_bytes(images) else map(float, value_range)
    step = max(1, _VALUES_AT_ONCE // int(np.prod(images.shape[1:])))
    for start in range(0, len(images), step):
        rows = slice(start, start + step)
        part = np.clip((_as_float64(images[rows]) - low) / (high - low), 0.0, 1.0)
        part = low + (high - low) * corruption(part, severity, Draws(stream, numbers[rows]))
        _put(corrupted, rows, part, low, high)
    return corrupted


def check_severity(severity: int) -> None:
    """Raise unless ``severity`` is a whole number from 0 to 5."""
    is_whole = isinstance(severity, int | np.integer) and not isinstance(severity, bool)
    if not is_whole or not 0 <= severity <= MOST_SEVERE:
        raise UsageError(f"severity must be a whole number from 0 (no change) to {MOST_SEVERE}, got {severity!r}")


def check_images(images: Tensor | NDArray[np.generic], value_range: Range) -> None:
    """Raise unless ``images`` are what ``corrupt`` takes; warn if they look as if scaled to [0, 1] by mistake."""
    if not isinstance(images, Tensor | np.ndarray):
        raise UsageError(f"images must be a tensor or a numpy array, got {type(images).__name__}")
    shape = tuple(images.shape)
    if len(shape) != 4 or shape[1] not in (1, 3) or min(shape[2:]) < _SMALLEST_SIDE:
        hint = _shape_hint(shape)
        raise UsageError(
            f"images have shape {shape}; expected (images, channels, height, width) with 1 or 3 channels and at least "
            f"{_SMALLEST_SIDE} pixels a side{hint}"
        )
    if _is_bytes(images) or len(images) == 0:
        return
    is_float = images.is_floating_point() if isinstance(images, Tensor) else np.issubdtype(images.dtype, np.floating)
    if not is_float:
        raise UsageError(f"images have type {images.dtype}; expected floats in value_range, or uint8 from 0 to 255")
    values = images.detach() if isinstance(images, Tensor) else images
    _check_values(float(values.min()), float(values.max()), len(images), value_range)


def _check_values(lowest: float, highest: float, count: int, value_range: Range) -> None:
    """Raise unless values from ``lowest`` to ``highest`` fit into ``value_range``."""
    low, high = _checked_range(value_range)
    if not (np.isfinite(lowest) and np.isfinite(highest)):
        raise UsageError("images have values that are not finite; mend them before corrupting")
    slack = _TOLERANCE * (high - low)
    if lowest < low - slack or highest > high + slack:
        is_bytes = lowest >= 0 and 2 < highest <= 255
        fix = (
            "they look like pixels from 0 to 255: convert them to uint8, or give value_range=(0, 255)"
            if is_bytes
            else "give the values of black and white as value_range, or undo a normalisation by mean and std first"
        )
        raise UsageError(
            f"images have values from {lowest:.4g} to {highest:.4g}, outside of value_range=({low:g}, {high:g}); {fix}"
        )
    if low < 0 <= lowest and highest > 0 and count >= _ENOUGH_TO_TELL:
        warnings.warn(
            f"none of {count} images has a value below 0, with value_range=({low:g}, {high:g}); if they are scaled to "
            f"[0, 1], give value_range=(0, 1)",
            UserWarning,
            stacklevel=4,
        )


def _shape_hint(shape: tuple[int, ...]) -> str:
    if len(shape) == 3:
        return "; add the missing axis: images[None] for one image, images[:, None] for grey ones"
    if len(shape) == 4 and shape[3] in (1, 3):
        return "; if the channels come last, move them: images.transpose(0, 3, 1, 2), or .permute for a tensor"
    return ""


def _checked_range(value_range: Range) -> Range:
    try:
        low, high = (float(end) for end in value_range)
    except (TypeError, ValueError):
        low, high = np.nan, np.nan
    if not (np.isfinite(low) and np.isfinite(high) and low < high):
        raise UsageError(f"value_range={value_range!r} must be the values of black and white, for example (0, 1)")
    return low, high


def _checked_seed(seed: int) -> int:
    if not isinstance(seed, int | np.integer) or isinstance(seed, bool):
        raise UsageError(f"seed must be a whole number, got {seed!r}")
    return int(seed)


def _checked_indices(indices: ArrayLike | None, count: int) -> NDArray[np.int64]:
    if indices is None:
        return np.arange(count)
    found = np.asarray(indices)
    fits = found.shape == (count,) and (count == 0 or np.issubdtype(found.dtype, np.integer))
    if not fits or (count and not (found.min() >= 0 and found.max() < 2**32)):
        raise UsageError(
            f"indices must be {count} whole numbers from 0 on, one for each image, got {found.dtype} of shape "
            f"{found.shape}"
        )
    return found.astype(np.int64)


def _is_bytes(images: Tensor | NDArray[np.generic]) -> bool:
    return images.dtype in (torch.uint8, np.dtype(np.uint8))


def _as_float64(images: Tensor | NDArray[np.generic]) -> NDArray[np.float64]:
    if isinstance(images, Tensor):
        return images.detach().to("cpu", torch.float64).numpy()
    return images.astype(np.float64)


def _put(
    images: Tensor | NDArray[np.generic], rows: slice, values: NDArray[np.float64], low: float, high: float
) -> None:
    """Write ``values`` into ``rows`` of ``images``: rounded if those are bytes, never out of range by rounding."""
    if _is_bytes(images):
        values = np.rint(values)
    if isinstance(images, Tensor):
        images[rows] = torch.from_numpy(values).to(images.device, images.dtype).clamp(low, high)
    else:
        images[rows] = np.clip(values.astype(images.dtype), low, high)
