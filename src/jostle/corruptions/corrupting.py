"""``corrupt``: images of any kind in, the same kind out, with everything checked on the way."""

from typing import TypeVar

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from jostle.corruptions.checking import (
    Range,
    check_images,
    check_severity,
    checked_indices,
    checked_name,
    checked_seed,
    is_bytes,
)
from jostle.corruptions.corruption import CORRUPTIONS, Draws
from jostle.randomness import Stream

Pictures = TypeVar("Pictures", Tensor, NDArray[np.generic])

_VALUES_AT_ONCE = 2**19  # 4 MiB of float64: a few such arrays stay in the cache of one core


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
    checked_name(name)
    check_severity(severity)
    check_images(images, value_range)
    numbers = checked_indices(indices, len(images))
    return corrupted(images, name, severity, checked_seed(seed), value_range, numbers)


def corrupted(
    images: Pictures, name: str, severity: int, seed: int, value_range: Range, numbers: NDArray[np.int64]
) -> Pictures:
    """What ``corrupt`` returns, for arguments that were checked; ``numbers`` are the indices, # (images,)."""
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
    """Write ``values`` into ``rows`` of ``images``: rounded if those are bytes, never out of range by rounding."""
    if is_bytes(images):
        values = np.rint(values)
    if isinstance(images, Tensor):
        images[rows] = torch.from_numpy(values).to(images.device, images.dtype).clamp(low, high)
    else:
        images[rows] = np.clip(values.astype(images.dtype), low, high)
