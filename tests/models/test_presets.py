import pytest
import torch

from jostle import models
from jostle.base.errors import UsageError
from jostle.models.presets import PRESETS, preset

PARAMETERS = {
    ("cifar-10", "vit-small"): 4_482_482,
    ("cifar-10", "vit-simple"): 1_975_210,
    ("cifar-10", "convmixer"): 117_642,
    ("cifar-10", "resnet-18"): 11_173_962,
    ("cifar-10", "densenet-121"): 6_956_426,
    ("svhn", "vit-small"): 4_482_482 + 8 * 256 * (64 + 64 + 1),  # Each MLP is 256 wider than for CIFAR-10.
    ("svhn", "resnet-18"): 11_173_962,
    ("fashion-mnist", "vit-small"): 338_348,
    ("fashion-mnist", "mlp-leaky-relu"): 785 * 512 + 513 * 128 + 1280,
    ("fashion-mnist", "mlp-sigmoid"): 785 * 512 + 513 * 128 + 1280,
    ("fashion-mnist", "cnn"): 600_810,
    ("mnist", "vit-small"): 84_141,
    ("mnist", "mlp"): 785 * 100 + 100,
}


def test_every_preset_is_counted():
    assert {(dataset, network) for dataset in PRESETS for network in PRESETS[dataset]} == PARAMETERS.keys()


@pytest.mark.parametrize(("dataset", "network"), PARAMETERS)
def test_parameters_and_logits(dataset, network):
    name, sizes = preset(dataset, network)
    model = models.create(name, **sizes).eval()
    assert sum(weight.numel() for weight in model.parameters()) == PARAMETERS[dataset, network]
    assert (sizes["image_size"], sizes["channels"]) == ((28, 1) if "mnist" in dataset else (32, 3))
    images = torch.zeros(1, sizes["channels"], sizes["image_size"], sizes["image_size"])
    with torch.inference_mode():
        assert model(images).shape == (1, 1 if dataset == "mnist" else 10)


def test_tokens_are_those_of_the_paper():
    """49 patches for Fashion-MNIST, 16 for MNIST and 64 for CIFAR-10, and the class token."""
    for dataset, num_tokens in [("fashion-mnist", 49), ("mnist", 16), ("cifar-10", 64)]:
        name, sizes = preset(dataset, "vit-small")
        assert len(models.create(name, **sizes).positions) == num_tokens + 1


def test_a_preset_is_a_copy():
    preset("mnist", "mlp")[1]["classes"] = 2
    assert preset("mnist", "mlp")[1]["classes"] == 1


def test_unknown_names():
    with pytest.raises(UsageError, match=r"unknown dataset 'cifar10'; did you mean cifar-10\?"):
        preset("cifar10", "vit-small")
    with pytest.raises(UsageError, match="unknown svhn network 'cnn'; known: resnet-18, vit-small"):
        preset("svhn", "cnn")
