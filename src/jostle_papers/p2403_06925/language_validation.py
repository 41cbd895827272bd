"""Appendix A.4: sensitivity on unseen texts instead of those that the networks were trained on."""

from torch import nn

from jostle.base.store import Record
from jostle.data import Dataset
from jostle.figures import dots
from jostle.studies.catalogue import register
from jostle.studies.evidence import paired
from jostle.studies.records import Records
from jostle.studies.study import Drawing
from jostle.studies.verdict import Expectation, beyond, is_above, is_less
from jostle_papers.p2403_06925 import text
from jostle_papers.trained import Training, TrainingStudy, at_end, at_matched_accuracy, mean_and_range, noise
from jostle_papers.trained.questions import sensitivity

_NAMES = ("encoder", "encoder-relu", "lstm")
_ROWS = {"sensitivity": "training texts", "unseen_sensitivity": "unseen texts"}


@register
class LanguageValidation(TrainingStudy):
    """Sensitivity of trained networks on texts they have not seen."""

    name = "2403.06925/language-validation"
    title = "QQP: sensitivity on unseen texts"
    claim = "On unseen texts, too, transformers are less sensitive than an LSTM."
    source = "Appendix A.4"
    version = 1
    scales = text.scales("qqp", _NAMES, over_training=False)
    deviations = (text.MATCHED, text.SMALL_SCALE, *text.DIFFERENCES)

    def further(self, model: nn.Module, seen: Dataset, unseen: Dataset, settings: Training, seed: int) -> Record:
        answer = sensitivity("end", noise(settings.std), 5 * settings.passes, settings, unseen, seed).ask(model)
        return {"unseen_sensitivity": answer["value"], "unseen": answer}

    def figures(self, records: Records[Training]) -> list[Drawing]:
        rows = {
            label: [
                mean_and_range(name, [0.0], [records.where(network=name).column(field)])
                for name in records.settings.networks
            ]
            for field, label in _ROWS.items()
        }
        return [
            Drawing(
                "unseen",
                dots(rows, x_label="sensitivity"),
                "Sensitivity of the trained networks on training and unseen texts; the mean and the range over seeds.",
                "Sensitivity of each network on training and on unseen texts.",
            )
        ]

    def expectations(self, records: Records[Training]) -> list[Expectation]:
        unseen = {
            name: records.where(network=name).by("seed", "unseen_sensitivity") for name in records.settings.networks
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
