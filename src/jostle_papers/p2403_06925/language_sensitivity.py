"""Section 6, Figure 5 and similar figures: transformers against recurrent networks on QQP and MRPC, over training."""

from jostle.studies.catalogue import register
from jostle.studies.evidence import over_seeds
from jostle.studies.verdict import Expectation, beyond, is_smaller, within
from jostle_papers.language.networks import NAMES
from jostle_papers.p2403_06925 import text
from jostle_papers.trained import (
    TrainedRecords,
    TrainingStudy,
    at_end,
    in_common,
    learnt,
    less_sensitive,
    sensitivity_at_accuracy,
)

_PAPER = {
    "qqp": {"lstm": 0.09, "encoder": 0.03, "encoder-relu": 0.02},
    "mrpc": {"lstm": 0.15, "encoder": 0.002, "encoder-relu": 0.001},
}
_EARLIER = (0.7, 0.9)  # training accuracies on the way
_BEYOND = ("encoder-linear", "decoder", "gru", "ssm", "bag")


class _Language(TrainingStudy):
    """Sensitivity to noise of variance 15 in one embedding of networks that read texts, followed over training."""

    deviations = (text.MATCHED, text.SMALL_SCALE, text.ONE_SUBSET, text.FURTHER, *text.DIFFERENCES)
    claimed_networks = text.CLAIMED

    def expectations(self, records: TrainedRecords) -> list[Expectation]:
        kept, counted = learnt(records, text.ACCURACY)
        claimed = [less_sensitive(kept, name, "lstm") for name in ("encoder", "encoder-relu")]
        others = [less_sensitive(kept, "encoder-relu", "encoder")]
        others += [less_sensitive(kept, "encoder", name) for name in _BEYOND]
        earlier = [
            is_smaller(
                f"sensitivity of {name} / of lstm, when {accuracy:.0%} of the training texts were first right",
                *in_common(*(sensitivity_at_accuracy(records, each, accuracy) for each in (name, "lstm"))),
            )
            for accuracy in _EARLIER
            for name in ("encoder", "encoder-relu")
        ]
        near = [
            within(f"sensitivity of {name} is near the paper's", over_seeds(at_end(records, name)), target, 0.01)
            for name, target in _PAPER.get(records.settings.dataset, {}).items()
            if records.scale == "paper"
        ]
        return [*claimed, *counted, *map(beyond, [*others, *earlier, *near])]


@register
class LanguageSensitivity(_Language):
    """Pairs of questions."""

    name = "2403.06925/language-sensitivity"
    title = "QQP: transformers against recurrent networks"
    claim = (
        "On QQP, at noise of variance 15, transformers with softmax and with ReLU attention are less sensitive than an "
        f"LSTM of the same training accuracy ({text.AT_SMALL_SCALE})."
    )
    source = "Section 6, QQP"
    version = 1
    scales = text.scales("qqp", NAMES)


@register
class LanguageSensitivityMrpc(_Language):
    """Pairs of sentences from the news."""

    name = "2403.06925/language-sensitivity-mrpc"
    title = "MRPC: transformers against recurrent networks"
    claim = (
        "On MRPC, at noise of variance 15, transformers with softmax and with ReLU attention are less sensitive than "
        f"an LSTM of the same training accuracy ({text.AT_SMALL_SCALE.replace('3,000', '2,000')})."
    )
    source = "Section 6, MRPC"
    version = 1
    scales = text.scales("mrpc", NAMES)
    deviations = (
        text.MATCHED,
        text.SMALL_SCALE.replace("3,000 training pairs", "2,000 training pairs"),
        text.ONE_SUBSET,
        text.FURTHER,
        *text.DIFFERENCES,
    )
