"""ConvMixer: Trockman and Kolter, "Patches are all you need?" (2201.09792)."""

from torch import Tensor, nn

from jostle.base import checks
from jostle.models import register
from jostle.models.images import check_images, check_patches


@register("convmixer")
class ConvMixer(nn.Module):
    """Patches by a strided convolution, then ``depth`` times: mix positions (with a residual), mix channels.

    Every convolution is followed by GELU and BatchNorm, in that order. At the default sizes it is paper 1's
    (2403.06925) ConvMixer for CIFAR-10: 117,642 parameters. BatchNorm makes training-mode outputs depend on the
    batch: measure in eval mode.

    Arguments:
        image_size: height and width; a multiple of ``patch_size``.
        channels: colours of the image.
        classes: logits; 1 for a binary task with a single logit.
        patch_size: height and width of a patch.
        dim: channels inside the network.
        depth: number of blocks.
        kernel_size: height and width of the depthwise convolution.
    """

    def __init__(
        self,
        *,
        image_size: int = 32,
        channels: int = 3,
        classes: int = 10,
        patch_size: int = 4,
        dim: int = 128,
        depth: int = 6,
        kernel_size: int = 3,
    ) -> None:
        super().__init__()
        checks.sizes(image_size=image_size, channels=channels, classes=classes)
        checks.sizes(patch_size=patch_size, dim=dim, depth=depth, kernel_size=kernel_size)
        check_patches(image_size, patch_size)
        self.image_size, self.channels = image_size, channels
        self.embed = convolution_gelu_norm(nn.Conv2d(channels, dim, patch_size, stride=patch_size))
        self.blocks = nn.Sequential(*(ConvMixerBlock(dim, kernel_size) for _ in range(depth)))
        self.classifier = nn.Linear(dim, classes)

    def features(self, images: Tensor) -> Tensor:
        """The mean over the positions of the last layer, (batch, dim)."""
        check_images(images, self.channels, self.image_size)
        patches = self.blocks(self.embed(images))  # (batch, dim, grid, grid)
        pooled: Tensor = patches.mean(dim=(2, 3))  # (batch, dim)
        return pooled

    def forward(self, images: Tensor) -> Tensor:
        """Images to logits, (batch, channels, image_size, image_size) -> (batch, classes)."""
        logits: Tensor = self.classifier(self.features(images))
        return logits


class ConvMixerBlock(nn.Module):
    """x + depthwise(x), which mixes positions within a channel, then pointwise, which mixes channels."""

    def __init__(self, dim: int, kernel_size: int) -> None:
        super().__init__()
        self.depthwise = convolution_gelu_norm(nn.Conv2d(dim, dim, kernel_size, groups=dim, padding="same"))
        self.pointwise = convolution_gelu_norm(nn.Conv2d(dim, dim, kernel_size=1))

    def forward(self, patches: Tensor) -> Tensor:
        """One block, (batch, dim, grid, grid) -> (batch, dim, grid, grid)."""
        mixed: Tensor = self.pointwise(patches + self.depthwise(patches))
        return mixed


def convolution_gelu_norm(convolution: nn.Conv2d) -> nn.Sequential:
    """The convolution, then GELU, then BatchNorm."""
    return nn.Sequential(convolution, nn.GELU(), nn.BatchNorm2d(convolution.out_channels))
