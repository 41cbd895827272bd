"""``sample:NAME``: a small trained network that comes with jostle, for a first look without any download.

They were trained by ``tools/train_samples.py`` on ``drawn-digits``, to 99.5 % of the training digits.
"""

import importlib.resources
from typing import Any

from torch import nn

from jostle import models
from jostle.base import checks
from jostle.base.weights import fill_weights, read_weights
from jostle.integrations import register

FOLDER = importlib.resources.files("jostle") / "samples"
_IMAGE: dict[str, Any] = {"image_size": 28, "channels": 1, "classes": 10}
SAMPLES: dict[str, tuple[str, dict[str, Any]]] = {
    "vit": (
        "vit-simple",
        {**_IMAGE, "patch_size": 4, "dim": 32, "depth": 2, "heads": 4, "dim_head": 16, "mlp_dim": 64},
    ),
    "mlp": ("mlp", {**_IMAGE, "hidden": (64, 32)}),
    "cnn": ("cnn", {**_IMAGE, "width": 8, "hidden": 32}),
}


@register("sample")
def from_samples(rest: str, seed: int) -> nn.Module:  # noqa: ARG001 - its weights are those of the file
    """One of the networks of ``SAMPLES`` with its weights, in eval mode."""
    checks.choice("sample", rest, tuple(SAMPLES))
    name, sizes = SAMPLES[rest]
    network: nn.Module = models.create(name, seed=0, **sizes)
    with importlib.resources.as_file(FOLDER / f"{rest}.safetensors") as path:
        tensors, _ = read_weights(path)
        fill_weights(network, tensors, path)
    return network.eval()
