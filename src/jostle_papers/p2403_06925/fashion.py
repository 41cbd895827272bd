"""What the studies on Fashion-MNIST share: the paper's four networks, and smaller ones to see that all runs."""

from typing import Any

from jostle.models.presets import preset
from jostle_papers.trained import network

RATES = {"vit-small": 0.1, "mlp-leaky-relu": 0.1, "mlp-sigmoid": 0.5, "cnn": 0.005}
SMALL_SCALE = (
    "Small scale: the CNN learns at rate 0.05 instead of 0.005, with which it would not reach that accuracy; the "
    "transformer's heads have 16 numbers instead of 64, and it has no dropout, which makes it faster."
)

_IMAGE: dict[str, Any] = {"image_size": 28, "channels": 1, "classes": 10}
_TINY: dict[str, dict[str, Any]] = {
    "vit-small": network("vit-small", 0.1, **_IMAGE, patch_size=7, depth=1, heads=1, mlp_dim=16, dim=16),
    "mlp-leaky-relu": network("mlp", 0.1, **_IMAGE, hidden=[16]),
    "cnn": network("cnn", 0.1, **_IMAGE, width=2, hidden=8),
}


def paper_networks(*names: str) -> dict[str, dict[str, Any]]:
    """Networks at the paper's sizes and learning rates."""
    presets = {name: preset("fashion-mnist", name) for name in names or RATES}
    return {name: network(model, RATES[name], **sizes) for name, (model, sizes) in presets.items()}


def small_networks(*names: str) -> dict[str, dict[str, Any]]:
    """The same with what it takes to train them on two cores."""
    made = paper_networks(*names)
    if "vit-small" in made:
        made["vit-small"]["sizes"] |= {"dim_head": 16, "dropout": 0.0, "embedding_dropout": 0.0}
    if "cnn" in made:
        made["cnn"]["lr"] = 0.05
    if "mlp-sigmoid" in made:
        made["mlp-sigmoid"]["max_epochs"] = 400
    return made


def tiny_networks(*names: str) -> dict[str, dict[str, Any]]:
    """Networks that train in seconds, to see that all runs."""
    return {name: _TINY[name] for name in names}
