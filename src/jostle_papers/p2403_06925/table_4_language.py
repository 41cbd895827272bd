"""Table 4, its language half: noise in all embeddings of a text against noise in one."""

from jostle.studies.catalogue import register
from jostle.studies.evidence import over_seeds
from jostle.studies.study import Drawing
from jostle.studies.verdict import Expectation, beyond, is_smaller, within
from jostle_papers.p2403_06925 import text
from jostle_papers.p2403_06925.table_4 import less_so_in_one_token
from jostle_papers.trained import (
    Noise,
    TrainedRecords,
    TrainingStudy,
    by_measurement,
    final_value,
    learnt,
    less_sensitive,
    sensitivity_at_end,
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
    claim = (
        "On QQP, a transformer is less sensitive, compared with an LSTM, to noise of variance 15 in one token than to "
        f"noise of variance 0.5 over the whole text ({text.AT_SMALL_SCALE})."
    )
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
        text.ONE_SUBSET,
        *text.DIFFERENCES,
        "Judged is what the table is there to show: the ratio of the two networks is smaller (the paper: 0.33) under "
        "noise in one token than over the whole text (0.45). At first their order under noise over the whole text was "
        "judged, which agreed and still does, beyond the claim; this was changed after the records had been seen.",
        "The paper says variance 0.5; its script for the LSTM takes 1, so both are measured. A text of QQP has about "
        "35 tokens, so noise of variance 0.5 everywhere has about the energy of variance 15 in one token.",
    )

    def figures(self, records: TrainedRecords) -> list[Drawing]:
        return [by_measurement(records, list(records.settings.final))]

    def expectations(self, records: TrainedRecords) -> list[Expectation]:
        kept, counted = learnt(records, text.ACCURACY)
        encoder, lstm = _NAMES
        claimed = less_so_in_one_token(kept, encoder, lstm, TOKEN, WHOLE)
        released = is_smaller(
            f"sensitivity of {encoder} / of {lstm}, {WHOLE}; {DOUBLE} for the lstm",
            sensitivity_at_end(kept, encoder, WHOLE),
            sensitivity_at_end(kept, lstm, DOUBLE),
        )
        orders = [less_sensitive(kept, encoder, lstm, final) for final in (WHOLE, TOKEN)]
        spread = [
            is_smaller(
                f"sensitivity of {name} to noise in one token / to noise of about the same energy over the whole text",
                sensitivity_at_end(kept, name, TOKEN),
                sensitivity_at_end(kept, name, WHOLE),
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
        return [claimed, *counted, *map(beyond, [*orders, released, *spread, *near])]
