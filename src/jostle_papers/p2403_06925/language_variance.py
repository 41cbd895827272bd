"""Section 6 and Appendix A.4: other noise. Variance 4, noise in proportion to the token, and before LayerNorm."""

from jostle.studies.catalogue import register
from jostle.studies.study import Drawing
from jostle.studies.verdict import Expectation, beyond
from jostle_papers.p2403_06925 import text
from jostle_papers.trained import (
    Noise,
    TrainedRecords,
    TrainingStudy,
    by_measurement,
    learnt,
    less_sensitive,
)

_NAMES = ("encoder", "encoder-relu", "decoder", "lstm")
FOUR, FIFTEEN = "variance 4", "variance 15"
MATCHED = "length of the token times the root of 15"
BEFORE = "variance 15, before LayerNorm"
DELETED = "token deleted"


@register
class LanguageVariance(TrainingStudy):
    """Sensitivity of trained networks to noise of several kinds."""

    name = "2403.06925/language-variance"
    title = "QQP: other noise"
    claim = (
        "On QQP, at noise of variance 4, too, transformers with softmax and with ReLU attention are less sensitive "
        f"than an LSTM of the same training accuracy ({text.AT_SMALL_SCALE})."
    )
    source = "Appendix A.4"
    version = 1
    scales = text.scales(
        "qqp",
        _NAMES,
        over_training=False,
        final={
            FOUR: Noise(2.0),
            FIFTEEN: Noise(15**0.5),
            MATCHED: Noise(15**0.5, perturbation=f"sphere:radius={15**0.5!r},relative=true"),
            BEFORE: Noise(15**0.5, tokens="embeddings:before"),
            DELETED: Noise(0.0, tokens="words", perturbation="deletion"),
        },
    )
    deviations = (
        text.MATCHED,
        text.SMALL_SCALE,
        text.ONE_SUBSET,
        text.FURTHER,
        *text.DIFFERENCES,
        "Variance 15 is judged in `language-sensitivity`, and beyond the claim here; at first it was part of it.",
        "Beyond the paper: noise as long as the token itself times the root of 15, so that the signal-to-noise ratio "
        "is that of variance 15 for every network; noise before the LayerNorm, which takes its size away; deletion.",
    )
    claimed_networks = text.CLAIMED

    def figures(self, records: TrainedRecords) -> list[Drawing]:
        return [by_measurement(records, list(records.settings.final))]

    def expectations(self, records: TrainedRecords) -> list[Expectation]:
        kept, counted = learnt(records, text.ACCURACY)
        found = {
            final: [less_sensitive(kept, name, "lstm", final) for name in ("encoder", "encoder-relu")]
            for final in records.settings.final
        }
        claimed = found.pop(FOUR)
        return [*claimed, *counted, *(beyond(one) for pair in found.values() for one in pair)]
