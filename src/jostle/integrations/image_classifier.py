"""A pretrained image classifier: pixels in, logits out, and which pixels it wants."""

from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from jostle.base.errors import UsageError
from jostle.data.image_folder import ImageFiles
from jostle.data.preprocessing import Preprocessing


class ImageClassifier(nn.Module):
    """A network of another library as a function from a batch of pixels to logits, in eval mode.

    Arguments:
        network: called with # (batch, channels, height, width); answers with logits, # (batch, classes), or with an
            object that has ``logits``.
        preprocessing: what the network was trained to be given; None if it does not say.
        source: the spec it was made from, for messages.
    """

    gain: Tensor | None
    offset: Tensor | None

    def __init__(self, network: nn.Module, preprocessing: Preprocessing | None = None, source: str = "model") -> None:
        super().__init__()
        # Channels last in memory: a CPU runs EfficientNet-lite0 twice as fast so.
        self.network = network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        self.preprocessing, self.source = preprocessing, source
        self.register_buffer("gain", None, persistent=False)
        self.register_buffer("offset", None, persistent=False)
        self.eval()

    def taking(self, mean: Sequence[float], std: Sequence[float]) -> "ImageClassifier":
        """From now on take pixels normalised by ``mean`` and ``std``, and bring them to the network's own.

        So several networks can be given the same pixels, and the same noise: x becomes (x std + mean - m) / s, where m
        and s are the network's own. A network that does not say its own is given x as it is. Returns self.
        """
        self.gain = self.offset = None
        own = self.preprocessing
        if own is None or (own.mean, own.std) == (tuple(mean), tuple(std)):
            return self
        if len(own.mean) != len(mean):
            raise UsageError(
                f"{self.source} takes {len(own.mean)} colours, not {len(mean)}; mean={tuple(mean)} must fit"
            )
        given_mean, given_std, own_mean, own_std = (
            torch.tensor(numbers, dtype=torch.float64).view(-1, 1, 1) for numbers in (mean, std, own.mean, own.std)
        )
        self.gain, self.offset = (given_std / own_std).float(), ((given_mean - own_mean) / own_std).float()
        return self

    def forward(self, images: Tensor) -> Tensor:
        """Pixels to logits, (batch, channels, height, width) -> (batch, classes)."""
        if self.gain is not None and self.offset is not None:
            images = images * self.gain.to(images) + self.offset.to(images)
        answer = self.network(images)
        logits: Tensor = getattr(answer, "logits", answer)
        return logits

    def extra_repr(self) -> str:
        """What the layers below do not show."""
        return f"source={self.source!r}, preprocessing={self.preprocessing}"


def fitted(images: ImageFiles, models: Iterable[Any]) -> ImageFiles:
    """The images as these models take them: all get the same pixels, and so the same tokens and the same noise.

    Size, crop and normalisation are the first ``ImageClassifier``'s, unless the spec of the images says otherwise;
    every classifier is set to take that normalisation. Noise is therefore in units of these normalised pixels.

    Arguments:
        images: of ``open_images``.
        models: classifiers, and other models, which get the pixels as they are.
    """
    known = [model for model in models if isinstance(model, ImageClassifier) and model.preprocessing is not None]
    sizes = {model.source: model.preprocessing.size for model in known if model.preprocessing is not None}
    if len(set(sizes.values())) > 1 and "size" not in images.options:
        listed = ", ".join(f"{source} {size}" for source, size in sizes.items())
        raise UsageError(
            f"the models want images of different sizes ({listed}): choose one in the data, images:DIR:size=..."
        )
    if known and known[0].preprocessing is not None:
        images = images.prepared(known[0].preprocessing)
    elif missing := [name for name in ("size", "mean", "std") if name not in images.options]:
        raise UsageError(
            f"the model does not say which pixels it takes: give {', '.join(missing)} in the data, for example "
            "images:DIR:size=224,mean=0.485/0.456/0.406,std=0.229/0.224/0.225"
        )
    for model in known:
        model.taking(images.preprocessing.mean, images.preprocessing.std)
    return images
