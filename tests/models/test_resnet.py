import pytest
import torch
from torch import nn

from jostle import models
from jostle.models.resnet import ResNetBlock

SHRINK = (1 + 1e-5) ** -0.5  # A fresh BatchNorm in eval mode divides by sqrt(1 + eps) and does no more.


def normal(*shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


def test_paper_size():
    model = models.create("resnet-18")
    assert sum(weight.numel() for weight in model.parameters()) == 11_173_962
    # The eighteen layers of the name: the convolutions but for the three of the shortcuts, and the classifier.
    kernels = [layer.kernel_size for layer in model.modules() if isinstance(layer, nn.Conv2d)]
    assert (kernels.count((3, 3)) + 1, kernels.count((1, 1))) == (18, 3)


@pytest.mark.parametrize(("width_out", "stride"), [(3, 1), (4, 2), (5, 1), (3, 2)])
def test_block_is_the_papers_formula(width_out, stride):
    block = ResNetBlock(3, width_out, stride).double().eval()
    maps = normal(2, 3, 7, 7)
    first, second = block.residual[0][0].weight, block.residual[2][0].weight
    hidden = (nn.functional.conv2d(maps, first, stride=stride, padding=1) * SHRINK).clamp(min=0)
    residual = nn.functional.conv2d(hidden, second, padding=1) * SHRINK
    shortcut = maps
    if (width_out, stride) != (3, 1):
        # A 1x1 convolution is one matrix for every stride-th pixel.
        weight = block.shortcut[0].weight[:, :, 0, 0]
        shortcut = torch.einsum("oi,bihw->bohw", weight, maps[:, :, ::stride, ::stride]) * SHRINK
    torch.testing.assert_close(block(maps), (residual + shortcut).clamp(min=0))


def test_stages_widen_and_halve():
    model = models.create("resnet-18", image_size=28, channels=1, width=4, blocks=[1, 2, 1], seed=0).eval()
    maps, shapes = model.stem(torch.zeros(1, 1, 28, 28)), []
    for block in model.blocks:
        maps = block(maps)
        shapes.append(tuple(maps.shape[1:]))
    assert shapes == [(4, 28, 28), (8, 14, 14), (8, 14, 14), (16, 7, 7)]


def test_features_are_the_mean_over_positions():
    model = models.create("resnet-18", image_size=8, width=3, blocks=(1, 1), seed=0).double().eval()
    images = normal(2, 3, 8, 8)
    stem = (nn.functional.conv2d(images, model.stem[0][0].weight, padding=1) * SHRINK).clamp(min=0)
    maps = model.blocks(stem)
    assert maps.shape == (2, 6, 4, 4)
    total = sum(maps[..., i, j] for i in range(4) for j in range(4))
    torch.testing.assert_close(model.features(images), total / 16)
