"""Appendix A.4: sensitivity on unseen texts instead of those that the networks were trained on."""

from collections.abc import Callable
from dataclasses import dataclass

from jostle import figures
from jostle.studies.catalogue import register
from jostle.studies.records import Records
from jostle.studies.study import Context, Drawing
from jostle.studies.verdict import Expectation, beyond, is_smaller
from jostle_papers.p2403_06925 import text
from jostle_papers.trained import (
    NetworkCell,
    NetworkStudy,
    Noise,
    Sensitivity,
    TrainedRecord,
    TrainingCell,
    TrainingSettings,
    learnt,
    mean_and_range,
    sensitivity_at_end,
)
from jostle_papers.trained.course import AT_END
from jostle_papers.trained.questions import ask_sensitivity
from jostle_papers.trained.records import smoothed

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
    claim = (
        "On QQP, at noise of variance 15, transformers with softmax and with ReLU attention are less sensitive than an "
        f"LSTM of the same training accuracy on unseen texts, too ({text.AT_SMALL_SCALE})."
    )
    source = "Appendix A.4"
    version = 1
    scales = text.scales("qqp", _NAMES, over_training=False)
    deviations = (text.MATCHED, text.SMALL_SCALE, text.ONE_SUBSET, *text.DIFFERENCES)

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
        kept, counted = learnt(records, text.ACCURACY)
        unseen = {
            name: kept.where(network=name).by("seed", lambda record: smoothed(record.unseen))
            for name in records.settings.networks
        }
        claimed = [
            is_smaller(f"sensitivity of {name} / of lstm, on unseen texts", unseen[name], unseen["lstm"])
            for name in ("encoder", "encoder-relu")
        ]
        rises = [
            is_smaller(
                f"sensitivity of {name} on training texts / on unseen texts", sensitivity_at_end(kept, name), values
            )
            for name, values in unseen.items()
        ]
        return [*claimed, *counted, *map(beyond, rises)]
