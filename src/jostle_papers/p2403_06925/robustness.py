"""What the studies of robustness share: the paper's corruptions, and networks and settings at three scales."""

from collections.abc import Mapping
from dataclasses import replace
from statistics import fmean

from jostle.studies.evidence import paired
from jostle.studies.verdict import ALIKE_ACCURACY, Expectation, is_above
from jostle_papers.p2403_06925 import cifar
from jostle_papers.trained import OFFICIAL, BySeed, CorruptedImages, Networks, TrainedRecords

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
    return with_lower(cifar.tiny_networks("resnet-18", "vit-small"))


def small_plain_networks() -> Networks:
    """CNNs and transformers of small scale."""
    return cifar.small_networks("resnet-18", "convmixer", "vit-small", "vit-simple")


def small_networks() -> Networks:
    """CNNs and transformers of small scale, and one of the transformers trained for low sensitivity."""
    return with_lower(small_plain_networks())


def paper_networks() -> Networks:
    """The paper's own networks."""
    return with_lower(cifar.paper_networks())


def with_lower(networks: Networks) -> Networks:
    """Networks, and the transformer among them trained for low sensitivity."""
    return networks | cifar.lower_sensitivity(networks["vit-small"])


def corruptions(records: TrainedRecords) -> CorruptedImages:
    """The corrupted images of a study that has some."""
    assert records.settings.corrupted is not None
    return records.settings.corrupted


def transformers_ahead(statement: str, networks: Networks, found: Mapping[str, BySeed]) -> Expectation:
    """That the mean over transformers is larger than the mean over CNNs, seed by seed.

    Arguments:
        statement: what is compared.
        networks: of the study.
        found: a number of each network, by seed; seeds that a network lacks are left out.
    """
    shared = sorted(set.intersection(*map(set, found.values())))
    transformers, others = (
        {seed: fmean(found[name][seed] for name in cifar.of_kinds(networks, kinds)) for seed in shared}
        for kinds in (cifar.TRANSFORMERS, cifar.CONVOLUTIONAL)
    )
    return is_above(
        f"{statement}: mean of transformers - mean of CNNs", paired(transformers, others), 0.0, alike=ALIKE_ACCURACY
    )
