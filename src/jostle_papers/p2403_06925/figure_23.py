"""Figure 23: encoders and LSTMs of 4, 8 and 12 layers."""

from dataclasses import replace

from jostle.studies.catalogue import register
from jostle.studies.evidence import paired
from jostle.studies.verdict import Expectation, beyond, is_less, within
from jostle_papers.language import TextTrainingSettings
from jostle_papers.p2403_06925 import text
from jostle_papers.trained import Networks, TrainedRecords, TrainingStudy, at_end, at_matched_accuracy

_KINDS = ("encoder", "lstm")
_MARGIN = 0.02


def _at_depths(
    settings: TextTrainingSettings, depths: tuple[int, ...], slower: float = 1.0, given_up: int | None = None
) -> TextTrainingSettings:
    """The same networks with other numbers of layers, the first of which is the usual one.

    Deeper LSTMs have ``slower`` times the learning rate, and the deepest are given up after ``given_up`` epochs.
    """
    networks: Networks = {}
    for name, usual in settings.networks.items():
        for depth in depths:
            network = usual.with_sizes(depth=depth)
            if name == "lstm" and depth > depths[0]:
                network = replace(network, lr=usual.lr * slower)
                if depth == max(depths):
                    network = replace(network, max_epochs=given_up)
            networks[f"{name}, {depth} layers"] = network
    return replace(settings, networks=networks, over_training=False)


@register
class Figure23(TrainingStudy):
    """Sensitivity of trained networks of several depths."""

    name = "2403.06925/figure-23"
    title = "QQP: depth"
    claim = (
        "At 4, 8 and 12 layers the encoder is less sensitive than the LSTM, whose sensitivity depth does not change."
    )
    source = "Appendix A.4, Figure 23"
    version = 1
    scales = {
        "smoke": _at_depths(text.at_scale("smoke", "qqp", _KINDS), (1, 2)),
        "small": _at_depths(text.at_scale("small", "qqp", _KINDS), (4, 8, 12), slower=1 / 3, given_up=15),
        "paper": _at_depths(text.at_scale("paper", "qqp", _KINDS), (4, 8, 12)),
    }
    deviations = (
        text.MATCHED,
        text.SMALL_SCALE,
        *text.DIFFERENCES,
        "Small scale: LSTMs of 8 and 12 layers have a third of the learning rate; at the full one they do not learn. "
        "Those of 12 layers have learnt little or nothing after 15 epochs and are given up: nothing is said of them.",
    )

    def expectations(self, records: TrainedRecords) -> list[Expectation]:
        values = {name: at_end(records, name) for name in records.settings.networks}
        depths = [name.removeprefix("encoder") for name in values if name.startswith("encoder")]
        claimed = []
        for depth in depths:
            pair = f"encoder{depth}", f"lstm{depth}"
            less = is_less(f"sensitivity of {pair[0]} - of {pair[1]}", *(values[name] for name in pair))
            claimed.append(_matched(records, less, pair))
        first, *deeper = depths
        same = []
        for deep, shallow in ((f"{kind}{depth}", f"{kind}{first}") for kind in _KINDS for depth in deeper):
            change = paired(values[deep], values[shallow])
            near = within(f"sensitivity of {deep} - of {shallow}", change, 0.0, _MARGIN)
            same.append(beyond(_matched(records, near, (deep, shallow))))
        return [*claimed, *same, *at_matched_accuracy(records, [], text.ACCURACY)]


def _matched(records: TrainedRecords, claim: Expectation, networks: tuple[str, str]) -> Expectation:
    """The claim, undecided if one of the two networks it is about did not learn."""
    return at_matched_accuracy(records, [claim], text.ACCURACY, networks)[0]
