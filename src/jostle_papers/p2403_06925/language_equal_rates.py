"""Section 6 with one learning rate for all networks: is the order of encoder and LSTM that of their learning rates?"""

from dataclasses import replace

from jostle.studies.catalogue import register
from jostle.studies.settings import SCALES
from jostle.studies.study import Drawing
from jostle.studies.verdict import Expectation, beyond
from jostle_papers.language import TextTrainingSettings
from jostle_papers.p2403_06925 import text
from jostle_papers.trained import (
    Noise,
    TrainedRecords,
    TrainingStudy,
    by_measurement,
    learnt,
    less_sensitive,
)

_NAMES = ("encoder", "encoder-relu", "lstm")
_FINAL = {"variance 4": Noise(2.0), "variance 15": Noise(text.STD)}


def _at_one_rate(scale: str) -> TextTrainingSettings:
    """The settings of other studies of QQP, with the encoder's learning rate and time for the LSTM to learn with it."""
    settings = text.at_scale(scale, "qqp", _NAMES)
    rate = settings.networks["encoder"].lr
    networks = {name: replace(network, lr=rate) for name, network in settings.networks.items()}
    if scale != "smoke":
        settings = replace(settings, max_epochs=100, seeds=6)
    return replace(settings, networks=networks, over_training=False, final=_FINAL, data_by_seed=True)


@register
class LanguageEqualRates(TrainingStudy):
    """Sensitivity of trained networks that learnt at the same rate."""

    name = "2403.06925/language-equal-rates"
    title = "QQP: transformers against an LSTM at one learning rate"
    claim = (
        "On QQP, at noise of variance 15, transformers with softmax and with ReLU attention are less sensitive than an "
        "LSTM that learnt at the same rate to the same training accuracy (at our setting, small scale: 3,000 pairs, "
        "networks 64 wide)."
    )
    source = "Section 6, QQP"
    version = 1
    scales = {scale: _at_one_rate(scale) for scale in SCALES}
    deviations = (
        text.MATCHED,
        "Small scale: 3,000 training pairs, half of each class, drawn anew for every seed, and networks of 4 layers "
        "that are 64 wide instead of 256, with 4 heads and 256 numbers between instead of 8 and 3,072, and no dropout; "
        "a learning rate of 0.0005 instead of 0.0001 for all. The other studies of QQP train LSTMs at 0.003, which "
        "takes a third of the epochs.",
        *text.DIFFERENCES,
    )

    def figures(self, records: TrainedRecords) -> list[Drawing]:
        return [by_measurement(records, list(records.settings.final))]

    def expectations(self, records: TrainedRecords) -> list[Expectation]:
        kept, counted = learnt(records, text.ACCURACY)
        claimed = [less_sensitive(kept, name, "lstm") for name in ("encoder", "encoder-relu")]
        others = [less_sensitive(kept, name, "lstm", "variance 4") for name in ("encoder", "encoder-relu")]
        return [*claimed, *counted, *map(beyond, [*others, less_sensitive(kept, "encoder-relu", "encoder")])]
