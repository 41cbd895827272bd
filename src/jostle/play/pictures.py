"""The bench of images, whose tokens are patches."""

import io
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image, UnidentifiedImageError
from torch import Tensor

from jostle.base.errors import UsageError
from jostle.data import Dataset
from jostle.data.image_folder import ImageFiles
from jostle.data.preprocessing import PixelMaker
from jostle.integrations import ImageClassifier
from jostle.perturbations import GaussianNoise
from jostle.play.bench import MOST_BYTES, MOST_PIXELS, Bench, Example, Models, Plain
from jostle.report.images import Developer
from jostle.tokens import Patches

_MOST_PATCHES = 14  # in a row; more are too small to be pressed
_SMALLEST = 4


class PictureBench(Bench):
    """Images whose tokens are patches.

    Arguments:
        models: by name; all take the same pixels.
        images: (N, channels, height, width) to begin with; a ``Dataset`` if their classes are known, or files.
        patch: height and width of a patch; None for a size that suits the images.
    """

    kind, unit = "picture", "std of the noise, in units of a pixel"

    def __init__(self, models: Models, images: Dataset | Tensor | ImageFiles, patch: int | None = None) -> None:
        self._maker = _maker(models, images)
        self._developer, pixels, labels = _opened(images)
        self._shape = tuple(pixels.shape[1:])
        if not bool(pixels.isfinite().all()):
            raise UsageError("images hold NaN or infinity: clean them first")
        self._low, self._high = float(pixels.min()), float(pixels.max())
        self.patch = patch_for(self._shape[1:]) if patch is None else patch
        self.strength = float(f"{2 * (self._high - self._low or 1.0):.1g}")
        pairs = enumerate(zip(pixels, labels, strict=True))
        super().__init__(models, [self._example(image, label, number) for number, (image, label) in pairs])

    @property
    def tokens(self) -> Patches:
        return Patches(self.patch)

    def _example(self, image: Tensor, label: str, number: int) -> Example:
        name = f"image {number + 1}, labelled {label}" if label else f"image {number + 1}"
        return Example(name, image[None], self.show(image[None]), label)

    def read(self, content: bytes) -> Example:
        if len(content) > MOST_BYTES:
            raise UsageError(f"the file has {len(content):,} bytes; at most {MOST_BYTES:,} are read")
        try:
            with Image.open(io.BytesIO(content)) as opened:
                if opened.width * opened.height > MOST_PIXELS:
                    raise UsageError(f"the image has {opened.width} x {opened.height} pixels; that is too many")
                opened.load()
                image = self._pixels(opened)
        except UsageError:
            raise
        except (UnidentifiedImageError, OSError, SyntaxError, ValueError, Image.DecompressionBombError):
            raise UsageError("this file is not an image that can be read") from None
        return Example("your image", image[None], self.show(image[None]))

    def _pixels(self, picture: Image.Image) -> Tensor:
        """The pixels of a picture as the models take them."""
        if self._maker is not None:
            return self._maker.pixels(picture)
        channels, height, width = self._shape
        resized = picture.convert("L" if channels == 1 else "RGB").resize((width, height))
        shares = np.asarray(resized, dtype=np.float32).reshape(height, width, channels) / 255
        return torch.from_numpy(self._low + (self._high - self._low) * np.moveaxis(shares, -1, 0)).contiguous()

    def noise(self, example: Example, strength: float) -> GaussianNoise:  # noqa: ARG002 - the same for all images
        return GaussianNoise(strength)

    def show(self, batch: Tensor) -> Plain:
        return {"picture": self._developer.address(batch[0])}

    def _worst_shown(self, example: Example, token: int, change: NDArray[Any]) -> Plain:
        place = torch.tensor([token])
        before = self.tokens.pick(example.given, torch.zeros(1, dtype=torch.int64), place)
        after = before + torch.from_numpy(change).to(before).reshape(before.shape)
        return self.show(self.tokens.put(example.given.clone(), place, after))


def patch_for(sides: Sequence[int]) -> int:
    """The smallest patch of at least 4 pixels that tiles an image, with at most 14 patches in a row.

    >>> patch_for((28, 28)), patch_for((224, 224)), patch_for((30, 20)), patch_for((7, 7))
    (4, 16, 5, 7)
    """
    height, width = sides
    tiling = [size for size in range(1, max(sides) + 1) if height % size == 0 and width % size == 0]
    good = [size for size in tiling if size >= _SMALLEST and max(sides) // size <= _MOST_PATCHES]
    return good[0] if good else tiling[-1]


def _maker(models: Models, images: Dataset | Tensor | ImageFiles) -> PixelMaker | None:
    """What makes the pixels of a picture that somebody gives; None if only the range of pixels is known."""
    if isinstance(images, ImageFiles):
        return images.preprocessing
    first = next(iter(models.values()))
    return first.preprocessing if isinstance(first, ImageClassifier) else None


def _opened(images: Dataset | Tensor | ImageFiles) -> tuple[Developer, Tensor, list[str]]:
    """What turns pixels into pictures, the pixels, and the right classes in words, empty where they are not known."""
    if isinstance(images, ImageFiles):
        names = images.classes if len(images.classes) > 1 else ()
        labels = [names[int(number)] if names else "" for number in images.labels]
        pixels = torch.stack([images[number][0] for number in range(len(images))])
        return Developer(images, pixels), pixels, labels
    pixels = images.inputs if isinstance(images, Dataset) else images
    labels = [str(label) for label in images.labels.tolist()] if isinstance(images, Dataset) else [""] * len(pixels)
    return Developer(None, pixels), pixels, labels
