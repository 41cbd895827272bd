"""What the studies on CIFAR-10 share: the paper's five networks and smaller ones of the same kinds."""

from collections.abc import Sequence
from dataclasses import replace

from jostle.models.presets import preset
from jostle_papers.trained import Network, Networks, Sizes, TrainingSettings

RATES = {"densenet-121": 0.005, "resnet-18": 0.001, "convmixer": 0.06, "vit-small": 0.1, "vit-simple": 0.2}
TRANSFORMERS = ("vit-small", "vit-simple")
CONVOLUTIONAL = ("densenet-121", "resnet-18", "convmixer")
PENALISED, AUGMENTED = "vit-small + penalty", "vit-small + noise"

_ATTENTION: Sizes = {"depth": 4, "heads": 4, "dim_head": 16, "mlp_dim": 128}
_NO_DROPOUT: Sizes = {"dropout": 0.0, "embedding_dropout": 0.0}
_SMALLER: dict[str, Sizes] = {
    "densenet-121": {"growth": 8, "blocks": (4, 4, 4)},
    "resnet-18": {"width": 8},
    "convmixer": {"dim": 64, "depth": 4},
    "vit-small": _ATTENTION | _NO_DROPOUT,
    "vit-simple": _ATTENTION,
}
# Where the name of the paper's network promises a size, that of the smaller one says which it has.
_SMALLER_NAMES = {"densenet-121": "densenet, 3 blocks of 4", "resnet-18": "resnet-18, 8 channels"}
_SMALLER_RATES = {"densenet-121": 0.2, "resnet-18": 0.02, "convmixer": 0.06, "vit-small": 0.1, "vit-simple": 0.2}

MATCHED = (
    "Training ends with the first epoch after which every training image is classified right, where networks are "
    "compared; the paper does not give its epochs."
)
AT_SMALL_SCALE = "at our setting, small scale: 3,000 images, networks of 24,000 to 176,000 weights"
ACCURACY = 0.99  # on the training images, that networks must have to be compared
ONE_SUBSET = (
    "All seeds have the same training images, so that the spread over seeds is that of weights, order and noise and "
    "not of the data."
)
SMALL_SCALE = (
    "Small scale: 3,000 training images, batches of 50, and narrower networks of the same kinds (transformers of 4 "
    "layers with 4 heads of 16 numbers and no dropout, ResNet-18 with 8 channels instead of 64, a DenseNet of 3 blocks "
    "of 4 layers with growth 8, a ConvMixer of 4 layers with 64 channels). ResNet and DenseNet learn at rates 0.02 and "
    "0.2 instead of 0.001 and 0.005, which would take ten times as many steps."
)

# Settings at the three scales, without networks. The paper does not give its number of epochs.
SMOKE = TrainingSettings(seeds=1, limit=100, test_limit=50, batch_size=20, passes=100, milestones=())
SMALL = TrainingSettings(dataset="cifar-10", limit=3_000, test_limit=2_000, batch_size=50, max_epochs=100, passes=2_000)
PAPER = TrainingSettings(dataset="cifar-10", max_epochs=200, passes=40_000)


def paper_networks(*names: str) -> Networks:
    """Networks at the paper's sizes and learning rates, SGD."""
    presets = {name: preset("cifar-10", name) for name in names or RATES}
    return {name: Network.of(model, RATES[name], **sizes) for name, (model, sizes) in presets.items()}


def small_networks(*names: str) -> Networks:
    """Networks of the same kinds that two cores train in minutes, by names that say their size."""
    return {
        _SMALLER_NAMES.get(name, name): replace(network, lr=_SMALLER_RATES[name]).with_sizes(**_SMALLER[name])
        for name, network in paper_networks(*names).items()
    }


def tiny_networks(*names: str) -> Networks:
    """Networks for embedded digits that train in seconds, to check that everything runs."""
    image: Sizes = {"image_size": 28, "channels": 1, "classes": 10}
    attention: Sizes = {"patch_size": 7, "dim": 16, "depth": 1, "heads": 1, "mlp_dim": 16}
    sizes: dict[str, Sizes] = {
        "densenet-121": {"growth": 4, "blocks": (1, 1)},
        "resnet-18": {"width": 2},
        "convmixer": {"dim": 8, "depth": 1, "patch_size": 7},
        "vit-small": attention,
        "vit-simple": attention,
    }
    return {name: Network.of(name, 0.1, **image, **sizes[name]) for name in names or sizes}


def of_kinds(networks: Networks, kinds: Sequence[str]) -> list[str]:
    """The names of the networks of these kinds, in the order of the kinds, without those trained for low sensitivity.

    >>> of_kinds(small_networks("vit-small", "resnet-18"), CONVOLUTIONAL)
    ['resnet-18, 8 channels']
    """
    plain = {name: one.model for name, one in networks.items() if one.penalty is None and one.augment is None}
    return [name for kind in kinds for name, model in plain.items() if model == kind]


def lower_sensitivity(vit: Network) -> Networks:
    """A vision transformer trained for low sensitivity in the paper's two ways (Section 7.1), by name."""
    return {
        PENALISED: replace(vit.with_penalty(strength=0.25, std=1.0), lr=0.16),
        AUGMENTED: replace(vit.with_noise(std=0.1**0.5), lr=0.2),
    }
