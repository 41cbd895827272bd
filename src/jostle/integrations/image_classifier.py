"""A pretrained image classifier: pixels in, logits out, together with the maker of its pixels."""

import re
from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, nn

from jostle.base.errors import UsageError
from jostle.base.model import logits_of
from jostle.data.image_folder import ImageFiles
from jostle.data.preprocessing import PixelMaker


class ImageClassifier(nn.Module):
    """A network of another library as a function from a batch of pixels to logits, in eval mode.

    Arguments:
        network: called with # (batch, channels, height, width); answers with logits, # (batch, classes), or with an
            object that has ``logits``.
        preprocessing: makes the pixels that the network was trained with; None if unknown.
        source: the spec it was made from, for messages.
    """

    gain: Tensor | None
    offset: Tensor | None

    def __init__(self, network: nn.Module, preprocessing: PixelMaker | None = None, source: str = "model") -> None:
        super().__init__()
        # Channels last in memory: a CPU runs EfficientNet-lite0 twice as fast so.
        self.network = network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        self.preprocessing, self.source = preprocessing, source
        self.channels: list[int] | None = None
        self.register_buffer("gain", None, persistent=False)
        self.register_buffer("offset", None, persistent=False)
        self.eval()

    def accept(self, given: PixelMaker) -> "ImageClassifier":
        """From now on take pixels made by ``given``, and normalise them inside as the network's own. Returns self.

        So several networks can get the same pixels and the same noise: channel x becomes (x std + mean - m) / s, where
        m and s are the network's own, and channels are put in the network's order. A network without a maker of its own
        gets x unchanged.
        """
        self.channels = self.gain = self.offset = None
        own = self.preprocessing
        if own is None or (own.mean, own.std, own.order) == (given.mean, given.std, given.order):
            return self
        if len(own.mean) != len(given.mean):
            raise UsageError(
                f"{self.source} takes {len(own.mean)} colours, not {len(given.mean)}; mean={given.mean} must fit"
            )
        channels = [given.order.index(colour) for colour in own.order]
        given_mean, given_std, own_mean, own_std = (
            torch.tensor(numbers, dtype=torch.float64).view(-1, 1, 1)
            for numbers in (given.mean, given.std, own.mean, own.std)
        )
        self.gain = (given_std[channels] / own_std).float()
        self.offset = ((given_mean[channels] - own_mean) / own_std).float()
        self.channels = None if channels == sorted(channels) else channels
        return self

    def forward(self, images: Tensor) -> Tensor:
        """Pixels to logits, (batch, channels, height, width) -> (batch, classes)."""
        if self.channels is not None:
            images = images[:, self.channels]
        if self.gain is not None and self.offset is not None:
            images = images * self.gain.to(images) + self.offset.to(images)
        return logits_of(self.network(images), name=self.source)

    @property
    def classes(self) -> tuple[str, ...]:
        """Names of the classes in the order of the logits; empty if nobody named them."""
        names = getattr(getattr(self.network, "config", None), "id2label", None) or {}
        named = tuple(str(names[number]) for number in sorted(names))
        return () if all(re.fullmatch(r"LABEL_\d+", name) for name in named) else named

    def extra_repr(self) -> str:
        """The settings that the layers below do not show."""
        return f"source={self.source!r}, preprocessing={self.preprocessing}"


def prepare_images(images: ImageFiles, models: Iterable[Any]) -> ImageFiles:
    """The images as these models take them: all models get the same pixels, and so the same tokens and the same noise.

    The pixels are those of the first ``ImageClassifier``, unless the spec of the images replaces parts of them. Every
    other classifier is set to take the same pixels, and normalises them inside as its own: it gets the first one's
    resizing and crop. Noise is in units of these normalised pixels.

    Arguments:
        images: of ``open_images``.
        models: classifiers, and other models, which get the pixels as they are.
    """
    known = [model for model in models if isinstance(model, ImageClassifier) and model.preprocessing is not None]
    wanted = known[0].preprocessing if known else None
    if wanted is None:
        missing = [name for name in ("size", "mean", "std") if name not in images.options]
        if missing:
            raise UsageError(
                f"the model does not say which pixels it takes: give {', '.join(missing)} in the data, for example "
                "images:DIR:size=224,mean=0.485/0.456/0.406,std=0.229/0.224/0.225"
            )
        return images
    if "size" not in images.options:
        _check_one_size(known)
    images = images.with_preprocessing(wanted)
    for model in known:
        model.accept(images.preprocessing)
    return images


def _check_one_size(models: Iterable[ImageClassifier]) -> None:
    """Raise unless all models take pixels of one height and width."""
    shapes = {model.source: model.preprocessing.shape for model in models if model.preprocessing is not None}
    for source, shape in shapes.items():
        if shape is None:
            raise UsageError(
                f"the images of {source} get the proportions of their file: choose one size in the data, "
                "images:DIR:size=..."
            )
    sizes = {source: shape[1:] for source, shape in shapes.items() if shape is not None}
    if len(set(sizes.values())) > 1:
        listed = ", ".join(
            f"{source} {height}" + (f" x {width}" if width != height else "")
            for source, (height, width) in sizes.items()
        )
        raise UsageError(
            f"the models want images of different sizes ({listed}): choose one in the data, images:DIR:size=..."
        )
