"""Residual networks: He, Zhang, Ren and Sun, "Deep residual learning for image recognition" (1512.03385)."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from jostle.base import checks
from jostle.models import register
from jostle.models.images import check_images


@register("resnet-18")
class ResNet(nn.Module):
    """conv 3x3 -> stages of residual blocks, each twice as wide and half as high -> mean over positions -> logits.

    At the default sizes it is paper 1's (2403.06925) ResNet-18 for CIFAR-10: 11,173,962 parameters. BatchNorm makes
    training-mode outputs depend on the batch: measure in eval mode.

    Differs: for small images the first layer is a 3x3 convolution with stride 1 and no pooling follows; the paper has
    7x7 with stride 2 and max pooling, for ImageNet. Weights start from torch's defaults, as in paper 1's network.

    Arguments:
        image_size: height and width.
        channels: colours of the image.
        classes: logits; 1 for a binary task with a single logit.
        width: channels of the first stage; each stage has twice as many as the one before.
        blocks: residual blocks in each stage; the stages after the first halve height and width, rounded up.
    """

    def __init__(
        self,
        *,
        image_size: int = 32,
        channels: int = 3,
        classes: int = 10,
        width: int = 64,
        blocks: Sequence[int] = (2, 2, 2, 2),
    ) -> None:
        super().__init__()
        checks.sizes(image_size=image_size, channels=channels, classes=classes, width=width)
        checks.wholes("blocks", blocks, least=1, example="(2, 2, 2, 2)")
        self.image_size, self.channels = image_size, channels
        self.stem = nn.Sequential(convolution_norm(channels, width, 3), nn.ReLU())
        layers: list[nn.Module] = []
        width_in = width
        for stage, count in enumerate(blocks):
            for block in range(count):
                stride = 2 if stage > 0 and block == 0 else 1
                layers.append(ResNetBlock(width_in, width * 2**stage, stride))
                width_in = width * 2**stage
        self.blocks = nn.Sequential(*layers)
        self.classifier = nn.Linear(width_in, classes)

    def features(self, images: Tensor) -> Tensor:
        """The mean over the positions of the last layer, (batch, width of the last stage)."""
        check_images(images, self.channels, self.image_size)
        maps = self.blocks(self.stem(images))  # (batch, width, height, width)
        pooled: Tensor = maps.mean(dim=(2, 3))
        return pooled

    def forward(self, images: Tensor) -> Tensor:
        """Images to logits, (batch, channels, image_size, image_size) -> (batch, classes)."""
        logits: Tensor = self.classifier(self.features(images))
        return logits


class ResNetBlock(nn.Module):
    """relu(residual(x) + shortcut(x)), where residual is conv 3x3 -> BatchNorm -> ReLU -> conv 3x3 -> BatchNorm.

    The shortcut is x itself, or a 1x1 convolution and BatchNorm where the shape changes (option B of the paper).
    """

    def __init__(self, width_in: int, width_out: int, stride: int) -> None:
        super().__init__()
        self.residual = nn.Sequential(
            convolution_norm(width_in, width_out, 3, stride), nn.ReLU(), convolution_norm(width_out, width_out, 3)
        )
        is_same = stride == 1 and width_in == width_out
        self.shortcut = nn.Identity() if is_same else convolution_norm(width_in, width_out, 1, stride)

    def forward(self, maps: Tensor) -> Tensor:
        """One block, (batch, width_in, height, width) -> (batch, width_out, height / stride, width / stride)."""
        return torch.relu(self.residual(maps) + self.shortcut(maps))


def convolution_norm(width_in: int, width_out: int, kernel_size: int, stride: int = 1) -> nn.Sequential:
    """A convolution without bias that keeps height and width (up to the stride), then BatchNorm."""
    convolution = nn.Conv2d(width_in, width_out, kernel_size, stride, padding=kernel_size // 2, bias=False)
    return nn.Sequential(convolution, nn.BatchNorm2d(width_out))
