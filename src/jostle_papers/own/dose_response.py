"""Our own question: how much does a penalty on sensitivity lower it, and what else does it change?"""

import statistics
from collections.abc import Callable
from dataclasses import dataclass, replace

from jostle import figures
from jostle.corruptions import accuracy_under
from jostle.landscape import sharpness
from jostle.studies.catalogue import register
from jostle.studies.evidence import over_seeds, paired
from jostle.studies.records import Records
from jostle.studies.study import Context, Drawing
from jostle.studies.verdict import Expectation, beyond, is_above, is_below, is_smaller
from jostle_papers.own import penalties
from jostle_papers.p2403_06925 import fashion
from jostle_papers.trained import (
    BySeed,
    Network,
    NetworkCell,
    NetworkStudy,
    TrainedRecord,
    TrainingCell,
    TrainingSettings,
    in_common,
    learnt,
    mean_and_range,
    sensitivity_at_end,
    unseen_accuracy,
)

_CLAIMED = "strength 0.5"
_ACCURACY = 0.99  # on the training images, that networks must have to be compared
_SEVERITY, _WEIGHT_STD = 2, 0.05


@dataclass(frozen=True, kw_only=True)
class DoseRecord(TrainedRecord):
    """A trained network, and what else the penalty may change.

    Arguments:
        images: training images.
        corrupted_accuracy: on corrupted unseen images.
        by_family: the same by family of corruptions.
        sharpness, output_sharpness: ShPred and ShOp.
        passes: of training, in millions; a backward pass counts as two.
    """

    images: int
    corrupted_accuracy: float
    by_family: dict[str, float]
    sharpness: float
    output_sharpness: float
    passes: float


DoseRecords = Records[TrainingSettings, NetworkCell, DoseRecord]


@dataclass(frozen=True)
class _Quantity:
    """What is drawn against the strength of the penalty.

    Arguments:
        stem: of the figure's file.
        label: of the axis.
        read: the number of a record.
        falls: whether it is expected to fall or to rise with the strength; None for neither.
    """

    stem: str
    label: str
    read: Callable[[DoseRecord], float]
    falls: bool | None


_QUANTITIES = (
    _Quantity("sensitivity", "sensitivity", lambda record: record.sensitivity, True),
    _Quantity("test-accuracy", "accuracy on unseen images", lambda record: record.test_accuracy, False),
    _Quantity("corrupted-accuracy", "accuracy on corrupted images", lambda record: record.corrupted_accuracy, False),
    _Quantity(
        "sharpness", "share of predictions changed by noise on the weights", lambda record: record.sharpness, True
    ),
    _Quantity("passes", "passes of training, in millions", lambda record: record.passes, None),
)


@register
class DoseResponse(NetworkStudy[DoseRecord]):
    """Sensitivity, accuracy, robustness, flatness and cost against the strength of the penalty."""

    name = "jostle/dose-response"
    title = "Fashion-MNIST: a penalty on sensitivity, from none to strong"
    claim = (
        "A penalty of strength 0.5 (2403.06925, Section 7.1) halves a vision transformer's sensitivity, and costs less "
        "than one percentage point of accuracy."
    )
    source = "our own question, after Section 7.1 of 2403.06925"
    version = 1
    scales = {
        "smoke": replace(
            penalties.SMOKE, networks=penalties.doses(fashion.tiny_networks("vit-small")["vit-small"], (0.5,))
        ),
        "small": replace(penalties.SMALL, networks=penalties.doses(fashion.small_networks("vit-small")["vit-small"])),
        "paper": replace(penalties.PAPER, networks=penalties.doses(fashion.paper_networks("vit-small")["vit-small"])),
    }
    deviations = (
        "Training ends with the first epoch after which every training image is classified right. The loss is "
        "(1 - strength) times the usual one + strength times the penalty, at a learning rate of 0.1 / (1 - strength).",
        "Small scale: 2,000 training images, batches of 50, heads of 16 numbers instead of 64, no dropout.",
        f"Corruptions are self-made, the fifteen common ones at severity {_SEVERITY}, of at most 500 unseen images.",
        f"Sharpness is the share of changed predictions (ShPred) under noise of std {_WEIGHT_STD} on all weights, 20 "
        "draws, of at most 500 training images; std 0.005 changes none.",
        "Seeds beyond the first three, which confirm the verdict, train only the two networks that the claim compares.",
    )
    claimed_networks = ("strength 0", _CLAIMED)

    def measure(self, cell: TrainingCell, settings: TrainingSettings, context: Context) -> DoseRecord:
        trained = self.train(cell, settings, context)
        model, seen, unseen = trained.model, trained.seen, trained.unseen
        few = unseen.subset(min(len(unseen), 500))
        corrupted = accuracy_under(model, few.inputs, few.labels, severities=[_SEVERITY], seed=cell.seed)
        flat = sharpness(model, seen.subset(min(len(seen), 500)), _WEIGHT_STD, draws=20, seed=cell.seed)
        each = 3 if settings.networks[cell.network].penalty is None else 6  # passes for one image in one epoch
        return DoseRecord(
            **vars(trained.record),
            images=len(seen),
            corrupted_accuracy=corrupted.mean.value,
            by_family={family: accuracy.value for family, accuracy in corrupted.families().items()},
            sharpness=flat.prediction.value,
            output_sharpness=flat.output.value,
            passes=len(trained.record.epochs[1:]) * len(seen) * each / 1e6,
        )

    def figures(self, records: DoseRecords) -> list[Drawing]:
        return [_against_strength(records, quantity) for quantity in _QUANTITIES]

    def expectations(self, records: DoseRecords) -> list[Expectation]:
        kept, counted = learnt(records, _ACCURACY)
        usual = next(iter(records.settings.networks))
        accuracies = in_common(*(unseen_accuracy(kept, each) for each in (_CLAIMED, usual)))
        claimed = [
            is_smaller(
                f"sensitivity at {_CLAIMED} / without penalty",
                sensitivity_at_end(kept, _CLAIMED),
                sensitivity_at_end(kept, usual),
                factor=0.5,
            ),
            is_above(f"accuracy on unseen images at {_CLAIMED} - without penalty", paired(*accuracies), -0.01),
        ]
        slopes = [_slope(records, quantity) for quantity in _QUANTITIES if quantity.falls is not None]
        return [*claimed, *counted, *map(beyond, slopes)]


def _slope(records: DoseRecords, quantity: _Quantity) -> Expectation:
    """That a quantity falls, or rises, with the strength of the penalty: by the least-squares line of every seed."""
    networks = records.settings.networks
    strengths = [_strength(network) for network in networks.values()]
    by_network = _by_network(records, quantity)
    slopes = {
        seed: statistics.linear_regression(strengths, [values[seed] for values in by_network]).slope
        for seed in by_network[0]
    }
    statement = f"slope of {quantity.label} over the strength of the penalty"
    return (is_below if quantity.falls else is_above)(statement, over_seeds(slopes), 0.0)


def _by_network(records: DoseRecords, quantity: _Quantity) -> list[BySeed]:
    """Of each strength the values by seed, of the seeds that all strengths have."""
    complete = records.keep(lambda cell, _: cell.seed < DoseResponse.complete_seeds)
    return [complete.where(network=name).by("seed", quantity.read) for name in records.settings.networks]


def _strength(network: Network) -> float:
    return 0.0 if network.penalty is None else network.penalty.strength


def _against_strength(records: DoseRecords, quantity: _Quantity) -> Drawing:
    strengths = [_strength(network) for network in records.settings.networks.values()]
    values = [list(by_seed.values()) for by_seed in _by_network(records, quantity)]
    line = mean_and_range("mean and range over seeds", strengths, values)
    return Drawing(
        quantity.stem,
        figures.curves([line], x_label="strength of the penalty", y_label=quantity.label),
        f"The strength of the penalty against {quantity.label}; the mean and the range over seeds.",
        f"A curve of {quantity.label} over the strength of the penalty.",
    )
