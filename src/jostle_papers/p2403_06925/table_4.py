"""Table 4, its image half: noise over the whole image against noise in one patch."""

from dataclasses import replace

from jostle.studies.catalogue import register
from jostle.studies.evidence import over_seeds
from jostle.studies.study import Drawing
from jostle.studies.verdict import Expectation, beyond, is_less, within
from jostle_papers.p2403_06925 import cifar
from jostle_papers.trained import (
    Noise,
    TrainedRecords,
    TrainingStudy,
    at_matched_accuracy,
    by_measurement,
    final_value,
)

_KINDS = ("vit-small", "resnet-18")
_WHOLE_STD = 0.025**0.5
_PAPER = {"vit-small": 0.0082, "resnet-18": 0.0172}
TOKEN, WHOLE, MATCHED, CONCENTRATED = (
    "one patch, variance 1",
    "whole image, variance 0.025",
    "whole image, energy of one patch",
    "one patch, energy of the whole image",
)


def _finals(tokens: int) -> dict[str, Noise]:
    """The four measurements. For the same energy, the variance of noise is proportional to 1 / number of its pixels."""
    return {
        TOKEN: Noise(1.0),
        WHOLE: Noise(_WHOLE_STD, "whole"),
        MATCHED: Noise(tokens**-0.5, "whole"),
        CONCENTRATED: Noise(_WHOLE_STD * tokens**0.5),
    }


@register
class Table4(TrainingStudy):
    """Whole-image noise against token-wise noise for a vision transformer and a ResNet, on CIFAR-10."""

    name = "2403.06925/table-4"
    title = "CIFAR-10: noise over the whole image against noise in one patch"
    claim = "Under noise over the whole image, too, the vision transformer is less sensitive than the CNN."
    source = "Appendix A.3 and Table 4, the image half"
    version = 1
    scales = {
        "smoke": replace(
            cifar.SMOKE, networks=cifar.tiny_networks(*_KINDS), over_training=False, patch=4, final=_finals(49)
        ),
        "small": replace(cifar.SMALL, networks=cifar.small_networks(*_KINDS), over_training=False, final=_finals(64)),
        "paper": replace(cifar.PAPER, networks=cifar.paper_networks(*_KINDS), over_training=False, final=_finals(64)),
    }
    deviations = (
        cifar.MATCHED,
        cifar.SMALL_SCALE,
        "The paper compares variances of 1 in a patch and 0.025 everywhere, which differ in energy; both are measured "
        "here at matched energy as well. The language half of the table is `table-4-language`.",
    )

    def figures(self, records: TrainedRecords) -> list[Drawing]:
        return [by_measurement(records, list(records.settings.final))]

    def expectations(self, records: TrainedRecords) -> list[Expectation]:
        vit, cnn = _KINDS
        differences = {
            name: is_less(
                f"sensitivity of {vit} - sensitivity of {cnn}, {name}",
                final_value(records, vit, name),
                final_value(records, cnn, name),
            )
            for name in records.settings.final
        }
        claimed = differences.pop(WHOLE)
        spread = [
            is_less(
                f"sensitivity of {name} to noise over the whole image - to noise of the same energy in one patch",
                final_value(records, name, MATCHED),
                final_value(records, name, TOKEN),
            )
            for name in _KINDS
        ]
        near = [
            within(
                f"sensitivity of {name} is near the paper's, {WHOLE}",
                over_seeds(final_value(records, name, WHOLE)),
                _PAPER[name],
                0.005,
            )
            for name in _KINDS
        ]
        return [*at_matched_accuracy(records, [claimed]), *map(beyond, [*differences.values(), *spread, *near])]
