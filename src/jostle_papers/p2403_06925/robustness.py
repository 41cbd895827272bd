"""What the studies of robustness share: the paper's corruptions, and networks and settings at three scales."""

from dataclasses import replace

from jostle_papers.p2403_06925 import cifar
from jostle_papers.trained import OFFICIAL, CorruptedImages, Networks

NOISE = ("impulse_noise", "shot_noise")
BLUR = ("gaussian_blur", "glass_blur", "motion_blur", "zoom_blur")
WEATHER = ("snow", "frost", "fog", "brightness")
DIGITAL = ("contrast", "elastic_transform", "pixelate", "jpeg_compression")
CORRUPTIONS = NOISE + BLUR + WEATHER + DIGITAL  # fourteen, as in the paper and its code

SELF_MADE = (
    "At smoke and small scale the corrupted images are self-made after the definitions of Hendrycks and Dietterich "
    "(2019); they are not the published files of CIFAR-10-C, which paper scale reads."
)
SMALL_SCALE = cifar.SMALL_SCALE.replace("3,000 training images", "1,500 training images")

# Settings at the three scales, without networks. Small scale has fewer images than elsewhere: there are more networks,
# and slower ones. Paper scale reads the published files.
SMOKE = replace(cifar.SMOKE, corrupted=CorruptedImages(names=("shot_noise", "gaussian_blur", "fog"), images=10))
SMALL = replace(cifar.SMALL, limit=1_500, corrupted=CorruptedImages(names=CORRUPTIONS, images=120))
PAPER = replace(cifar.PAPER, corrupted=CorruptedImages(names=CORRUPTIONS, images=2_000, source=OFFICIAL))


def smoke_networks() -> Networks:
    """A CNN and a transformer of smoke scale, and the transformer trained for low sensitivity."""
    return _with_lower(cifar.tiny_networks("resnet-18", "vit-small"))


def small_networks() -> Networks:
    """CNNs and transformers of small scale, and one of the transformers trained for low sensitivity."""
    return _with_lower(cifar.small_networks("resnet-18", "convmixer", "vit-small", "vit-simple"))


def paper_networks() -> Networks:
    """The paper's own networks."""
    return _with_lower(cifar.paper_networks())


def _with_lower(networks: Networks) -> Networks:
    return networks | cifar.lower_sensitivity(networks["vit-small"])
