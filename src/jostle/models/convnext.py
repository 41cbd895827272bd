"""ConvNeXt: Liu, Mao, Wu, Feichtenhofer, Darrell and Xie, "A ConvNet for the 2020s" (2201.03545)."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from jostle.base import checks
from jostle.base.errors import UsageError
from jostle.models import register
from jostle.models.images import check_images, check_patches


@register("convnext")
class ConvNeXt(nn.Module):
    """Patches by a strided convolution -> stages of depthwise 7x7 blocks -> mean over positions -> LayerNorm -> logits.

    The blocks are the paper's; the default sizes are ours, for images of 32 x 32. Not part of paper 1. A fresh network
    is nearly linear in the first layer's output: the branches start at ``layer_scale`` times their size.

    Differs: weights start from torch's defaults, blocks are never skipped in training, and a map of odd height is
    padded with a row and a column of zeros before it is halved, so that no pixel of a 28 x 28 image is lost.

    Arguments:
        image_size: height and width; a multiple of ``patch_size``.
        channels: colours of the image.
        classes: logits; 1 for a binary task with a single logit.
        patch_size: height and width of a patch.
        widths: channels of each stage; stages after the first halve height and width, rounded up.
        depths: blocks in each stage.
        kernel_size: height and width of the depthwise convolution; odd.
        layer_scale: what each channel of a branch is multiplied by at the start; learned.
    """

    def __init__(
        self,
        *,
        image_size: int = 32,
        channels: int = 3,
        classes: int = 10,
        patch_size: int = 2,
        widths: Sequence[int] = (48, 96, 192),
        depths: Sequence[int] = (2, 2, 2),
        kernel_size: int = 7,
        layer_scale: float = 1e-6,
    ) -> None:
        super().__init__()
        checks.sizes(image_size=image_size, channels=channels, classes=classes)
        checks.sizes(patch_size=patch_size, kernel_size=kernel_size)
        checks.number("layer_scale", layer_scale, above=0)
        checks.wholes("widths", widths, least=1, example="(48, 96, 192)")
        checks.wholes("depths", depths, least=1, example="(2, 2, 2)")
        if len(widths) != len(depths):
            raise UsageError(f"widths={widths!r} and depths={depths!r} must have one entry for each stage")
        if kernel_size % 2 == 0:
            raise UsageError(f"kernel_size={kernel_size} must be odd, so that the convolution has a middle")
        check_patches(image_size, patch_size)
        self.image_size, self.channels = image_size, channels
        layers: list[nn.Module] = [nn.Conv2d(channels, widths[0], patch_size, stride=patch_size), MapNorm(widths[0])]
        for stage, (width, depth) in enumerate(zip(widths, depths, strict=True)):
            if stage > 0:
                layers.append(HalvingLayer(widths[stage - 1], width))
            layers += [ConvNeXtBlock(width, kernel_size, layer_scale) for _ in range(depth)]
        self.layers = nn.Sequential(*layers)
        self.norm = nn.LayerNorm(widths[-1])
        self.classifier = nn.Linear(widths[-1], classes)

    def features(self, images: Tensor) -> Tensor:
        """The normalised mean over the positions of the last layer, (batch, widths[-1])."""
        check_images(images, self.channels, self.image_size)
        maps = self.layers(images)  # (batch, widths[-1], height, width)
        pooled: Tensor = self.norm(maps.mean(dim=(2, 3)))
        return pooled

    def forward(self, images: Tensor) -> Tensor:
        """Images to logits, (batch, channels, image_size, image_size) -> (batch, classes)."""
        logits: Tensor = self.classifier(self.features(images))
        return logits


class MapNorm(nn.LayerNorm):
    """LayerNorm over the channels of each position, (batch, width, height, width)."""

    def forward(self, maps: Tensor) -> Tensor:
        """Shape is kept."""
        return super().forward(maps.movedim(1, -1)).movedim(-1, 1)


class HalvingLayer(nn.Module):
    """MapNorm, then a 2x2 convolution with stride 2; zeros fill up an odd height or width."""

    def __init__(self, width_in: int, width_out: int) -> None:
        super().__init__()
        self.norm = MapNorm(width_in)
        self.convolution = nn.Conv2d(width_in, width_out, 2, stride=2)

    def forward(self, maps: Tensor) -> Tensor:
        """(batch, width_in, height, width) -> (batch, width_out, height / 2, width / 2), rounded up."""
        height, width = maps.shape[-2:]
        halved: Tensor = self.convolution(nn.functional.pad(self.norm(maps), (0, width % 2, 0, height % 2)))
        return halved


class ConvNeXtBlock(nn.Module):
    """x + scale * branch(x): depthwise convolution -> LayerNorm -> Linear to 4 width -> GELU -> Linear back."""

    def __init__(self, width: int, kernel_size: int, layer_scale: float) -> None:
        super().__init__()
        self.depthwise = nn.Conv2d(width, width, kernel_size, padding=kernel_size // 2, groups=width)
        self.mlp = nn.Sequential(
            nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        )
        self.scale = nn.Parameter(torch.full((width,), float(layer_scale)))

    def forward(self, maps: Tensor) -> Tensor:
        """One block, (batch, width, height, width) -> (batch, width, height, width)."""
        branch = self.mlp(self.depthwise(maps).movedim(1, -1)) * self.scale  # (batch, height, width, channels)
        mixed: Tensor = maps + branch.movedim(-1, 1)
        return mixed
