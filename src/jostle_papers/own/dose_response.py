"""Our own question: how much does a penalty on sensitivity lower it, and what else does it change?"""

import statistics
from typing import Any

from torch import nn

from jostle.base.store import Record
from jostle.corruptions import accuracy_under
from jostle.data import Dataset
from jostle.figures import curves
from jostle.landscape import sharpness
from jostle.studies.catalogue import register
from jostle.studies.evidence import over_seeds, paired
from jostle.studies.records import Records
from jostle.studies.study import Cell, Context, Drawing
from jostle.studies.verdict import Expectation, beyond, is_above, is_below
from jostle_papers.p2403_06925 import fashion
from jostle_papers.trained import Training, TrainingStudy, at_matched_accuracy, halvings, mean_and_range, penalised

STRENGTHS = (0.1, 0.25, 0.5, 0.75)
STD = 5**0.5  # of the noise, in the penalty and in what is measured
_CLAIMED = "strength 0.5"
_SEVERITY, _WEIGHT_STD = 2, 0.05
_EXPECTED_TO_FALL = {"sensitivity": True, "test_accuracy": False, "corrupted_accuracy": False, "sharpness": True}
_LOOKED_AT = {
    "sensitivity": "sensitivity",
    "test_accuracy": "accuracy on unseen images",
    "corrupted_accuracy": "accuracy on corrupted images",
    "sharpness": "share of predictions changed by noise on the weights",
    "passes": "passes of training, in millions",
}


def doses(chosen: dict[str, Any], strengths: tuple[float, ...] = STRENGTHS) -> dict[str, dict[str, Any]]:
    """A network trained without penalty and with penalties of these strengths, by name.

    The loss has the weight 1 - strength then, and the learning rate makes up for it: the loss is learnt at the same
    rate throughout.
    """
    made = {f"strength {each:g}": penalised(chosen, each, STD, lr=chosen["lr"] / (1 - each)) for each in strengths}
    return {"strength 0": chosen, **made}


def smoke(networks: dict[str, dict[str, Any]], **changes: Any) -> Training:
    """Settings of smoke scale, for all studies of what the penalty changes."""
    fixed: dict[str, Any] = {"seeds": 1, "limit": 200, "test_limit": 50, "batch_size": 20, "passes": 200}
    return Training(networks=networks, std=STD, over_training=False, **fixed, **changes)


def small(networks: dict[str, dict[str, Any]], **changes: Any) -> Training:
    """Settings of small scale."""
    fixed: dict[str, Any] = {"dataset": "fashion-mnist", "limit": 2_000, "test_limit": 2_000, "batch_size": 50}
    return Training(networks=networks, std=STD, over_training=False, max_epochs=80, passes=4_000, **fixed, **changes)


def paper(networks: dict[str, dict[str, Any]], **changes: Any) -> Training:
    """Settings of the paper's scale: all images, its own network."""
    fixed: dict[str, Any] = {"dataset": "fashion-mnist", "max_epochs": 100, "passes": 40_000}
    return Training(networks=networks, std=STD, over_training=False, **fixed, **changes)


@register
class DoseResponse(TrainingStudy):
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
        "smoke": smoke(doses(fashion.tiny_networks("vit-small")["vit-small"], (0.5,))),
        "small": small(doses(fashion.small_networks("vit-small")["vit-small"])),
        "paper": paper(doses(fashion.paper_networks("vit-small")["vit-small"])),
    }
    deviations = (
        "Training ends with the first epoch after which every training image is classified right. The loss is "
        "(1 - strength) times the usual one + strength times the penalty, at a learning rate of 0.1 / (1 - strength).",
        "Small scale: 2,000 training images, batches of 50, heads of 16 numbers instead of 64, no dropout.",
        f"Corruptions are self-made, the fifteen common ones at severity {_SEVERITY}, of at most 500 unseen images.",
        f"Sharpness is the share of changed predictions (ShPred) under noise of std {_WEIGHT_STD} on all weights, 20 "
        "draws, of at most 500 training images; std 0.005 changes none.",
    )

    def further(self, model: nn.Module, seen: Dataset, unseen: Dataset, settings: Training, seed: int) -> Record:
        few = unseen.subset(min(len(unseen), 500))
        corrupted = accuracy_under(model, few.inputs, few.labels, severities=[_SEVERITY], seed=seed)
        flat = sharpness(model, seen.subset(min(len(seen), 500)), _WEIGHT_STD, draws=20, seed=seed)
        return {
            "images": len(seen),
            "corrupted_accuracy": corrupted.mean.value,
            "by_family": {family: accuracy.value for family, accuracy in corrupted.families().items()},
            "sharpness": flat.prediction.value,
            "output_sharpness": flat.output.value,
        }

    def measure(self, cell: Cell, settings: Training, context: Context) -> Record:
        record = super().measure(cell, settings, context)
        has_penalty = "penalty" in settings.networks[cell.values["network"]]
        images = len(record["epochs"][1:]) * record["images"]
        return record | {"passes": images * (6 if has_penalty else 3) / 1e6}  # a backward pass counts as two

    def figures(self, records: Records[Training]) -> list[Drawing]:
        return [_against_strength(records, field, label) for field, label in _LOOKED_AT.items()]

    def expectations(self, records: Records[Training]) -> list[Expectation]:
        usual = next(iter(records.settings.networks))
        accuracy, before = (records.where(network=each).by("seed", "test_accuracy") for each in (_CLAIMED, usual))
        claimed = [
            is_above(f"how often sensitivity is halved at {_CLAIMED}", halvings(records, usual, _CLAIMED), 1.0),
            is_above(f"accuracy on unseen images at {_CLAIMED} - without penalty", paired(accuracy, before), -0.01),
        ]
        slopes = [_slope(records, field, falls) for field, falls in _EXPECTED_TO_FALL.items()]
        return [*at_matched_accuracy(records, claimed), *map(beyond, slopes)]


def _slope(records: Records[Training], field: str, falls: bool) -> Expectation:
    """That a quantity falls, or rises, with the strength of the penalty: by the least-squares line of every seed."""
    networks = records.settings.networks
    strengths = [_strength(chosen) for chosen in networks.values()]
    by_network = [records.where(network=name).by("seed", field) for name in networks]
    slopes = {
        seed: statistics.linear_regression(strengths, [values[seed] for values in by_network]).slope
        for seed in by_network[0]
    }
    statement = f"slope of {_LOOKED_AT[field]} over the strength of the penalty"
    return (is_below if falls else is_above)(statement, over_seeds(slopes), 0.0)


def _strength(chosen: dict[str, Any]) -> float:
    return float(chosen.get("penalty", {}).get("strength", 0.0))


def _against_strength(records: Records[Training], field: str, label: str) -> Drawing:
    strengths = [_strength(chosen) for chosen in records.settings.networks.values()]
    values = [records.where(network=name).column(field) for name in records.settings.networks]
    line = mean_and_range("mean and range over seeds", strengths, values)
    return Drawing(
        field.replace("_", "-"),
        curves([line], x_label="strength of the penalty", y_label=label),
        f"The strength of the penalty against {label}; the mean and the range over seeds.",
        f"A curve of {label} over the strength of the penalty.",
    )
