"""What ``corrupt`` and ``accuracy_under`` check about their arguments before anything is computed."""

import warnings
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from jostle.corruptions.corruption import COMMON, CORRUPTIONS, FAMILIES, MOST_SEVERE, Corruption, names
from jostle.errors import UsageError
from jostle.registry import unknown_name

Range = tuple[float, float]

_SMALLEST_SIDE = 4
_TOLERANCE = 1e-4  # of the range: rounding, not another scale
_ENOUGH_TO_TELL = 8  # images; a single one may well have no dark pixel
_BYTES = 255
_FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)


def checked_name(name: Any) -> Corruption:
    """The corruption called ``name``; anything else answers with near matches."""
    if not isinstance(name, str):
        raise UsageError(f"name={name!r} must be the name of a corruption, for example 'fog'; names() lists them")
    return CORRUPTIONS.get(name)


def checked_names(corruptions: Any) -> tuple[str, ...]:
    """Names of corruptions, each once, from a name, a family, or a list of names."""
    if isinstance(corruptions, str):
        if corruptions in (*FAMILIES, COMMON):
            return tuple(names(corruptions))
        if corruptions in CORRUPTIONS.names():
            return (corruptions,)
        raise unknown_name("corruption or family", corruptions, (*names(), *FAMILIES, COMMON))
    try:
        chosen = tuple(dict.fromkeys(checked_name(name).name for name in corruptions))
    except TypeError:
        raise UsageError(f"corruptions={corruptions!r} must be names or a family, for example 'common'") from None
    if not chosen:
        raise UsageError("corruptions is empty; name at least one, or a family, for example 'common'")
    return chosen


def check_severity(severity: int) -> None:
    """Raise unless ``severity`` is a whole number from 0 to 5."""
    is_whole = isinstance(severity, int | np.integer) and not isinstance(severity, bool)
    if not is_whole or not 0 <= severity <= MOST_SEVERE:
        raise UsageError(f"severity must be a whole number from 0 (no change) to {MOST_SEVERE}, got {severity!r}")


def checked_severities(severities: Any) -> tuple[int, ...]:
    """Severities from 1 to 5, each once."""
    if isinstance(severities, str) or not hasattr(severities, "__iter__"):
        example = f"[{severities}]" if isinstance(severities, int) else "[1, 2]"
        raise UsageError(f"severities must be a list, got {severities!r}; write {example}")
    chosen = severities.tolist() if isinstance(severities, Tensor) else list(severities)
    for severity in chosen:
        check_severity(severity)
    if not chosen or 0 in chosen:
        raise UsageError(
            f"severities={chosen} must be from 1 to 5, at least one; clean images are always in the result"
        )
    return tuple(dict.fromkeys(int(severity) for severity in chosen))


def check_images(images: Any, value_range: Range) -> None:
    """Raise unless ``images`` are what ``corrupt`` takes; warn if they look as if scaled otherwise than stated."""
    if not isinstance(images, Tensor | np.ndarray):
        held = "; give its .inputs" if hasattr(images, "inputs") else ""
        raise UsageError(f"images must be a tensor or a numpy array, got {type(images).__name__}{held}")
    if isinstance(images, Tensor) and (images.layout != torch.strided or images.is_meta):
        raise UsageError("images must be a dense tensor with values, not a sparse or a meta tensor")
    _check_shape(tuple(images.shape))
    ends = checked_range(value_range)
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
    """What is suspicious about values that fit: they look like another scale, from 0 to 1. Empty if nothing is."""
    low, high = ends
    if low < 0 <= lowest and highest > 0:
        return f"below 0, with value_range=({low:g}, {high:g}); if they are scaled to [0, 1], give value_range=(0, 1)"
    if low == 0 and high >= _BYTES and 0 < highest <= 1:
        fix = "multiply by 255 before converting to uint8" if are_bytes else "give value_range=(0, 1)"
        return f"above 1, where white is {high:g}; if they are scaled to [0, 1], {fix}"
    return ""


def checked_range(value_range: Any) -> Range:
    """The values of black and white, as floats."""
    try:
        low, high = (float(end) for end in value_range)
    except (TypeError, ValueError):
        low, high = np.nan, np.nan
    if not (np.isfinite(low) and np.isfinite(high) and low < high):
        raise UsageError(
            f"value_range={value_range!r} must be the values of black and white, the smaller first, for example (0, 1)"
        )
    return low, high


def checked_seed(seed: int) -> int:
    """``seed`` as a whole number."""
    if not isinstance(seed, int | np.integer) or isinstance(seed, bool):
        raise UsageError(f"seed must be a whole number, got {seed!r}")
    return int(seed)


def checked_indices(indices: ArrayLike | None, count: int) -> NDArray[np.int64]:
    """The number of every image in its dataset, # (count,); 0, 1, .. for None."""
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


def as_array(values: Any) -> NDArray[Any]:
    """``values`` as an array on the CPU; what cannot be one, such as ragged lists, as an empty array of objects."""
    try:
        return values.detach().cpu().numpy() if isinstance(values, Tensor) else np.asarray(values)
    except (TypeError, ValueError):
        return np.empty(0, dtype=object)


def is_bytes(images: Tensor | NDArray[np.generic]) -> bool:
    """Whether images are uint8, and so from 0 to 255."""
    return images.dtype in (torch.uint8, np.dtype(np.uint8))
