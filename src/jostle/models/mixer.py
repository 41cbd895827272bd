"""MLP-Mixer: Tolstikhin et al., "MLP-Mixer: an all-MLP architecture for vision" (2105.01601)."""

from torch import Tensor, nn

from jostle.base import checks
from jostle.models import register
from jostle.models.images import check_images, check_patches
from jostle.models.norms import Norms
from jostle.models.vit import cut_patches


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
        norm, norm_place: the kind of norms and where they are, see ``Norms``; the paper has LayerNorm in blocks.
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
        norm: str = "layer",
        norm_place: str = "blocks",
    ) -> None:
        super().__init__()
        checks.sizes(image_size=image_size, channels=channels, classes=classes, patch_size=patch_size, dim=dim)
        checks.sizes(depth=depth, tokens_dim=tokens_dim, mlp_dim=mlp_dim)
        check_patches(image_size, patch_size)
        self.image_size, self.channels, self.patch_size = image_size, channels, patch_size
        num_tokens = (image_size // patch_size) ** 2
        patch_dim, norms = channels * patch_size**2, Norms(norm, norm_place)
        self.patch_norm, self.embed, self.token_norm = (
            norms.on_tokens(patch_dim),
            nn.Linear(patch_dim, dim),
            norms.on_tokens(dim),
        )
        self.blocks = nn.Sequential(*(MixerBlock(num_tokens, dim, tokens_dim, mlp_dim, norms) for _ in range(depth)))
        self.norm = norms.in_blocks(dim)
        self.classifier = nn.Linear(dim, classes)

    def features(self, images: Tensor) -> Tensor:
        """The mean over the tokens of the last layer, (batch, dim)."""
        check_images(images, self.channels, self.image_size)
        patches = self.patch_norm(cut_patches(images, self.patch_size))  # (batch, tokens, patch_dim)
        tokens = self.norm(self.blocks(self.token_norm(self.embed(patches))))  # (batch, tokens, dim)
        pooled: Tensor = tokens.mean(dim=1)
        return pooled

    def forward(self, images: Tensor) -> Tensor:
        """Images to logits, (batch, channels, image_size, image_size) -> (batch, classes)."""
        logits: Tensor = self.classifier(self.features(images))
        return logits


class MixerBlock(nn.Module):
    """x + mlp over positions (norm(x)), the same for each channel; then x + mlp over channels (norm(x))."""

    def __init__(self, num_tokens: int, dim: int, tokens_dim: int, mlp_dim: int, norms: Norms) -> None:
        super().__init__()
        self.tokens_norm, self.tokens_mlp = norms.in_blocks(dim), two_layers(num_tokens, tokens_dim)
        self.channels_norm, self.channels_mlp = norms.in_blocks(dim), two_layers(dim, mlp_dim)

    def forward(self, tokens: Tensor) -> Tensor:
        """One block, (batch, tokens, dim) -> (batch, tokens, dim)."""
        tokens = tokens + self.tokens_mlp(self.tokens_norm(tokens).mT).mT
        mixed: Tensor = tokens + self.channels_mlp(self.channels_norm(tokens))
        return mixed


def two_layers(width: int, hidden: int) -> nn.Sequential:
    """Linear, GELU, Linear: ``width`` to ``hidden`` and back."""
    return nn.Sequential(nn.Linear(width, hidden), nn.GELU(), nn.Linear(hidden, width))
