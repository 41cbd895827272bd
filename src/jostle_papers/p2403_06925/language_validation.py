"""Appendix A.4: sensitivity on unseen texts instead of those that the networks were trained on."""

from collections.abc import Callable
from dataclasses import dataclass

from jostle import figures
from jostle.studies.catalogue import register
from jostle.studies.evidence import paired
from jostle.studies.records import Records
from jostle.studies.study import Context, Drawing
from jostle.studies.verdict import Expectation, beyond, is_above, is_less
from jostle_papers.p2403_06925 import text
from jostle_papers.trained import (
    NetworkCell,
    NetworkStudy,
    Noise,
    Sensitivity,
    TrainedRecord,
    TrainingCell,
    TrainingSettings,
    at_end,
    at_matched_accuracy,
    mean_and_range,
)
from jostle_papers.trained.course import AT_END
from jostle_papers.trained.questions import ask_sensitivity

_NAMES = ("encoder", "encoder-relu", "lstm")


@dataclass(frozen=True, kw_only=True)
class ValidationRecord(TrainedRecord):
    """A trained network, and its sensitivity on unseen texts."""

    unseen_sensitivity: float
    unseen: Sensitivity


ValidationRecords = Records[TrainingSettings, NetworkCell, ValidationRecord]

_ROWS: dict[str, Callable[[ValidationRecord], float]] = {
    "training texts": lambda record: record.sensitivity,
    "unseen texts": lambda record: record.unseen_sensitivity,
}


@register
class LanguageValidation(NetworkStudy[ValidationRecord]):
    """Sensitivity of trained networks on texts they have not seen."""

    name = "2403.06925/language-validation"
    title = "QQP: sensitivity on unseen texts"
    claim = "On unseen texts, too, transformers are less sensitive than an LSTM."
    source = "Appendix A.4"
    version = 1
    scales = text.scales("qqp", _NAMES, over_training=False)
    deviations = (text.MATCHED, text.SMALL_SCALE, *text.DIFFERENCES)

    def measure(self, cell: TrainingCell, settings: TrainingSettings, context: Context) -> ValidationRecord:
        trained = self.train(cell, settings, context)
        passes = AT_END * settings.passes
        question = ask_sensitivity("end", Noise(settings.std), passes, settings, trained.unseen, cell.seed)
        unseen = question.ask(trained.model)
        return ValidationRecord(**vars(trained.record), unseen_sensitivity=unseen.value, unseen=unseen)

    def figures(self, records: ValidationRecords) -> list[Drawing]:
        rows = {
            label: [
                mean_and_range(name, [0.0], [records.where(network=name).column(read)])
                for name in records.settings.networks
            ]
            for label, read in _ROWS.items()
        }
        return [
            Drawing(
                "unseen",
                figures.dots(rows, x_label="sensitivity"),
                "Sensitivity of the trained networks on training and unseen texts; the mean and the range over seeds.",
                "Sensitivity of each network on training and on unseen texts.",
            )
        ]

    def expectations(self, records: ValidationRecords) -> list[Expectation]:
        unseen = {
            name: records.where(network=name).by("seed", lambda record: record.unseen_sensitivity)
            for name in records.settings.networks
        }
        claimed = [
            is_less(f"sensitivity on unseen texts: {name} - lstm", unseen[name], unseen["lstm"])
            for name in ("encoder", "encoder-relu")
        ]
        rises = [
            is_above(
                f"sensitivity of {name}: on unseen texts - on training texts", paired(values, at_end(records, name)), 0
            )
            for name, values in unseen.items()
        ]
        return [*at_matched_accuracy(records, claimed, text.ACCURACY), *map(beyond, rises)]
