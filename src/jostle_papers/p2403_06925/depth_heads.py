"""Depth and number of heads of a vision transformer: do they matter for sensitivity?"""

from dataclasses import replace

from jostle.studies.catalogue import register
from jostle.studies.evidence import paired
from jostle.studies.verdict import Expectation, within
from jostle_papers.p2403_06925 import cifar
from jostle_papers.trained import Networks, TrainedRecords, TrainingStudy, at_end, at_matched_accuracy

_MATTERS = 0.01  # a small part of the 0.06 that separate transformers from ConvMixer and DenseNet at small scale


def _vary(
    networks: Networks, usual: tuple[int, int], depths: tuple[int, ...], heads: tuple[int, ...], dim_head: int = 64
) -> Networks:
    """The usual transformer first, then other depths, then other numbers of heads of the same total width.

    Arguments:
        networks: the usual transformer and nothing else.
        usual: its depth and its number of heads.
        depths, heads: the others.
        dim_head: numbers of each head of the usual transformer.
    """
    [vit] = networks.values()
    shapes = [usual, *((depth, usual[1]) for depth in depths), *((usual[0], count) for count in heads)]
    width = usual[1] * dim_head
    return {
        f"depth {depth}, heads {count}": vit.with_sizes(depth=depth, heads=count, dim_head=width // count)
        for depth, count in shapes
    }


@register
class DepthHeads(TrainingStudy):
    """Sensitivity of vision transformers of several depths and numbers of heads, on CIFAR-10."""

    name = "2403.06925/depth-heads"
    title = "CIFAR-10: depth and heads of the vision transformer"
    claim = "Neither the depth nor the number of heads of a vision transformer changes its sensitivity."
    source = "Appendix A.3"
    version = 1
    scales = {
        "smoke": replace(cifar.SMOKE, networks=_vary(cifar.tiny_networks("vit-small"), (1, 1), (2,), (2,))),
        "small": replace(
            cifar.SMALL,
            networks=_vary(cifar.small_networks("vit-small"), (2, 4), (1, 4), (1, 8), dim_head=16),
            limit=1_000,
        ),
        "paper": replace(cifar.PAPER, networks=_vary(cifar.paper_networks("vit-small"), (8, 32), (4, 6, 10), (8, 16))),
    }
    deviations = (
        cifar.MATCHED,
        cifar.SMALL_SCALE,
        "Small scale: 1,000 images, and a transformer of 2 layers is the usual one.",
        "The paper shows curves and gives no numbers; here 'no change' means a difference of less than 0.01 from the "
        "usual transformer. Heads share one total width, so that their number alone changes.",
    )

    def expectations(self, records: TrainedRecords) -> list[Expectation]:
        usual, *others = records.settings.networks
        standard = at_end(records, usual)
        same = [
            within(f"sensitivity at {name} - at {usual}", paired(at_end(records, name), standard), 0.0, _MATTERS)
            for name in others
        ]
        return at_matched_accuracy(records, same)
