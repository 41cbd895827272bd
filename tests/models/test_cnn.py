import pytest
import torch
from torch import nn

from jostle import models
from jostle.base.errors import UsageError


def test_paper_size():
    model = models.create("cnn")
    assert sum(weight.numel() for weight in model.parameters()) == 600_810
    assert model.hidden[1].in_features == 4608


@pytest.mark.parametrize("image_size", [6, 9])
def test_forward_step_by_step(image_size):
    model = models.create("cnn", image_size=image_size, channels=2, width=3, hidden=4, classes=5, seed=0).double()
    first, second = model.convolutions[0], model.convolutions[2]
    hidden, last = model.hidden[1], model.classifier
    generator = torch.Generator().manual_seed(0)
    images = torch.randn(2, 2, image_size, image_size, generator=generator, dtype=torch.float64)
    maps = nn.functional.conv2d(images, first.weight, first.bias)
    maps = torch.where(maps > 0, maps, 0.01 * maps)
    maps = nn.functional.conv2d(maps, second.weight, second.bias)
    side = maps.shape[-1] // 2
    pooled = maps[..., : 2 * side, : 2 * side].reshape(2, 3, side, 2, side, 2).amax(dim=(3, 5))
    values = pooled.flatten(1) @ hidden.weight.T + hidden.bias
    expected = torch.where(values > 0, values, 0.01 * values) @ last.weight.T + last.bias
    torch.testing.assert_close(model(images), expected)


def test_too_small_an_image():
    with pytest.raises(UsageError, match="image_size=5 is too small"):
        models.create("cnn", image_size=5)
