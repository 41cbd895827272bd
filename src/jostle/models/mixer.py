"""MLP-Mixer: Tolstikhin et al., "MLP-Mixer: an all-MLP architecture for vision" (2105.01601)."""

from torch import Tensor, nn

from jostle.base import checks
from jostle.models import register
from jostle.models.images import check_images, check_patches
from jostle.models.vit import cut_patches, norm


@register("mlp-mixer")
class MLPMixer(nn.Module):
    """Patches -> tokens -> ``depth`` times: an MLP over the positions, an MLP over the channels -> mean -> logits.

    The default sizes have the depth of the paper's Mixer-S and a quarter of its widths, for images of 32 x 32.
    Not part of paper 1. Weights start from torch's defaults; no dropout.

    Arguments:
        image_size: height and width; a multiple of ``patch_size``.
        channels: colours of the image.
        classes: logits; 1 for a binary task with a single logit.
        patch_size: height and width of a patch; there are (image_size / patch_size)^2 tokens.
        dim: width of a token.
        depth: number of blocks.
        tokens_dim: hidden width of the MLP over the positions.
        mlp_dim: hidden width of the MLP over the channels of a token.
        norms: False removes every LayerNorm, to show their effect; not part of the paper.
    """

    def __init__(
        self,
        *,
        image_size: int = 32,
        channels: int = 3,
        classes: int = 10,
        patch_size: int = 4,
        dim: int = 128,
        depth: int = 8,
        tokens_dim: int = 64,
        mlp_dim: int = 512,
        norms: bool = True,
    ) -> None:
        super().__init__()
        checks.sizes(image_size=image_size, channels=channels, classes=classes, patch_size=patch_size, dim=dim)
        checks.sizes(depth=depth, tokens_dim=tokens_dim, mlp_dim=mlp_dim)
        checks.truth("norms", norms)
        check_patches(image_size, patch_size)
        self.image_size, self.channels, self.patch_size = image_size, channels, patch_size
        num_tokens = (image_size // patch_size) ** 2
        self.embed = nn.Linear(channels * patch_size**2, dim)
        self.blocks = nn.Sequential(*(MixerBlock(num_tokens, dim, tokens_dim, mlp_dim, norms) for _ in range(depth)))
        self.norm = norm(dim, norms)
        self.classifier = nn.Linear(dim, classes)

    def features(self, images: Tensor) -> Tensor:
        """The mean over the tokens of the last layer, (batch, dim)."""
        check_images(images, self.channels, self.image_size)
        tokens = self.norm(self.blocks(self.embed(cut_patches(images, self.patch_size))))  # (batch, tokens, dim)
        pooled: Tensor = tokens.mean(dim=1)
        return pooled

    def forward(self, images: Tensor) -> Tensor:
        """Images to logits, (batch, channels, image_size, image_size) -> (batch, classes)."""
        logits: Tensor = self.classifier(self.features(images))
        return logits


class MixerBlock(nn.Module):
    """x + mlp over positions (norm(x)), the same for each channel; then x + mlp over channels (norm(x))."""

    def __init__(self, num_tokens: int, dim: int, tokens_dim: int, mlp_dim: int, norms: bool) -> None:
        super().__init__()
        self.tokens_norm, self.tokens_mlp = norm(dim, norms), two_layers(num_tokens, tokens_dim)
        self.channels_norm, self.channels_mlp = norm(dim, norms), two_layers(dim, mlp_dim)

    def forward(self, tokens: Tensor) -> Tensor:
        """One block, (batch, tokens, dim) -> (batch, tokens, dim)."""
        tokens = tokens + self.tokens_mlp(self.tokens_norm(tokens).mT).mT
        mixed: Tensor = tokens + self.channels_mlp(self.channels_norm(tokens))
        return mixed


def two_layers(width: int, hidden: int) -> nn.Sequential:
    """Linear, GELU, Linear: ``width`` to ``hidden`` and back."""
    return nn.Sequential(nn.Linear(width, hidden), nn.GELU(), nn.Linear(hidden, width))
