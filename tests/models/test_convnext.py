import math

import pytest
import torch

from jostle import models
from jostle.base.errors import UsageError
from jostle.models.convnext import ConvNeXtBlock, HalvingLayer, MapNorm


def normal(*shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


def norm(x, layer):
    """LayerNorm over the last axis."""
    centred = x - x.mean(dim=-1, keepdim=True)
    return centred / (centred.square().mean(dim=-1, keepdim=True) + 1e-5).sqrt() * layer.weight + layer.bias


def randomise(module):
    """Weights unlike those at the start: a scale of 1 and a norm without effect would hide mistakes."""
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for weight in module.parameters():
            weight.copy_(torch.randn(weight.shape, generator=generator))
    return module


def test_default_size():
    def block(width):
        return (49 * width + width) + 2 * width + (4 * width * width + 4 * width) + (4 * width * width + width) + width

    stem, halvings = 13 * 48 + 96, (96 + 4 * 48 * 96 + 96) + (192 + 4 * 96 * 192 + 192)
    blocks = sum(2 * block(width) for width in (48, 96, 192))
    model = models.create("convnext")
    found = sum(weight.numel() for weight in model.parameters())
    assert found == stem + halvings + blocks + 2 * 192 + 1930 == 908_890


def test_block_by_loops():
    block = randomise(ConvNeXtBlock(3, kernel_size=5, layer_scale=0.5).double())
    maps = normal(2, 3, 4, 6)
    padded = torch.zeros(2, 3, 8, 10)
    padded[..., 2:6, 2:8] = maps
    _, widen, _, narrow = block.mlp
    kernel, bias = block.depthwise.weight, block.depthwise.bias
    found = block(maps)
    for row in range(4):
        for column in range(6):
            # Each channel on its own: the window times that channel's kernel.
            windows = padded[..., row : row + 5, column : column + 5]
            x = torch.stack([(windows[:, c] * kernel[c, 0]).sum(dim=(1, 2)) + bias[c] for c in range(3)], dim=1)
            hidden = norm(x, block.mlp[0]) @ widen.weight.T + widen.bias
            x = hidden * (1 + torch.erf(hidden / math.sqrt(2))) / 2 @ narrow.weight.T + narrow.bias
            torch.testing.assert_close(found[:, :, row, column], maps[:, :, row, column] + block.scale * x)


def test_scale_starts_as_told():
    assert ConvNeXtBlock(3, 7, layer_scale=0.25).scale.tolist() == [0.25] * 3


@pytest.mark.parametrize(("height", "width"), [(4, 6), (5, 7), (1, 2)])
def test_halving_by_loops(height, width):
    halving = randomise(HalvingLayer(3, 4).double())
    maps = normal(2, 3, height, width)
    found = halving(maps)
    assert found.shape == (2, 4, (height + 1) // 2, (width + 1) // 2)
    weight, bias = halving.convolution.weight, halving.convolution.bias
    for row in range(found.shape[2]):
        for column in range(found.shape[3]):
            expected = bias
            for i in (0, 1):
                for j in (0, 1):
                    if 2 * row + i < height and 2 * column + j < width:
                        pixel = norm(maps[:, :, 2 * row + i, 2 * column + j], halving.norm)
                        expected = expected + pixel @ weight[:, :, i, j].T
            torch.testing.assert_close(found[:, :, row, column], expected)


def test_forward_is_the_chain_of_its_parts():
    sizes = {"patch_size": 2, "widths": [4, 6], "depths": [1, 2], "kernel_size": 3}
    model = randomise(models.create("convnext", image_size=6, channels=2, classes=3, **sizes).double())
    images = normal(2, 2, 6, 6)
    patchify, first_norm, one, halving, two, three = model.layers
    assert isinstance(first_norm, MapNorm)
    corners = images.reshape(2, 2, 3, 2, 3, 2)  # (batch, channels, row, pixel, column, pixel)
    maps = torch.einsum("ocij,bcriqj->brqo", patchify.weight, corners) + patchify.bias
    maps = three(two(halving(one(norm(maps, first_norm).permute(0, 3, 1, 2)))))
    assert maps.shape == (2, 6, 2, 2)
    pooled = norm((maps[..., 0, 0] + maps[..., 0, 1] + maps[..., 1, 0] + maps[..., 1, 1]) / 4, model.norm)
    torch.testing.assert_close(model(images), pooled @ model.classifier.weight.T + model.classifier.bias)


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ({"kernel_size": 4}, "kernel_size=4 must be odd"),
        ({"depths": (2, 2)}, r"widths=\(48, 96, 192\) and depths=\(2, 2\) must have one entry for each stage"),
        ({"layer_scale": 0}, "layer_scale=0 must be a finite number above 0"),
        ({"image_size": 31}, "image_size=31 must be a multiple of patch_size=2"),
    ],
)
def test_sizes_are_checked(sizes, message):
    with pytest.raises(UsageError, match=message):
        models.create("convnext", **sizes)
