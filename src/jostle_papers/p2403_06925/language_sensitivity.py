"""Section 6, Figure 5 and similar figures: transformers against recurrent networks on QQP and MRPC, over training."""

from jostle.studies.catalogue import register
from jostle.studies.evidence import over_seeds
from jostle.studies.verdict import Expectation, beyond, is_less, within
from jostle_papers.language.networks import NAMES
from jostle_papers.p2403_06925 import text
from jostle_papers.trained import TrainedRecords, TrainingStudy, at_accuracy, at_end, at_matched_accuracy, in_common

_PAPER = {
    "qqp": {"lstm": 0.09, "encoder": 0.03, "encoder-relu": 0.02},
    "mrpc": {"lstm": 0.15, "encoder": 0.002, "encoder-relu": 0.001},
}
_EARLIER = (0.7, 0.9)  # training accuracies on the way
_BEYOND = ("encoder-linear", "decoder", "gru", "ssm", "bag")


class _Language(TrainingStudy):
    """Sensitivity to noise of variance 15 in one embedding of networks that read texts, followed over training."""

    deviations = (text.MATCHED, text.SMALL_SCALE, *text.DIFFERENCES)

    def expectations(self, records: TrainedRecords) -> list[Expectation]:
        values = {name: at_end(records, name) for name in records.settings.networks}
        claimed = [
            is_less(f"sensitivity of {first} - sensitivity of {second}", values[first], values[second])
            for first, second in (("encoder", "lstm"), ("encoder-relu", "lstm"), ("encoder-relu", "encoder"))
        ]
        others = [
            is_less(f"sensitivity of encoder - sensitivity of {name}", values["encoder"], values[name])
            for name in _BEYOND
        ]
        earlier = [
            is_less(
                f"sensitivity of {name} - of lstm, when {accuracy:.0%} of the training texts were first right",
                *in_common(at_accuracy(records, name, accuracy), at_accuracy(records, "lstm", accuracy)),
            )
            for accuracy in _EARLIER
            for name in ("encoder", "encoder-relu")
        ]
        near = [
            within(f"sensitivity of {name} is near the paper's", over_seeds(values[name]), target, 0.01)
            for name, target in _PAPER.get(records.settings.dataset, {}).items()
            if records.scale == "paper"
        ]
        return [*at_matched_accuracy(records, claimed, text.ACCURACY), *map(beyond, [*others, *earlier, *near])]


@register
class LanguageSensitivity(_Language):
    """Pairs of questions."""

    name = "2403.06925/language-sensitivity"
    title = "QQP: transformers against recurrent networks"
    claim = "On QQP, transformers with softmax and with ReLU attention are less sensitive than an LSTM."
    source = "Section 6, QQP"
    version = 1
    scales = text.scales("qqp", NAMES)


@register
class LanguageSensitivityMrpc(_Language):
    """Pairs of sentences from the news."""

    name = "2403.06925/language-sensitivity-mrpc"
    title = "MRPC: transformers against recurrent networks"
    claim = "On MRPC, transformers with softmax and with ReLU attention are less sensitive than an LSTM."
    source = "Section 6, MRPC"
    version = 1
    scales = text.scales("mrpc", NAMES)
    deviations = (
        text.MATCHED,
        text.SMALL_SCALE.replace("3,000 training pairs", "2,000 training pairs"),
        *text.DIFFERENCES,
    )
