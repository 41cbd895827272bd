"""Appendix A.4: a causal decoder between encoder and LSTM."""

from jostle.studies.catalogue import register
from jostle.studies.verdict import Expectation, is_less
from jostle_papers.p2403_06925 import text
from jostle_papers.trained import TrainedRecords, TrainingStudy, at_end, at_matched_accuracy


@register
class LanguageGpt2(TrainingStudy):
    """Sensitivity of a GPT-2-style decoder, followed over training."""

    name = "2403.06925/language-gpt2"
    title = "QQP: a causal decoder"
    claim = "A GPT-2-style decoder is more sensitive than a RoBERTa-style encoder and less than an LSTM."
    source = "Appendix A.4"
    version = 1
    scales = text.scales("qqp", ("encoder", "decoder", "lstm"))
    deviations = (
        text.MATCHED,
        text.SMALL_SCALE,
        *text.DIFFERENCES,
        "The decoder reads off its last real token; in the released code it reads off padding. It has no embedding "
        "LayerNorm, so that its tokens are much smaller than the noise.",
    )

    def expectations(self, records: TrainedRecords) -> list[Expectation]:
        values = {name: at_end(records, name) for name in records.settings.networks}
        claimed = [
            is_less(f"sensitivity of {first} - sensitivity of {second}", values[first], values[second])
            for first, second in (("encoder", "decoder"), ("decoder", "lstm"))
        ]
        return at_matched_accuracy(records, claimed, text.ACCURACY)
