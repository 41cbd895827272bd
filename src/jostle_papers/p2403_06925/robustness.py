"""What the studies of robustness share: the paper's corruptions, and settings of the networks that are asked."""

from typing import Any

from jostle_papers.p2403_06925 import cifar
from jostle_papers.trained import OFFICIAL, Training, corrupted

NOISE = ("impulse_noise", "shot_noise")
BLUR = ("gaussian_blur", "glass_blur", "motion_blur", "zoom_blur")
WEATHER = ("snow", "frost", "fog", "brightness")
DIGITAL = ("contrast", "elastic_transform", "pixelate", "jpeg_compression")
CORRUPTIONS = NOISE + BLUR + WEATHER + DIGITAL  # fourteen, as the paper says and its code reads

SELF_MADE = (
    "At smoke and small scale the corrupted images are self-made after the definitions of Hendrycks and Dietterich "
    "(2019); they are not the published files of CIFAR-10-C, which paper scale reads."
)
SMALL_SCALE = cifar.SMALL_SCALE.replace("3,000 training images", "1,500 training images")

_SMALL = ("resnet-18", "convmixer", "vit-small", "vit-simple")


def smoke(networks: dict[str, dict[str, Any]], **changes: Any) -> Training:
    """Settings of smoke scale."""
    return cifar.smoke(networks, corrupted=corrupted(["shot_noise", "gaussian_blur", "fog"], images=10), **changes)


def small(networks: dict[str, dict[str, Any]], **changes: Any) -> Training:
    """Settings of small scale, with fewer images than elsewhere: there are more networks, and slower ones."""
    return cifar.small(networks, limit=1_500, corrupted=corrupted(CORRUPTIONS, images=120), **changes)


def paper(networks: dict[str, dict[str, Any]], **changes: Any) -> Training:
    """The paper's own settings, with the published files."""
    return cifar.paper(networks, corrupted=corrupted(CORRUPTIONS, images=2_000, source=OFFICIAL), **changes)


def smoke_networks() -> dict[str, dict[str, Any]]:
    """A CNN and a transformer of smoke scale, and the latter trained for low sensitivity."""
    made = cifar.tiny_networks("resnet-18", "vit-small")
    return made | cifar.lowered(made["vit-small"])


def small_networks() -> dict[str, dict[str, Any]]:
    """CNNs and transformers of small scale, and one of the latter trained for low sensitivity."""
    made = cifar.small_networks(*_SMALL)
    return made | cifar.lowered(made["vit-small"])


def paper_networks() -> dict[str, dict[str, Any]]:
    """The paper's own networks."""
    made = cifar.paper_networks()
    return made | cifar.lowered(made["vit-small"])
