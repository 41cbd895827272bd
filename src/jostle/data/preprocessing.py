"""What is made of a picture before a network sees it: size, crop and normalisation."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from jostle.base.errors import UsageError
from jostle.base.registry import unknown_name

IMAGENET_MEAN = (0.485, 0.456, 0.406)
IMAGENET_STD = (0.229, 0.224, 0.225)
_SHARE = 0.875  # of the shorter side that a crop keeps where nothing else is said: 224 of 256
_FILTERS = {resampling.name.lower(): resampling for resampling in Image.Resampling}


@dataclass(frozen=True)
class Preprocessing:
    """How pixels are made: the shorter side becomes ``resize``, the middle ``size`` x ``size`` is kept, then

        (pixel / 255 - mean) / std

    for each colour. The defaults are the usual ones of networks trained on ImageNet.

    >>> Preprocessing(size=224).resize
    256
    >>> grey = Image.new("L", (300, 200), 51)
    >>> round(Preprocessing(size=4, mean=(0.1,), std=(0.5,)).pixels(grey).mean().item(), 6)
    0.2

    Arguments:
        size: height and width of the result.
        resize: the shorter side before the crop, at least ``size``; by default ``size`` / 0.875, rounded.
        mean, std: three numbers, red, green and blue, or one number each for a network that takes grey images.
        interpolation: how pixels are resized, a filter of Pillow: ``bicubic``, ``bilinear``, ...; always antialiased.
    """

    size: int = 224
    resize: int = 0
    mean: tuple[float, ...] = IMAGENET_MEAN
    std: tuple[float, ...] = IMAGENET_STD
    interpolation: str = "bicubic"

    def __post_init__(self) -> None:
        _check_whole("size", self.size)
        if self.resize == 0:
            object.__setattr__(self, "resize", round(self.size / _SHARE))
        _check_whole("resize", self.resize)
        if self.resize < self.size:
            raise UsageError(f"resize={self.resize} must be at least size={self.size}, the side of the crop")
        if len(self.mean) != len(self.std) or len(self.mean) not in (1, 3):
            raise UsageError(f"mean={self.mean} and std={self.std} must both be one number (grey) or three (colour)")
        if not all(np.isfinite(self.mean)) or not all(np.isfinite(self.std)) or min(self.std) <= 0:
            raise UsageError(f"mean={self.mean} and std={self.std} must be finite, and std larger than 0")
        if self.interpolation not in _FILTERS:
            raise unknown_name("interpolation", str(self.interpolation), _FILTERS)

    def changed(self, options: Mapping[str, Any]) -> "Preprocessing":
        """The same with some parts replaced; another ``size`` alone keeps the share that the crop keeps.

        >>> Preprocessing().changed({"size": 448, "mean": 0.5}).resize
        512

        Arguments:
            options: new values by name; a single number as ``mean`` or ``std`` is for every colour.
        """
        changes = dict(options)
        for name in ("mean", "std"):
            if name in changes:
                changes[name] = _colours(name, changes[name], len(getattr(self, name)))
        if "size" in changes and "resize" not in changes and isinstance(changes["size"], int):
            changes["resize"] = max(round(self.resize * changes["size"] / self.size), changes["size"])
        return replace(self, **changes)

    def pixels(self, image: Image.Image, path: Path | str = "") -> Tensor:
        """What the network gets of an image, # (channels, size, size) of float32.

        Grey images become colour ones with three equal channels where the network takes colours, and the other way
        round; what is transparent becomes white. A rotation noted in the file is not applied.
        """
        picture = _converted(image, "L" if len(self.mean) == 1 else "RGB", path)
        width, height = picture.size
        factor = self.resize / min(width, height)
        sides = (max(int(width * factor), self.resize), max(int(height * factor), self.resize))
        if sides != picture.size:
            picture = picture.resize(sides, _FILTERS[self.interpolation])
        left, top = ((side - self.size) // 2 for side in sides)
        cropped = picture.crop((left, top, left + self.size, top + self.size))
        values = np.asarray(cropped, dtype=np.float32).reshape(self.size, self.size, -1) / 255
        mean, std = (np.asarray(numbers, dtype=np.float32) for numbers in (self.mean, self.std))
        normalised = (values - mean) / std  # (size, size, channels)
        return torch.from_numpy(np.ascontiguousarray(normalised.transpose(2, 0, 1)))


def read(path: Path) -> Image.Image:
    """The image in a file, decoded."""
    try:
        with Image.open(path) as image:
            image.load()
            return image
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
        reason = " ".join(str(error).split())
        raise UsageError(f"image {path} cannot be read: {reason}; mend it or take it out of its folder") from None


def _converted(image: Image.Image, mode: str, path: Path | str) -> Image.Image:
    """The image in 8-bit grey (L) or colour (RGB)."""
    if image.mode.startswith("I;16"):  # 16-bit grey: Pillow's own conversion would clip it to white
        image = Image.fromarray((np.asarray(image).astype(np.uint16) >> 8).astype(np.uint8))
    elif image.mode in ("I", "F"):
        raise UsageError(f"image {path} has pixels of mode {image.mode}; expected 8 or 16 bits a pixel")
    if "transparency" in image.info or image.mode in ("RGBA", "LA", "PA", "RGBa", "La"):
        coloured = image.convert("RGBA")
        image = Image.alpha_composite(Image.new("RGBA", image.size, "white"), coloured)
    return image if image.mode == mode else image.convert(mode)


def _colours(name: str, value: Any, channels: int) -> tuple[float, ...]:
    numbers = value if isinstance(value, Sequence) and not isinstance(value, str) else [value] * channels
    if not all(isinstance(number, int | float) and not isinstance(number, bool) for number in numbers):
        raise UsageError(f"{name}={value!r} must be a number or three, e.g. {name}=0.5 or {name}=0.485/0.456/0.406")
    return tuple(float(number) for number in numbers)


def _check_whole(name: str, value: Any) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise UsageError(f"{name}={value!r} must be a whole number of pixels, at least 1")
