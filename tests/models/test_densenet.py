import math

import pytest
import torch
from torch import nn

from jostle import models
from jostle.base.errors import UsageError
from jostle.models.densenet import DenseLayer


def normal(*shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


def test_paper_size():
    model = models.create("densenet-121")
    assert sum(weight.numel() for weight in model.parameters()) == 6_956_426
    # The 121 layers of the name: all convolutions and the classifier.
    assert sum(isinstance(layer, nn.Conv2d) for layer in model.modules()) + 1 == 121
    assert model.classifier.in_features == 1024


def randomise(module):
    """Norms unlike those at the start, which would hide mistakes in their order and can leave no unit above 0."""
    generator = torch.Generator().manual_seed(1)
    for layer in module.modules():
        if isinstance(layer, nn.BatchNorm2d):
            for numbers in (layer.weight.data, layer.bias.data, layer.running_mean, layer.running_var):
                numbers.copy_(torch.rand(numbers.shape, generator=generator) + 0.1)
    return module.double().eval()


def norm(maps, layer):
    """BatchNorm in eval mode and ReLU, by the formula."""
    mean, variance, gain, bias = (
        numbers[:, None, None] for numbers in (layer.running_mean, layer.running_var, layer.weight, layer.bias)
    )
    return ((maps - mean) / (variance + 1e-5).sqrt() * gain + bias).clamp(min=0)


def test_layer_is_the_papers_formula():
    layer = randomise(DenseLayer(3, growth=2))
    maps = normal(2, 3, 5, 5)
    (first, _, narrow), (second, _, wide) = layer.grow
    assert (narrow.weight.shape, wide.weight.shape) == ((8, 3, 1, 1), (2, 8, 3, 3))
    hidden = torch.einsum("oi,bihw->bohw", narrow.weight[:, :, 0, 0], norm(maps, first))
    new = nn.functional.conv2d(norm(hidden, second), wide.weight, padding=1)
    found = layer(maps)
    assert torch.equal(found[:, :3], maps)
    torch.testing.assert_close(found[:, 3:], new)


def test_forward_step_by_step():
    """The whole network once more, from its weights; the dense layers by the class tested above."""
    model = randomise(models.create("densenet-121", image_size=9, channels=2, growth=3, blocks=(1, 2), seed=0))
    images = normal(2, 2, 9, 9)
    maps = norm(nn.functional.conv2d(images, model.stem[0].weight, padding=1), model.stem[1])
    # After ReLU a border of zeros is as good as none: the largest of the up to nine pixels around every other one.
    padded = nn.functional.pad(maps, (1, 1, 1, 1))
    maps = torch.stack([padded[..., i : i + 9 : 2, j : j + 9 : 2] for i in range(3) for j in range(3)]).amax(dim=0)
    first, transition, second, third = model.blocks
    maps = norm(first(maps), transition[0][0])
    assert maps.shape == (2, 9, 5, 5)  # 6 channels from the stem and 3 new ones.
    weight = transition[0][2].weight[:, :, 0, 0]
    assert weight.shape == (4, 9)
    maps = torch.einsum("oi,bihw->bohw", weight, maps)
    maps = sum(maps[..., i : i + 4 : 2, j : j + 4 : 2] for i in (0, 1) for j in (0, 1)) / 4
    pooled = norm(third(second(maps)), model.norm[0]).mean(dim=(2, 3))
    assert pooled.count_nonzero() > 10  # of 20
    torch.testing.assert_close(model(images), pooled @ model.classifier.weight.T + model.classifier.bias)


def test_convolutions_start_from_the_scheme_of_he():
    """The variance of N weights from N(0, s^2) has the standard error s^2 sqrt(2 / N)."""
    model = models.create("densenet-121", growth=16, blocks=(2, 2), seed=0)
    weights = [layer.weight.detach().flatten() for layer in model.modules() if isinstance(layer, nn.Conv2d)]
    inputs = [layer.weight[0].numel() for layer in model.modules() if isinstance(layer, nn.Conv2d)]
    scaled = torch.cat([weight * math.sqrt(count / 2) for weight, count in zip(weights, inputs, strict=True)])
    assert abs(scaled.square().mean() - 1) < 4 * math.sqrt(2 / len(scaled))
    assert scaled.abs().max() > 3  # Torch's default is uniform and ends at 0.71 on this scale.
    assert not model.classifier.bias.any()


def test_the_smallest_image():
    for count in (1, 2, 3, 4):
        sizes = {"growth": 2, "blocks": (1,) * count}
        smallest = 2**count - 1
        model = models.create("densenet-121", image_size=smallest, **sizes).eval()
        assert model(torch.zeros(1, 3, smallest, smallest)).isfinite().all()
        if smallest > 1:
            with pytest.raises(UsageError, match=f"image_size={smallest - 1} is too small: {count} blocks need"):
                models.create("densenet-121", image_size=smallest - 1, **sizes)
