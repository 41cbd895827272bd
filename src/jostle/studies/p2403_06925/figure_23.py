"""Figure 23: encoders and LSTMs of 4, 8 and 12 layers."""

from typing import Any

from jostle.studies.catalogue import register
from jostle.studies.evidence import paired
from jostle.studies.language import TextTraining
from jostle.studies.p2403_06925 import text
from jostle.studies.records import Records
from jostle.studies.trained import Training, TrainingStudy, at_end, at_matched_accuracy
from jostle.studies.verdict import Expectation, beyond, is_less, within

_KINDS = ("encoder", "lstm")
_MARGIN = 0.02


def _deeper(settings: TextTraining, depths: tuple[int, ...], slower: float = 1.0) -> TextTraining:
    """The same networks with other numbers of layers; deeper LSTMs have ``slower`` times the rate."""
    networks: dict[str, dict[str, Any]] = {}
    for name, chosen in settings.networks.items():
        for depth in depths:
            is_deep = name == "lstm" and depth > chosen["sizes"]["depth"]
            changes: dict[str, Any] = {"lr": chosen["lr"] * slower} if is_deep else {}
            networks[f"{name}, {depth} layers"] = {**chosen, **changes, "sizes": {**chosen["sizes"], "depth": depth}}
    return type(settings)(**{**vars(settings), "networks": networks, "over_training": False})


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
        "smoke": _deeper(text.at_scale("smoke", "qqp", _KINDS), (1, 2)),
        "small": _deeper(text.at_scale("small", "qqp", _KINDS), (4, 8, 12), slower=1 / 3),
        "paper": _deeper(text.at_scale("paper", "qqp", _KINDS), (4, 8, 12)),
    }
    deviations = (
        text.MATCHED,
        text.SMALL_SCALE,
        *text.DIFFERENCES,
        "Small scale: LSTMs of 8 and 12 layers have a third of the learning rate; at the full one they do not learn.",
    )

    def expectations(self, records: Records[Training]) -> list[Expectation]:
        values = {name: at_end(records, name) for name in records.settings.networks}
        depths = [name.removeprefix("encoder") for name in values if name.startswith("encoder")]
        claimed = [
            is_less(f"sensitivity of encoder - of lstm{depth}", values[f"encoder{depth}"], values[f"lstm{depth}"])
            for depth in depths
        ]
        first, *deeper = depths
        same = [
            within(
                f"sensitivity of {kind}{depth} - of {kind}{first}",
                paired(values[f"{kind}{depth}"], values[f"{kind}{first}"]),
                0.0,
                _MARGIN,
            )
            for kind in _KINDS
            for depth in deeper
        ]
        return [*at_matched_accuracy(records, claimed, text.ACCURACY), *map(beyond, same)]
