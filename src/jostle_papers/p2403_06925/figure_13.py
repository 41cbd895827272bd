"""Figure 13: MNIST as a binary task, a vision transformer against an MLP."""

from jostle.models.presets import preset
from jostle.studies.catalogue import register
from jostle.studies.study import Drawing
from jostle.studies.verdict import Expectation, beyond, is_less
from jostle_papers.trained import (
    Network,
    Networks,
    TrainedRecords,
    TrainingSettings,
    TrainingStudy,
    against_variance,
    at_matched_accuracy,
    at_variances,
    final_value,
)

_LOW_OR_HIGH = (0, 0, 0, 0, 0, 1, 1, 1, 1, 1)
_FINAL = at_variances(0.25, 1.0, 5.0, 15.0, 50.0)


def _networks(lr: float, **smaller: int) -> Networks:
    """Both networks; ``smaller`` replaces sizes of the transformer."""
    (vit, vit_sizes), (mlp, mlp_sizes) = (preset("mnist", name) for name in ("vit-small", "mlp"))
    return {"vit-small": Network.of(vit, lr, **{**vit_sizes, **smaller}), "mlp": Network.of(mlp, lr, **mlp_sizes)}


@register
class Figure13(TrainingStudy):
    """Sensitivity of a vision transformer and an MLP that tell digits below 5 from the others."""

    name = "2403.06925/figure-13"
    title = "MNIST, digits below 5 or not: a vision transformer against an MLP"
    claim = "On binary MNIST the vision transformer is less sensitive than an MLP of the same training accuracy."
    source = "Appendix A.1 and Figure 13"
    version = 1
    scales = {
        "smoke": TrainingSettings(
            seeds=1, networks=_networks(0.1, dim=16, mlp_dim=16), relabel=_LOW_OR_HIGH, limit=200, test_limit=100,
            batch_size=20, patch=7, passes=500, final=_FINAL,
        ),
        "small": TrainingSettings(
            networks=_networks(0.05), dataset="mnist", relabel=_LOW_OR_HIGH, limit=3_000, test_limit=5_000,
            batch_size=50, max_epochs=100, target_accuracy=0.995, patch=7, passes=4_000, final=_FINAL,
        ),
        "paper": TrainingSettings(
            seeds=5, networks=_networks(0.01), dataset="mnist", relabel=_LOW_OR_HIGH, batch_size=50, max_epochs=200,
            target_accuracy=0.999, patch=7, passes=40_000, final=_FINAL,
        ),
    }  # fmt: skip
    deviations = (
        "Training ends at 99.5 % training accuracy (paper scale: 99.9 %), where the networks are compared.",
        "Small scale: 3,000 digits, and a learning rate of 0.05 instead of 0.01, which would need five times as long.",
        "The paper replaces a patch by a random one and does not say from which distribution; here Gaussian noise is "
        "added, of variance 1 over training and of five variances at the end.",
    )

    def figures(self, records: TrainedRecords) -> list[Drawing]:
        return [*super().figures(records), against_variance(records)]

    def expectations(self, records: TrainedRecords) -> list[Expectation]:
        differences = {}
        for name in records.settings.final:
            sides = [final_value(records, network, name) for network in ("vit-small", "mlp")]
            differences[name] = is_less(f"sensitivity of vit-small - sensitivity of mlp, {name}", *sides)
        claimed = differences.pop("variance 1")
        return [*at_matched_accuracy(records, [claimed]), *map(beyond, differences.values())]
