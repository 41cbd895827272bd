"""From a picture to the pixels that a network takes: resize, crop and normalise."""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from jostle.base import checks
from jostle.base.errors import UsageError

IMAGENET_MEAN = (0.485, 0.456, 0.406)
IMAGENET_STD = (0.229, 0.224, 0.225)
_SHARE = 0.875  # of the shorter side that a crop keeps by default: 224 of 256
_FILTERS = {resampling.name.lower(): resampling for resampling in Image.Resampling}


class PixelMaker(Protocol):
    """Makes the pixels that a network takes out of a picture.

    Channel i of the pixels is (p / 255 - mean[i]) / std[i], where p is the colour ``order[i]`` of (red, green, blue).
    ``Preprocessing`` is one such maker; ``jostle.integrations`` wraps those of other libraries.
    """

    @property
    def shape(self) -> tuple[int, int, int] | None:
        """Channels, height and width of the pixels; None if they depend on the picture."""

    @property
    def mean(self) -> tuple[float, ...]:
        """One number for each channel."""

    @property
    def std(self) -> tuple[float, ...]:
        """One number for each channel."""

    @property
    def order(self) -> tuple[int, ...]:
        """Which of (red, green, blue) each channel holds; (0,) for grey pixels."""

    def pixels(self, image: Image.Image, path: Path | str = "") -> Tensor:
        """The pixels of a picture, # (channels, height, width) of float32; ``path`` is for error messages."""

    def with_options(self, options: Mapping[str, Any]) -> "PixelMaker":
        """The same with some parts replaced: ``size``, ``resize``, ``mean``, ``std`` or ``interpolation``."""

    def describe(self) -> dict[str, Any]:
        """All settings as JSON values, for records."""


@dataclass(frozen=True)
class Preprocessing:
    """Resize the shorter side to ``resize``, crop the middle ``size`` x ``size``, then, for each colour,

        (pixel / 255 - mean) / std

    The defaults are the usual ones of networks trained on ImageNet. It is a ``PixelMaker``.

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
        checks.sizes(size=self.size)
        if self.resize == 0:
            object.__setattr__(self, "resize", round(self.size / _SHARE))
        checks.sizes(resize=self.resize)
        if self.resize < self.size:
            raise UsageError(f"resize={self.resize} must be at least size={self.size}, the side of the crop")
        if len(self.mean) != len(self.std) or len(self.mean) not in (1, 3):
            raise UsageError(f"mean={self.mean} and std={self.std} must both be one number (grey) or three (colour)")
        if not all(np.isfinite(self.mean)) or not all(np.isfinite(self.std)) or min(self.std) <= 0:
            raise UsageError(f"mean={self.mean} and std={self.std} must be finite, and std larger than 0")
        checks.choice("interpolation", self.interpolation, _FILTERS)

    @property
    def shape(self) -> tuple[int, int, int]:
        """Channels, height and width of the pixels."""
        return len(self.mean), self.size, self.size

    @property
    def order(self) -> tuple[int, ...]:
        """Red, green and blue, or grey."""
        return tuple(range(len(self.mean)))

    def describe(self) -> dict[str, Any]:
        """All settings as JSON values, for records."""
        return {key: list(value) if isinstance(value, tuple) else value for key, value in vars(self).items()}

    def with_options(self, options: Mapping[str, Any]) -> "Preprocessing":
        """The same with some parts replaced; another ``size`` alone keeps the share that the crop keeps.

        >>> Preprocessing().with_options({"size": 448, "mean": 0.5}).resize
        512

        Arguments:
            options: new values by name; a single number as ``mean`` or ``std`` is for every colour.
        """
        changes = dict(options)
        for name in ("mean", "std"):
            if name in changes:
                changes[name] = read_colours(name, changes[name], len(getattr(self, name)))
        if "size" in changes and "resize" not in changes and isinstance(changes["size"], int):
            changes["resize"] = max(round(self.resize * changes["size"] / self.size), changes["size"])
        return replace(self, **changes)

    def pixels(self, image: Image.Image, path: Path | str = "") -> Tensor:
        """The pixels of a picture, # (channels, size, size) of float32.

        A grey picture gets three equal colours if the network takes colours, a colour picture becomes grey if it takes
        grey pixels, and transparent parts become white. A rotation noted in the file is not applied.
        """
        picture = _convert(image, "L" if len(self.mean) == 1 else "RGB", path)
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


def read_image(path: Path) -> Image.Image:
    """The image in a file, decoded; a picture that would fill the memory, which a small file can hold, is refused."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            with Image.open(path) as image:
                image.load()
                return image
    except (Image.DecompressionBombWarning, Image.DecompressionBombError):
        most = f"{Image.MAX_IMAGE_PIXELS:,}"
        raise UsageError(f"image {path} has more than {most} pixels; make it smaller or take it out") from None
    except (OSError, SyntaxError, ValueError) as error:
        reason = " ".join(str(error).split())
        raise UsageError(f"image {path} cannot be read: {reason}; mend it or take it out of its folder") from None


def to_8_bits(image: Image.Image, path: Path | str) -> Image.Image:
    """A picture with 8 bits a colour; one of 16 bits, which Pillow would clip to white, keeps its upper 8."""
    if image.mode.startswith("I;16"):
        return Image.fromarray((np.asarray(image).astype(np.uint16) >> 8).astype(np.uint8))
    if image.mode in ("I", "F"):
        raise UsageError(f"image {path} has pixels of mode {image.mode}; expected 8 or 16 bits a pixel")
    return image


def _convert(image: Image.Image, mode: str, path: Path | str) -> Image.Image:
    """The image in 8-bit grey (L) or colour (RGB), on white where it is transparent."""
    image = to_8_bits(image, path)
    if "transparency" in image.info or image.mode in ("RGBA", "LA", "PA", "RGBa", "La"):
        coloured = image.convert("RGBA")
        image = Image.alpha_composite(Image.new("RGBA", image.size, "white"), coloured)
    return image if image.mode == mode else image.convert(mode)


def read_colours(name: str, value: Any, channels: int) -> tuple[float, ...]:
    """``value`` as one number for each channel."""
    numbers = value if isinstance(value, Sequence) and not isinstance(value, str) else [value] * channels
    if not all(isinstance(number, int | float) and not isinstance(number, bool) for number in numbers):
        raise UsageError(f"{name}={value!r} must be a number or three, e.g. {name}=0.5 or {name}=0.485/0.456/0.406")
    return tuple(float(number) for number in numbers)
