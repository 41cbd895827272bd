"""``jostle.models.create``, over every registered model."""

import inspect

import pytest
import torch

from jostle import models
from jostle.base.errors import UsageError
from tests.test_contracts import MODEL_EXAMPLES


def small(name, **sizes):
    """A small network of that name, for images of 2 x 8 x 8 unless told otherwise."""
    return models.create(name, **{"image_size": 8, "channels": 2, **MODEL_EXAMPLES[name], **sizes})


@pytest.mark.parametrize("classes", [1, 2, 10])
@pytest.mark.parametrize("name", models.names())
def test_images_to_logits_through_features(name, classes):
    model = small(name, classes=classes, seed=0).double().eval()
    images = torch.randn(3, 2, 8, 8, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    logits = model(images)
    assert logits.shape == (3, classes)
    assert torch.equal(logits, model.classifier(model.features(images)))
    # One image at a time gives the same logits: nothing leaks between the examples of a batch.
    torch.testing.assert_close(torch.cat([model(images[i : i + 1]) for i in range(3)]), logits)


@pytest.mark.parametrize("name", models.names())
def test_two_passes_in_eval_mode_are_equal_to_the_bit(name):
    model = small(name, seed=0).eval()
    images = torch.randn(3, 2, 8, 8, generator=torch.Generator().manual_seed(0))
    assert torch.equal(model(images), model(images))


@pytest.mark.parametrize("patch_size", [4, 7])
@pytest.mark.parametrize("name", models.names())
def test_grey_images_of_28_by_28(name, patch_size):
    has_patches = "patch_size" in inspect.signature(models.MODELS.get(name)).parameters
    sizes = {"patch_size": patch_size} if has_patches else {}
    model = small(name, image_size=28, channels=1, classes=1, **sizes).eval()
    noise = torch.randn(2, 28, generator=torch.Generator().manual_seed(0))
    images = torch.zeros(3, 1, 28, 28)  # An empty image, one with the last row filled, one with the last column.
    images[1, 0, -1], images[2, 0, :, -1] = noise
    logits = model(images)
    assert logits.shape == (3, 1)
    assert logits[0] != logits[1]
    assert logits[0] != logits[2]


@pytest.mark.parametrize("name", models.names())
def test_every_parameter_gets_a_gradient(name):
    model = small(name, seed=0).double()
    images = torch.randn(3, 2, 8, 8, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    model(images).square().sum().backward()
    assert [name for name, weight in model.named_parameters() if not weight.grad.abs().sum() > 0] == []


@pytest.mark.parametrize("name", models.names())
def test_seed_decides_the_weights_and_spares_the_global_generator(name):
    before = torch.random.get_rng_state()
    first, same, other = (small(name, seed=seed).state_dict() for seed in (0, 0, 1))
    assert torch.equal(torch.random.get_rng_state(), before)
    assert all(torch.equal(first[key], same[key]) for key in first)
    assert any(not torch.equal(first[key], other[key]) for key in first)


def test_any_whole_number_is_a_seed():
    largest, negative = (small("mlp", seed=seed).state_dict() for seed in (2**64 - 1, -1))
    assert all(torch.equal(largest[key], negative[key]) for key in largest)
    for seed in (2**64, 10**30, -(2**70)):
        small("mlp", seed=seed)
    with pytest.raises(UsageError, match=r"seed=1\.5 must be a whole number"):
        small("mlp", seed=1.5)


@pytest.mark.parametrize("name", models.names())
def test_without_seed_the_global_generator_decides(name):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        drawn = small(name).state_dict()
    seeded = small(name, seed=3).state_dict()
    assert all(torch.equal(drawn[key], seeded[key]) for key in drawn)


@pytest.mark.parametrize("name", models.names())
def test_images_of_another_size(name):
    model = small(name)
    with pytest.raises(UsageError, match=r"built for images of shape \(2, 8, 8\), got a batch of shape \(3, 1, 8, 8\)"):
        model(torch.zeros(3, 1, 8, 8))


def test_unknown_model():
    with pytest.raises(UsageError, match="unknown model 'vit-simpel'; did you mean vit-simple"):
        models.create("vit-simpel")


def test_unknown_argument():
    with pytest.raises(UsageError, match=r"unknown vit-simple argument 'depht'; did you mean depth\?"):
        models.create("vit-simple", depht=3)
