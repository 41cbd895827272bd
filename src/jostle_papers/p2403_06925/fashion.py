"""What the studies on Fashion-MNIST share: the paper's four networks, and tiny ones to check that everything runs."""

from dataclasses import replace

from jostle.models.presets import preset
from jostle_papers.trained import Network, Networks, Sizes

RATES = {"vit-small": 0.1, "mlp-leaky-relu": 0.1, "mlp-sigmoid": 0.5, "cnn": 0.005}
SMALL_SCALE = (
    "Small scale: the CNN learns at rate 0.05 instead of 0.005, with which it would not reach that accuracy; the "
    "transformer's heads have 16 numbers instead of 64, and it has no dropout, which makes it faster."
)

_IMAGE: Sizes = {"image_size": 28, "channels": 1, "classes": 10}
_TINY = {
    "vit-small": Network.of("vit-small", 0.1, **_IMAGE, patch_size=7, depth=1, heads=1, mlp_dim=16, dim=16),
    "mlp-leaky-relu": Network.of("mlp", 0.1, **_IMAGE, hidden=(16,)),
    "cnn": Network.of("cnn", 0.1, **_IMAGE, width=2, hidden=8),
}


def paper_networks(*names: str) -> Networks:
    """Networks at the paper's sizes and learning rates."""
    presets = {name: preset("fashion-mnist", name) for name in names or RATES}
    return {name: Network.of(model, RATES[name], **sizes) for name, (model, sizes) in presets.items()}


def small_networks(*names: str) -> Networks:
    """The same networks, changed so that two cores can train them."""
    return {name: _for_two_cores(name, network) for name, network in paper_networks(*names).items()}


def _for_two_cores(name: str, network: Network) -> Network:
    if name == "vit-small":
        return network.with_sizes(dim_head=16, dropout=0.0, embedding_dropout=0.0)
    if name == "cnn":
        return replace(network, lr=0.05)
    return replace(network, max_epochs=400) if name == "mlp-sigmoid" else network


def tiny_networks(*names: str) -> Networks:
    """Networks that train in seconds, to check that everything runs."""
    return {name: _TINY[name] for name in names}
