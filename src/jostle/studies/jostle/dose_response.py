"""Our own question: how much does a penalty on sensitivity lower it, and what else does it change?"""

from typing import Any

from torch import nn

from jostle.corruptions import accuracy_under
from jostle.data import Dataset
from jostle.figures import curves
from jostle.landscape import sharpness
from jostle.results import Record
from jostle.studies.catalogue import register
from jostle.studies.evidence import paired
from jostle.studies.p2403_06925 import fashion
from jostle.studies.records import Records
from jostle.studies.study import Cell, Context, Drawing
from jostle.studies.verdict import Expectation, is_above, is_below, is_less
from jostle.studies.vision import Training, TrainingStudy, at_end, mean_and_range, penalised

_STRENGTHS = (0.05, 0.25, 0.5, 0.75)
_SEVERITY = 2
_LOOKED_AT = {
    "sensitivity": "sensitivity",
    "test_accuracy": "accuracy on unseen images",
    "corrupted_accuracy": "accuracy on corrupted images",
    "sharpness": "share of predictions changed by noise on the weights",
    "passes": "passes of training, in millions",
}


def _doses(chosen: dict[str, Any], strengths: tuple[float, ...], std: float) -> dict[str, dict[str, Any]]:
    doses = {f"strength {strength:g}": penalised(chosen, strength, std) for strength in strengths}
    return {"strength 0": chosen, **doses}


_TINY = fashion.tiny_networks("vit-small")["vit-small"]
_SMALL = fashion.small_networks("vit-small")["vit-small"]


@register
class DoseResponse(TrainingStudy):
    """Sensitivity, accuracy, robustness, flatness and cost against the strength of the penalty."""

    name = "jostle/dose-response"
    title = "Fashion-MNIST: a penalty on sensitivity, from none to strong"
    claim = "A sensitivity penalty (2403.06925, Section 7.1) halves a vision transformer's sensitivity at no accuracy."
    source = "our own question, after Section 7.1 of 2403.06925"
    version = 1
    scales = {
        "smoke": Training(
            seeds=1, networks=_doses(_TINY, (0.25,), 5**0.5), limit=200, test_limit=50, batch_size=20, std=5**0.5,
            passes=200, over_training=False,
        ),
        "small": Training(
            networks=_doses(_SMALL, _STRENGTHS, 5**0.5), dataset="fashion-mnist", limit=3_000, test_limit=2_000,
            batch_size=50, max_epochs=40, std=5**0.5, passes=4_000, over_training=False,
        ),
        "paper": Training(
            networks=_doses(_SMALL, _STRENGTHS, 5**0.5), dataset="fashion-mnist", max_epochs=40, std=5**0.5,
            passes=40_000, over_training=False,
        ),
    }  # fmt: skip
    deviations = (
        "Training ends with the first epoch after which every training image is classified right, or after 40 epochs.",
        f"Corruptions are self-made, the fifteen common ones at severity {_SEVERITY}, of at most 500 unseen images.",
        "Sharpness is the share of changed predictions (ShPred) under noise of std 0.005 on all weights, 20 draws, of "
        "at most 500 training images.",
    )

    def further(self, model: nn.Module, seen: Dataset, unseen: Dataset, settings: Training, seed: int) -> Record:
        few = unseen.subset(min(len(unseen), 500))
        corrupted = accuracy_under(model, few.inputs, few.labels, severities=[_SEVERITY], seed=seed)
        flat = sharpness(model, seen.subset(min(len(seen), 500)), draws=20, seed=seed)
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
        usual, *doses = records.settings.networks
        plain, found = at_end(records, usual), []
        unseen = records.where(network=usual).by("seed", "test_accuracy")
        for name in doses:
            lowered, accuracy = at_end(records, name), records.where(network=name).by("seed", "test_accuracy")
            half = {seed: value / 2 for seed, value in plain.items()}
            found.append(is_less(f"sensitivity at {name} - half of that without penalty", lowered, half))
            found.append(
                is_above(f"accuracy on unseen images at {name} - without penalty", paired(accuracy, unseen), -0.01)
            )
            found += [_change(records, usual, name, field) for field in ("corrupted_accuracy", "sharpness")]
        return found


def _change(records: Records[Training], usual: str, name: str, field: str) -> Expectation:
    """That robustness rises and sharpness falls."""
    before, after = (records.where(network=each).by("seed", field) for each in (usual, name))
    changed = paired(after, before)
    statement = f"{_LOOKED_AT[field]} at {name} - without penalty"
    return is_below(statement, changed, 0.0) if field == "sharpness" else is_above(statement, changed, 0.0)


def _against_strength(records: Records[Training], field: str, label: str) -> Drawing:
    strengths = [chosen.get("penalty", {}).get("strength", 0.0) for chosen in records.settings.networks.values()]
    values = [records.where(network=name).column(field) for name in records.settings.networks]
    line = mean_and_range("mean and range over seeds", strengths, values)
    return Drawing(
        field.replace("_", "-"),
        curves([line], x_label="strength of the penalty", y_label=label),
        f"The strength of the penalty against {label}; the mean and the range over seeds.",
        f"A curve of {label} over the strength of the penalty.",
    )
