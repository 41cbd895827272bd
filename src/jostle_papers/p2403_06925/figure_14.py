"""Figure 14: CIFAR-10, networks trained by Adam instead of SGD."""

from dataclasses import replace

from jostle.studies.catalogue import register
from jostle.studies.verdict import Expectation, beyond, is_smaller, is_within_factor
from jostle_papers.p2403_06925 import cifar
from jostle_papers.trained import (
    Networks,
    TrainedRecords,
    TrainingStudy,
    learnt,
    less_sensitive,
    sensitivity_at_end,
)

_KINDS = ("vit-small", "resnet-18")
_SGD, _ADAM = ", SGD", ", Adam"  # how a network was trained, after its name


def _with_adam(networks: Networks) -> Networks:
    """Every network twice: as it is, by SGD, and by Adam."""
    twice: Networks = {}
    for name, by_sgd in networks.items():
        by_adam = replace(by_sgd, optimizer="adam", lr=0.002, schedule="step:every=8,factor=0.5")
        twice |= {f"{name}{_SGD}": by_sgd, f"{name}{_ADAM}": by_adam}
    return twice


@register
class Figure14(TrainingStudy):
    """Sensitivity of networks trained on CIFAR-10 by Adam and by SGD."""

    name = "2403.06925/figure-14"
    title = "CIFAR-10: Adam against SGD"
    claim = (
        "On CIFAR-10, networks trained by Adam and by SGD are about equally sensitive, within a factor of 2 "
        f"({cifar.AT_SMALL_SCALE})."
    )
    source = "Appendix A.3 and Figure 14"
    version = 1
    scales = {
        "smoke": replace(cifar.SMOKE, networks=_with_adam(cifar.tiny_networks(*_KINDS))),
        "small": replace(cifar.SMALL, networks=_with_adam(cifar.small_networks(*_KINDS))),
        "paper": replace(cifar.PAPER, networks=_with_adam(cifar.paper_networks(*_KINDS))),
    }
    deviations = (
        cifar.MATCHED,
        cifar.SMALL_SCALE,
        cifar.ONE_SUBSET,
        "The paper calls sensitivity under Adam slightly higher and similar, and gives no number; here that is read as "
        "within a factor of 2. At first the order of transformer and CNN under Adam was judged; this was changed after "
        "the records had been seen, since the paper does not claim it here.",
        "Seeds beyond the first three are only for the ResNet, whose seeds differ most.",
    )
    claimed_networks = tuple(_with_adam(cifar.small_networks(_KINDS[1])))

    def expectations(self, records: TrainedRecords) -> list[Expectation]:
        kept, counted = learnt(records, cifar.ACCURACY)
        plain = {name.removesuffix(_SGD): name for name in records.settings.networks if name.endswith(_SGD)}
        values = {name: sensitivity_at_end(kept, name) for name in records.settings.networks}
        same = [
            is_within_factor(f"sensitivity of {kind} by SGD / by Adam", values[by_sgd], values[f"{kind}{_ADAM}"], 2.0)
            for kind, by_sgd in plain.items()
        ]
        higher = [
            is_smaller(f"sensitivity of {kind} by SGD / by Adam", values[by_sgd], values[f"{kind}{_ADAM}"])
            for kind, by_sgd in plain.items()
        ]
        vit, cnn = plain
        orders = [less_sensitive(kept, f"{vit}{how}", f"{cnn}{how}") for how in (_SGD, _ADAM)]
        return [*same, *counted, *map(beyond, [*higher, *orders])]
