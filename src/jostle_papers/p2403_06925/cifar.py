"""What the studies on CIFAR-10 share: the paper's five networks and smaller ones of the same kinds."""

from typing import Any

from jostle.models.presets import preset
from jostle_papers.trained import Training, augmented, network, penalised

RATES = {"densenet-121": 0.005, "resnet-18": 0.001, "convmixer": 0.06, "vit-small": 0.1, "vit-simple": 0.2}
TRANSFORMERS = ("vit-small", "vit-simple")
CONVOLUTIONAL = ("densenet-121", "resnet-18", "convmixer")
PENALISED, AUGMENTED = "vit-small + penalty", "vit-small + noise"

_ATTENTION: dict[str, Any] = {"depth": 4, "heads": 4, "dim_head": 16, "mlp_dim": 128}
_NO_DROPOUT = {"dropout": 0.0, "embedding_dropout": 0.0}
_SMALLER: dict[str, dict[str, Any]] = {
    "densenet-121": {"growth": 8, "blocks": [4, 4, 4]},
    "resnet-18": {"width": 8},
    "convmixer": {"dim": 64, "depth": 4},
    "vit-small": _ATTENTION | _NO_DROPOUT,
    "vit-simple": _ATTENTION,
}
_SMALLER_RATES = {"densenet-121": 0.2, "resnet-18": 0.02, "convmixer": 0.06, "vit-small": 0.1, "vit-simple": 0.2}

MATCHED = (
    "Training ends with the first epoch after which every training image is classified right, where networks are "
    "compared; the paper does not give its epochs."
)
SMALL_SCALE = (
    "Small scale: 3,000 training images, batches of 50, and narrower networks of the same kinds (transformers of 4 "
    "layers with 4 heads of 16 numbers and no dropout, ResNet-18 with 8 channels instead of 64, a DenseNet of 3 blocks "
    "of 4 layers with growth 8, a ConvMixer of 4 layers with 64 channels). ResNet and DenseNet learn at rates 0.02 and "
    "0.2 instead of 0.001 and 0.005, which would take ten times as many steps."
)


def paper_networks(*names: str) -> dict[str, dict[str, Any]]:
    """Networks at the paper's sizes and learning rates, SGD."""
    presets = {name: preset("cifar-10", name) for name in names or RATES}
    return {name: network(model, RATES[name], **sizes) for name, (model, sizes) in presets.items()}


def small_networks(*names: str) -> dict[str, dict[str, Any]]:
    """Networks of the same kinds that two cores train in minutes."""
    presets = {name: preset("cifar-10", name) for name in names or RATES}
    return {
        name: network(model, _SMALLER_RATES[name], **{**sizes, **_SMALLER[name]})
        for name, (model, sizes) in presets.items()
    }


def tiny_networks(*names: str) -> dict[str, dict[str, Any]]:
    """Networks for embedded digits that train in seconds, to see that all runs."""
    image: dict[str, Any] = {"image_size": 28, "channels": 1, "classes": 10}
    attention: dict[str, Any] = {"patch_size": 7, "dim": 16, "depth": 1, "heads": 1, "mlp_dim": 16}
    sizes: dict[str, dict[str, Any]] = {
        "densenet-121": {"growth": 4, "blocks": [1, 1]},
        "resnet-18": {"width": 2},
        "convmixer": {"dim": 8, "depth": 1, "patch_size": 7},
        "vit-small": attention,
        "vit-simple": attention,
    }
    return {name: network(name, 0.1, **image, **sizes[name]) for name in names or sizes}


def lowered(vit: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """A vision transformer trained for low sensitivity in the paper's two ways (Section 7.1), by name."""
    return {
        PENALISED: penalised(vit, strength=0.25, std=1.0, lr=0.16),
        AUGMENTED: augmented(vit, std=0.1**0.5, lr=0.2),
    }


def smoke(networks: dict[str, dict[str, Any]], **changes: Any) -> Training:
    """Settings of smoke scale."""
    fixed: dict[str, Any] = {
        "seeds": 1,
        "limit": 100,
        "test_limit": 50,
        "batch_size": 20,
        "passes": 100,
        "milestones": (),
    }
    return Training(networks=networks, **{**fixed, **changes})


def small(networks: dict[str, dict[str, Any]], **changes: Any) -> Training:
    """Settings of small scale."""
    fixed: dict[str, Any] = {
        "dataset": "cifar-10", "limit": 3_000, "test_limit": 2_000, "batch_size": 50, "max_epochs": 100,
        "passes": 2_000,
    }  # fmt: skip
    return Training(networks=networks, **{**fixed, **changes})


def paper(networks: dict[str, dict[str, Any]], **changes: Any) -> Training:
    """The paper's own settings; its number of epochs is not given."""
    fixed: dict[str, Any] = {"dataset": "cifar-10", "max_epochs": 200, "passes": 40_000}
    return Training(networks=networks, **{**fixed, **changes})
