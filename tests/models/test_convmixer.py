import pytest
import torch
from torch import nn

from jostle import models
from jostle.base.errors import UsageError
from jostle.models.convmixer import ConvMixerBlock


def test_paper_size():
    model = models.create("convmixer")
    assert sum(weight.numel() for weight in model.parameters()) == 117_642


def test_block_is_the_papers_formula():
    block = ConvMixerBlock(dim=3, kernel_size=5).double().eval()
    patches = torch.randn(2, 3, 7, 7, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    gelu = nn.functional.gelu
    shrink = (1 + 1e-5) ** -0.5  # A fresh BatchNorm in eval mode divides by sqrt(1 + eps) and does no more.
    depthwise, pointwise = block.depthwise[0], block.pointwise[0]
    mixed = (
        patches + gelu(nn.functional.conv2d(patches, depthwise.weight, depthwise.bias, padding=2, groups=3)) * shrink
    )
    expected = gelu(nn.functional.conv2d(mixed, pointwise.weight, pointwise.bias)) * shrink
    torch.testing.assert_close(block(patches), expected)


def test_features_are_the_mean_over_positions():
    model = models.create("convmixer", image_size=8, dim=6, depth=1, seed=0).double().eval()
    images = torch.randn(2, 3, 8, 8, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    patches = model.blocks(model.embed(images))
    assert patches.shape == (2, 6, 2, 2)
    torch.testing.assert_close(model.features(images), sum(patches[..., i, j] for i in (0, 1) for j in (0, 1)) / 4)


def test_patches_must_tile_the_image():
    with pytest.raises(UsageError, match="image_size=30 must be a multiple of patch_size=4"):
        models.create("convmixer", image_size=30)
