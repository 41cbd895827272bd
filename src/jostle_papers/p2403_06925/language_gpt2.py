"""Appendix A.4: a causal decoder between encoder and LSTM."""

from jostle.studies.catalogue import register
from jostle.studies.verdict import Expectation
from jostle_papers.p2403_06925 import text
from jostle_papers.trained import TrainedRecords, TrainingStudy, learnt, less_sensitive


@register
class LanguageGpt2(TrainingStudy):
    """Sensitivity of a GPT-2-style decoder, followed over training."""

    name = "2403.06925/language-gpt2"
    title = "QQP: a causal decoder"
    claim = (
        "On QQP, at noise of variance 15, a GPT-2-style decoder is more sensitive than a RoBERTa-style encoder and "
        f"less than an LSTM of the same training accuracy ({text.AT_SMALL_SCALE})."
    )
    source = "Appendix A.4"
    version = 1
    scales = text.scales("qqp", ("encoder", "decoder", "lstm"))
    deviations = (
        text.MATCHED,
        text.SMALL_SCALE,
        text.ONE_SUBSET,
        *text.DIFFERENCES,
        "The decoder reads off its last real token; in the released code it reads off padding. It has no embedding "
        "LayerNorm, so that its tokens are much smaller than the noise.",
    )

    def expectations(self, records: TrainedRecords) -> list[Expectation]:
        kept, counted = learnt(records, text.ACCURACY)
        claimed = [less_sensitive(kept, *pair) for pair in (("encoder", "decoder"), ("decoder", "lstm"))]
        return [*claimed, *counted]
