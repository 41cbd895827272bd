"""Figure 19: SVHN, a vision transformer against ResNet-18."""

from dataclasses import replace

from jostle.models.presets import preset
from jostle.studies.catalogue import register
from jostle.studies.evidence import over_seeds
from jostle.studies.verdict import Expectation, beyond, within
from jostle_papers.p2403_06925 import cifar
from jostle_papers.trained import Network, Networks, TrainedRecords, TrainingStudy, at_end, learnt, less_sensitive

_KINDS = ("vit-small", "resnet-18")
_RATES = {"vit-small": 0.1, "resnet-18": 0.0015}
_PAPER = {"vit-small": 0.0147, "resnet-18": 0.0516}


def _paper_networks() -> Networks:
    presets = {name: preset("svhn", name) for name in _KINDS}
    return {name: Network.of(model, _RATES[name], **sizes) for name, (model, sizes) in presets.items()}


@register
class Figure19(TrainingStudy):
    """Sensitivity at variance 1 of networks trained on SVHN, followed over training."""

    name = "2403.06925/figure-19"
    title = "SVHN: a vision transformer against ResNet-18"
    claim = (
        "On SVHN, at noise of variance 1, the vision transformer is less sensitive than ResNet-18 of the same training "
        f"accuracy ({cifar.AT_SMALL_SCALE})."
    )
    source = "Appendix A.3 and Figure 19"
    version = 1
    scales = {
        "smoke": replace(cifar.SMOKE, networks=cifar.tiny_networks(*_KINDS)),
        "small": replace(cifar.SMALL, networks=cifar.small_networks(*_KINDS), dataset="svhn", data_by_seed=True),
        "paper": replace(cifar.PAPER, networks=_paper_networks(), dataset="svhn"),
    }
    deviations = (
        cifar.MATCHED,
        cifar.SMALL_SCALE,
        "The files of SVHN are not part of jostle: `jostle data get svhn` fetches train_32x32.mat and test_32x32.mat. "
        "Without them only smoke scale runs, on embedded digits.",
        "Every seed draws its own training images at small scale.",
        "The paper speaks of 60,000 training images; the official training set has 73,257, which are used.",
    )

    def expectations(self, records: TrainedRecords) -> list[Expectation]:
        kept, counted = learnt(records, cifar.ACCURACY)
        vit, cnn = (cifar.of_kinds(records.settings.networks, [kind])[0] for kind in _KINDS)
        near = [
            within(f"sensitivity of {name} is near the paper's", over_seeds(at_end(records, name)), target, 0.01)
            for name, target in _PAPER.items()
            if records.scale == "paper"
        ]
        return [less_sensitive(kept, vit, cnn), *counted, *map(beyond, near)]
