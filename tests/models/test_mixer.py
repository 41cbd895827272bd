import math

import pytest
import torch

from jostle import models
from jostle.base.errors import UsageError
from jostle.models.norms import NORMS
from jostle.models.vit import cut_patches
from tests.models.norm_formulas import by_formula


def normal(*shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


def test_default_size():
    """By hand: patches 48 -> 128, eight blocks over 64 tokens, norm, logits."""
    block = 4 * 128 + (64 * 64 + 64) * 2 + (128 * 512 + 512) + (512 * 128 + 128)
    model = models.create("mlp-mixer")
    assert sum(weight.numel() for weight in model.parameters()) == 49 * 128 + 8 * block + 256 + 1290 == 1_132_170


@pytest.mark.parametrize("kind", NORMS)
def test_forward_step_by_step(kind):
    sizes = {"image_size": 6, "channels": 2, "classes": 3, "patch_size": 2, "dim": 5, "depth": 2}
    model = models.create("mlp-mixer", **sizes, tokens_dim=4, mlp_dim=7, norm=kind, seed=0).double()
    images = normal(2, 2, 6, 6)

    norm = by_formula(kind)

    def mlp(x, layers):
        hidden = x @ layers[0].weight.T + layers[0].bias
        return hidden * (1 + torch.erf(hidden / math.sqrt(2))) / 2 @ layers[2].weight.T + layers[2].bias

    x = cut_patches(images, 2) @ model.embed.weight.T + model.embed.bias
    for block in model.blocks:
        normed = norm(x, block.tokens_norm)
        x = x + torch.stack([mlp(normed[..., channel], block.tokens_mlp) for channel in range(5)], dim=-1)
        normed = norm(x, block.channels_norm)
        x = x + torch.stack([mlp(normed[:, token], block.channels_mlp) for token in range(9)], dim=1)
    pooled = norm(x, model.norm).sum(dim=1) / 9
    torch.testing.assert_close(model(images), pooled @ model.classifier.weight.T + model.classifier.bias)


def test_patches_must_tile_the_image():
    with pytest.raises(UsageError, match="image_size=30 must be a multiple of patch_size=4"):
        models.create("mlp-mixer", image_size=30)
