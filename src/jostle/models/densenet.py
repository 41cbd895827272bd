"""Densely connected networks: Huang, Liu, van der Maaten and Weinberger (1608.06993)."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from jostle.base import checks
from jostle.base.errors import UsageError
from jostle.models import register
from jostle.models.images import check_images

BOTTLENECK = 4  # A layer narrows its input to this many times the growth before its 3x3 convolution.


@register("densenet-121")
class DenseNet(nn.Module):
    """conv 3x3 -> max-pool -> dense blocks with a halving transition between them -> mean over positions -> logits.

    At the default sizes it is paper 1's (2403.06925) DenseNet-121 for CIFAR-10 (the DenseNet-BC of Huang et al.):
    6,956,426 parameters. Convolutions start from the scheme of He et al. (1502.01852) and the last bias from 0.
    BatchNorm makes training-mode outputs depend on the batch: measure in eval mode.

    Differs: the first convolution is 3x3 with stride 1 instead of 7x7 with stride 2, yet the max pooling of the
    ImageNet network stays. Paper 1's network has it so; the CIFAR networks of Huang et al. do not pool there.

    Arguments:
        image_size: height and width; at least 2^(len(blocks) - 1) after the max pooling.
        channels: colours of the image.
        classes: logits; 1 for a binary task with a single logit.
        growth: channels that each layer adds; the first convolution makes twice as many.
        blocks: layers in each dense block; transitions between blocks halve channels, height and width.
    """

    def __init__(
        self,
        *,
        image_size: int = 32,
        channels: int = 3,
        classes: int = 10,
        growth: int = 32,
        blocks: Sequence[int] = (6, 12, 24, 16),
    ) -> None:
        super().__init__()
        checks.sizes(image_size=image_size, channels=channels, classes=classes, growth=growth)
        checks.wholes("blocks", blocks, least=1, example="(6, 12, 24, 16)")
        if (image_size + 1) // 2 < 2 ** (len(blocks) - 1):
            smallest = 2 ** len(blocks) - 1
            raise UsageError(
                f"image_size={image_size} is too small: {len(blocks)} blocks need {smallest}; use fewer blocks"
            )
        self.image_size, self.channels = image_size, channels
        width = 2 * growth
        first = nn.Conv2d(channels, width, 3, padding=1, bias=False)
        self.stem = nn.Sequential(first, nn.BatchNorm2d(width), nn.ReLU(), nn.MaxPool2d(3, stride=2, padding=1))
        layers: list[nn.Module] = []
        for block, count in enumerate(blocks):
            if block > 0:
                layers.append(nn.Sequential(norm_relu_convolution(width, width // 2, 1), nn.AvgPool2d(2)))
                width //= 2
            for _ in range(count):
                layers.append(DenseLayer(width, growth))
                width += growth
        self.blocks = nn.Sequential(*layers)
        self.norm = nn.Sequential(nn.BatchNorm2d(width), nn.ReLU())
        self.classifier = nn.Linear(width, classes)
        self.start()

    def start(self) -> None:
        """Draw the weights of the convolutions, N(0, 2 / inputs), and set the last bias to 0."""
        for layer in self.modules():
            if isinstance(layer, nn.Conv2d):
                nn.init.kaiming_normal_(layer.weight)
        nn.init.zeros_(self.classifier.bias)

    def features(self, images: Tensor) -> Tensor:
        """The mean over the positions of the last layer, (batch, width)."""
        check_images(images, self.channels, self.image_size)
        maps = self.norm(self.blocks(self.stem(images)))  # (batch, width, height, width)
        pooled: Tensor = maps.mean(dim=(2, 3))
        return pooled

    def forward(self, images: Tensor) -> Tensor:
        """Images to logits, (batch, channels, image_size, image_size) -> (batch, classes)."""
        logits: Tensor = self.classifier(self.features(images))
        return logits


class DenseLayer(nn.Module):
    """x with ``growth`` more channels, made from x by a 1x1 and a 3x3 convolution."""

    def __init__(self, width: int, growth: int) -> None:
        super().__init__()
        narrow = BOTTLENECK * growth
        self.grow = nn.Sequential(norm_relu_convolution(width, narrow, 1), norm_relu_convolution(narrow, growth, 3))

    def forward(self, maps: Tensor) -> Tensor:
        """One layer, (batch, width, height, width) -> (batch, width + growth, height, width)."""
        return torch.cat([maps, self.grow(maps)], dim=1)


def norm_relu_convolution(width_in: int, width_out: int, kernel_size: int) -> nn.Sequential:
    """BatchNorm, ReLU, then a convolution without bias that keeps height and width."""
    convolution = nn.Conv2d(width_in, width_out, kernel_size, padding=kernel_size // 2, bias=False)
    return nn.Sequential(nn.BatchNorm2d(width_in), nn.ReLU(), convolution)
