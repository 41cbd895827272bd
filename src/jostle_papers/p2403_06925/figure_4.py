"""Figure 4, with Figure 16: CIFAR-10, two vision transformers against three convolutional networks."""

from dataclasses import replace

from jostle.studies.catalogue import register
from jostle.studies.evidence import over_seeds
from jostle.studies.verdict import Expectation, beyond, is_less, within
from jostle_papers.p2403_06925 import cifar
from jostle_papers.trained import TrainedRecords, TrainingStudy, at_accuracy, at_end, at_matched_accuracy, in_common

_PAPER = {"densenet-121": 0.3673, "resnet-18": 0.0827, "convmixer": 0.0829, "vit-small": 0.0050, "vit-simple": 0.0014}


@register
class Figure4(TrainingStudy):
    """Sensitivity at variance 1 of networks trained on CIFAR-10, followed over training."""

    name = "2403.06925/figure-4"
    title = "CIFAR-10: vision transformers against convolutional networks"
    claim = "On CIFAR-10, vision transformers are less sensitive than convolutional networks of the same accuracy."
    source = "Section 5, Figures 4 and 16"
    version = 1
    scales = {
        "smoke": replace(cifar.SMOKE, networks=cifar.tiny_networks()),
        "small": replace(cifar.SMALL, networks=cifar.small_networks()),
        "paper": replace(cifar.PAPER, networks=cifar.paper_networks()),
    }
    deviations = (
        cifar.MATCHED,
        cifar.SMALL_SCALE,
        "The noise is added to one aligned patch of 4 x 4 pixels, as the paper says; its code changes 16 scattered "
        "pixels. Sampling stops at a precision instead of 5 draws for each patch of each image.",
    )

    def expectations(self, records: TrainedRecords) -> list[Expectation]:
        values = {name: at_end(records, name) for name in records.settings.networks}
        claimed = [
            is_less(f"sensitivity of {transformer} - sensitivity of {other}", values[transformer], values[other])
            for transformer in cifar.TRANSFORMERS
            for other in cifar.CONVOLUTIONAL
        ]
        earlier = {name: at_accuracy(records, name, 0.95) for name in values}
        before = [
            is_less(
                f"sensitivity of {transformer} - sensitivity of {other}, where both first had 95 % of the images right",
                *in_common(earlier[transformer], earlier[other]),
            )
            for transformer in cifar.TRANSFORMERS
            for other in cifar.CONVOLUTIONAL
        ]
        falls = [
            is_less(
                f"sensitivity of {name} at the end - where it first had 95 % of the images right",
                *in_common(values[name], earlier[name]),
            )
            for name in values
        ]
        near = [
            within(f"sensitivity of {name} is near the paper's", over_seeds(value), _PAPER[name], 0.01)
            for name, value in values.items()
            if records.scale == "paper"
        ]
        return [*at_matched_accuracy(records, claimed), *map(beyond, [*before, *falls, *near])]
