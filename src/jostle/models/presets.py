"""The networks of paper 1 (2403.06925) for each of its image datasets: names and sizes for ``create``.

Here: architecture only. The data, learning rates and noise of an experiment belong to its study.
"""

from typing import Any

from jostle.base import checks

_CIFAR: dict[str, Any] = {"image_size": 32, "channels": 3, "classes": 10}
_FASHION: dict[str, Any] = {"image_size": 28, "channels": 1, "classes": 10}
_MNIST: dict[str, Any] = {"image_size": 28, "channels": 1, "classes": 1}  # The task is binary: digit < 5 or not.

PRESETS: dict[str, dict[str, tuple[str, dict[str, Any]]]] = {
    "cifar-10": {
        "vit-small": ("vit-small", {**_CIFAR, "depth": 8, "heads": 32, "mlp_dim": 256}),
        "vit-simple": ("vit-simple", {**_CIFAR, "depth": 6, "heads": 16, "mlp_dim": 512}),
        "convmixer": ("convmixer", {**_CIFAR, "dim": 128, "depth": 6, "kernel_size": 3}),
        "resnet-18": ("resnet-18", _CIFAR),
        "densenet-121": ("densenet-121", _CIFAR),
    },
    "svhn": {
        "vit-small": ("vit-small", {**_CIFAR, "depth": 8, "heads": 32, "mlp_dim": 512}),
        "resnet-18": ("resnet-18", _CIFAR),
    },
    "fashion-mnist": {
        "vit-small": ("vit-small", {**_FASHION, "depth": 2, "heads": 8, "mlp_dim": 256}),
        "mlp-leaky-relu": ("mlp", {**_FASHION, "hidden": (512, 128), "activation": "leaky-relu"}),
        "mlp-sigmoid": ("mlp", {**_FASHION, "hidden": (512, 128), "activation": "sigmoid"}),
        "cnn": ("cnn", {**_FASHION, "width": 32, "hidden": 128}),
    },
    "mnist": {
        "vit-small": ("vit-small", {**_MNIST, "patch_size": 7, "depth": 2, "heads": 1, "mlp_dim": 128}),
        "mlp": ("mlp", {**_MNIST, "hidden": (100,), "activation": "leaky-relu"}),
    },
}


def preset(dataset: str, network: str) -> tuple[str, dict[str, Any]]:
    """Name and sizes of a network of paper 1, ``name, sizes = preset(...)`` for ``create(name, **sizes)``.

    Differs: the paper gives no width of a token, so its code's 64 is used everywhere; for MNIST it does not say
    whether the binary task has one logit or two, and one, as in its definition sign(logit), is used here.

    Arguments:
        dataset: ``cifar-10``, ``svhn``, ``fashion-mnist`` or ``mnist`` (digits below 5 against the rest).
        network: one of the paper's networks for that dataset, a key of ``PRESETS[dataset]``.

    >>> preset("mnist", "mlp")
    ('mlp', {'image_size': 28, 'channels': 1, 'classes': 1, 'hidden': (100,), 'activation': 'leaky-relu'})
    >>> preset("mnist", "cnn")
    Traceback (most recent call last):
    jostle.base.errors.UsageError: unknown mnist network 'cnn'; known: mlp, vit-small
    """
    checks.choice("dataset", dataset, PRESETS)
    checks.choice(f"{dataset} network", network, PRESETS[dataset])
    name, sizes = PRESETS[dataset][network]
    return name, dict(sizes)
