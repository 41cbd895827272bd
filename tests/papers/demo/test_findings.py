"""Sentences follow from intervals, whoever is ahead: comparisons made up for the purpose."""

import numpy as np
import pytest

from jostle.base.estimate import Interval
from jostle.estimates import Comparison, Difference, MeanChange, Measurement, Profile
from jostle.estimates.result import MeasureSettings
from jostle_papers.own.demo.findings import findings

SETTINGS = MeasureSettings("patches:7", "gaussian-noise:std=1", "flip", "until", "dataset", 0.95, 0, 100, 16)
RUN = {"settings": SETTINGS, "passes": 1000, "stopped": "precision", "nonfinite": 0, "warnings": [], "seconds": 0.0}
RUN["provenance"] = {}
NOTHING = np.array([])
PROFILE = Profile(NOTHING, NOTHING, NOTHING, NOTHING.astype(np.int64), (0,), "dataset", "made up")


def estimate(value, reach):
    ends = [Interval(value - reach, value + reach, 0.95, target, "made up") for target in ("dataset", "population")]
    return MeanChange(value, *ends, per_input=NOTHING, profile=PROFILE, trials=1000)


def comparison(reach=0.01, **values):
    """Networks with these sensitivities; every difference is known to ``reach``."""
    measured = {name: Measurement(**vars(estimate(value, reach)), name=name, **RUN) for name, value in values.items()}
    names = list(values)
    pairs = [(a, b) for at, a in enumerate(names) for b in names[at + 1 :]]
    differences = [Difference(**vars(estimate(values[a] - values[b], reach)), first=a, second=b) for a, b in pairs]
    return Comparison(measured, differences)


@pytest.mark.parametrize(
    ("values", "said", "not_said"),
    [
        ({"ViT": 0.3, "CNN": 0.1}, "more sensitive at std 1", "less sensitive at"),
        ({"ViT": 0.1, "CNN": 0.3}, "less sensitive at std 1", "more sensitive at"),
        ({"ViT": 0.1, "CNN": 0.105}, "not told apart at std 1", "less sensitive at"),
        ({"CNN": 0.1, "ViT": 0.3}, "more sensitive at std 1", "less sensitive at"),
    ],
)
def test_the_transformer_against_another_network(values, said, not_said):
    text = " ".join(findings({1.0: comparison(**values)}))
    assert f"ViT against CNN: {said}" in text
    assert not_said not in text


def test_every_noise_level_is_sorted_by_its_own_interval():
    levels = {
        0.5: comparison(ViT=0.2, MLP=0.1),
        1.0: comparison(ViT=0.25, MLP=0.1),
        2.0: comparison(ViT=0.200, MLP=0.201),
        4.0: comparison(ViT=0.3, MLP=0.5),
    }
    [against] = [sentence for sentence in findings(levels) if "against MLP" in sentence]
    assert "more sensitive at std 0.5 and 1" in against
    assert "not told apart at std 2" in against
    assert "less sensitive at std 4" in against


def test_the_ranking_names_the_least_sensitive_only_if_it_can_be_told():
    clear = " ".join(findings({1.0: comparison(ViT=0.3, CNN=0.1, MLP=0.2)}))
    assert "CNN 0.100, MLP 0.200, ViT 0.300" in clear
    assert "CNN is the least" in clear
    unclear = " ".join(findings({1.0: comparison(reach=0.2, ViT=0.3, CNN=0.1, MLP=0.2)}))
    assert "is the least" not in unclear
    assert "cannot be told apart" in unclear


def test_every_other_network_gets_its_sentence():
    text = findings({1.0: comparison(ViT=0.3, CNN=0.1, MLP=0.2, ConvMixer=0.4)})
    for name in ("CNN", "MLP", "ConvMixer"):
        assert sum(f"ViT against {name}" in sentence for sentence in text) == 1
