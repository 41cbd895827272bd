"""Figure 13: MNIST as a binary task, a vision transformer against an MLP, by replacing one patch."""

from dataclasses import replace

from jostle.models.presets import preset
from jostle.studies.catalogue import register
from jostle.studies.study import Drawing
from jostle.studies.verdict import Expectation, beyond, is_smaller, is_within_factor
from jostle_papers.trained import (
    Network,
    Networks,
    Noise,
    TrainedRecords,
    TrainingSettings,
    TrainingStudy,
    at_variances,
    by_measurement,
    in_common,
    learnt,
    sensitivity_at_accuracy,
    sensitivity_at_end,
)
from jostle_papers.trained.settings import FROM_DATA, NORMAL, UNIFORM

_LOW_OR_HIGH = (0, 0, 0, 0, 0, 1, 1, 1, 1, 1)
_REPLACED = {f"replaced by {name}": Noise(1.0, replaced_by=name) for name in (FROM_DATA, NORMAL, UNIFORM)}
_ADDED = {f"noise of {name} added": noise for name, noise in at_variances(1.0, 5.0, 15.0, 50.0).items()}
_EARLIER = 0.97  # a training accuracy on the way
_VIT, _MLP = "vit-small", "mlp"


def _networks(lr: float, **smaller: int) -> Networks:
    """Both networks; ``smaller`` replaces sizes of the transformer."""
    (vit, vit_sizes), (mlp, mlp_sizes) = (preset("mnist", name) for name in (_VIT, _MLP))
    return {_VIT: Network.of(vit, lr, **{**vit_sizes, **smaller}), _MLP: Network.of(mlp, lr, **mlp_sizes)}


_COMMON = TrainingSettings(
    relabel=_LOW_OR_HIGH,
    batch_size=50,
    patch=7,
    replaced_by=FROM_DATA,
    data_by_seed=True,
    final=_REPLACED | _ADDED,
)


@register
class Figure13(TrainingStudy):
    """Sensitivity of a vision transformer and an MLP that tell digits below 5 from the others."""

    name = "2403.06925/figure-13"
    title = "MNIST, digits below 5 or not: a vision transformer against an MLP"
    claim = (
        "On binary MNIST, where a patch is replaced by a patch of the data, the vision transformer is less sensitive "
        "than an MLP of the same training accuracy (at our setting: small scale has 3,000 digits and 99.5 % of them "
        "right, paper scale all 60,000 and 97 %)."
    )
    source = "Appendix A.1 and Figure 13"
    version = 2
    scales = {
        "smoke": replace(
            _COMMON, seeds=1, networks=_networks(0.1, dim=16, mlp_dim=16), limit=200, test_limit=100, batch_size=20,
            passes=500,
        ),
        "small": replace(
            _COMMON, seeds=10, networks=_networks(0.05), dataset="mnist", limit=3_000, test_limit=5_000,
            max_epochs=150, target_accuracy=0.995, passes=4_000,
        ),
        "paper": replace(
            _COMMON, seeds=5, networks=_networks(0.01), dataset="mnist", max_epochs=60, target_accuracy=_EARLIER,
            passes=8_000,
        ),
    }  # fmt: skip
    deviations = (
        "The paper replaces a patch by a random one and does not say from which distribution. The claim is judged with "
        "patches of the training images, drawn from all places of all of them; standard normal and uniform pixels, and "
        "noise that is added, are measured beside it.",
        "Training ends at 99.5 % training accuracy (paper scale: 97 %, or after 60 epochs), where the networks are "
        "compared; the paper does not give its epochs. Paper scale first had 99.9 % as its aim, lowered before a "
        "number of an MLP was seen: a transformer had 97 % right after 23 epochs, and less than 98 % after 55.",
        "Small scale: 3,000 digits, drawn anew for every seed, and a learning rate of 0.05 instead of 0.01, which "
        "would need five times as long.",
        "Version 1 added noise of variance 1 and judged that. It was replaced after its records had been seen, by what "
        "the paper does; all records are new.",
    )

    def figures(self, records: TrainedRecords) -> list[Drawing]:
        return [*super().figures(records), by_measurement(records, list(records.settings.final))]

    def expectations(self, records: TrainedRecords) -> list[Expectation]:
        kept, counted = learnt(records, records.settings.target_accuracy or 0.99)
        vit, mlp = (sensitivity_at_end(kept, name) for name in (_VIT, _MLP))
        claimed = is_smaller(f"sensitivity of {_VIT} / of {_MLP}, a patch of the data in place of another", vit, mlp)
        others = [
            is_smaller(
                f"sensitivity of {_VIT} / of {_MLP}, {final}",
                sensitivity_at_end(kept, _VIT, final),
                sensitivity_at_end(kept, _MLP, final),
            )
            for final in list(records.settings.final)[1:]  # the first is that of the claim
        ]
        if (records.settings.target_accuracy or 1.0) > _EARLIER:
            at = f"where each first had {_EARLIER:.0%} of its digits right"
            values = in_common(*(sensitivity_at_accuracy(records, name, _EARLIER) for name in (_VIT, _MLP)))
            others.insert(0, is_smaller(f"sensitivity of {_VIT} / of {_MLP}, {at}", *values))
        same = is_within_factor(f"sensitivity of {_VIT} and of {_MLP} are about the same", vit, mlp, 1.25)
        return [claimed, *map(beyond, [same, *others, *counted])]
