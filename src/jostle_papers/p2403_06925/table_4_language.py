"""Table 4, its language half: noise in all embeddings of a text against noise in one."""

from jostle.studies.catalogue import register
from jostle.studies.evidence import over_seeds
from jostle.studies.study import Drawing
from jostle.studies.verdict import Expectation, beyond, is_less, within
from jostle_papers.p2403_06925 import text
from jostle_papers.trained import (
    Noise,
    TrainedRecords,
    TrainingStudy,
    at_matched_accuracy,
    by_measurement,
    final_value,
)

_NAMES = ("encoder", "lstm")
_WHOLE = "embeddings:after,whole=true"
_PAPER = {"encoder": 0.05, "lstm": 0.11}
TOKEN, WHOLE, DOUBLE = "one token, variance 15", "whole text, variance 0.5", "whole text, variance 1"


@register
class Table4Language(TrainingStudy):
    """Noise over the whole text against token-wise noise for an encoder and an LSTM, on QQP."""

    name = "2403.06925/table-4-language"
    title = "QQP: noise over the whole text against noise in one token"
    claim = "Under noise over the whole text, too, the transformer is less sensitive than the LSTM."
    source = "Appendix A.3 and Table 4, the language half"
    version = 1
    scales = text.scales(
        "qqp",
        _NAMES,
        over_training=False,
        final={TOKEN: Noise(text.STD), WHOLE: Noise(0.5**0.5, _WHOLE), DOUBLE: Noise(1.0, _WHOLE)},
    )
    deviations = (
        text.MATCHED,
        text.SMALL_SCALE,
        *text.DIFFERENCES,
        "The paper says variance 0.5; its script for the LSTM takes 1, so both are measured. A text of QQP has about "
        "35 tokens, so noise of variance 0.5 everywhere has about the energy of variance 15 in one token.",
    )

    def figures(self, records: TrainedRecords) -> list[Drawing]:
        return [by_measurement(records, list(records.settings.final))]

    def expectations(self, records: TrainedRecords) -> list[Expectation]:
        encoder, lstm = _NAMES

        def less(its: str, theirs: str) -> Expectation:
            named = its if its == theirs else f"{its}; {theirs} for the lstm"
            return is_less(
                f"sensitivity of {encoder} - sensitivity of {lstm}, {named}",
                final_value(records, encoder, its),
                final_value(records, lstm, theirs),
            )

        spread = [
            is_less(
                f"sensitivity of {name} to noise in one token - to noise of about the same energy over the whole text",
                final_value(records, name, TOKEN),
                final_value(records, name, WHOLE),
            )
            for name in _NAMES
        ]
        near = [
            within(
                f"sensitivity of {name} is near the paper's, {WHOLE}",
                over_seeds(final_value(records, name, WHOLE)),
                target,
                0.02,
            )
            for name, target in _PAPER.items()
            if records.scale == "paper"
        ]
        claimed, released, ours = less(WHOLE, WHOLE), less(WHOLE, DOUBLE), less(TOKEN, TOKEN)
        return [
            *at_matched_accuracy(records, [claimed], text.ACCURACY),
            *map(beyond, [released, ours, *spread, *near]),
        ]
