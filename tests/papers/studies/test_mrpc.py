"""MRPC at the paper's own size: the share of the class predicted most, and sensitivities where nothing flipped."""

import pytest
import torch
from torch import nn

import jostle
from jostle.data import Dataset
from jostle_papers.p2403_06925.mrpc import BEFORE, CLAIMED, NAMES, TWICE, Mrpc
from jostle_papers.trained.questions import ask_largest_share
from jostle_papers.trained.records import Sensitivity, smoothed


class Threshold(nn.Module):
    """Class 1 where the only number of an input is above a bound."""

    def __init__(self, bound):
        super().__init__()
        self.bound = bound

    def forward(self, inputs):
        above = inputs[:, 0] - self.bound
        return torch.stack([-above, above], dim=1)


@pytest.mark.parametrize(("bound", "share"), [(2.5, 0.7), (100.0, 1.0), (-100.0, 1.0)])
def test_the_share_of_the_class_predicted_most(bound, share):
    points = Dataset("points", torch.arange(10.0)[:, None], torch.zeros(10, dtype=torch.int64), classes=2)
    assert ask_largest_share("end", points).ask(Threshold(bound).train()).value == pytest.approx(share)


def test_a_sensitivity_of_zero_is_taken_for_half_a_flip():
    none = Sensitivity(value=0.0, low=0.0, high=0.01, level=0.95, passes=999)
    assert smoothed(none) == pytest.approx(0.5 / 1000)
    some = Sensitivity(value=0.1, low=0.0, high=0.2, level=0.95, passes=10_000)
    assert smoothed(some) == pytest.approx(0.1, rel=1e-3)


def test_networks_differ_in_nothing_but_their_architecture():
    for scale, settings in Mrpc.scales.items():
        assert list(settings.networks) == list(CLAIMED if scale == "paper" else NAMES)
        training = {(one.lr, one.weight_decay, one.optimizer, one.schedule) for one in settings.networks.values()}
        assert len(training) == 1
        assert settings.target_accuracy is None
    assert Mrpc.scales["paper"].limit is None  # the natural share of the classes


def test_smoke_records_shares_and_noise_in_three_places(tmp_path):
    result = jostle.run(Mrpc.name, "smoke", tmp_path, progress=False)
    for cell, record in result.records:
        assert set(record.elsewhere) == ({BEFORE} if cell.network == "lstm" else {BEFORE, TWICE})
        looked = [epoch for epoch in record.epochs if epoch.sensitivity is not None]
        assert all(0.5 <= epoch.largest_share.value <= 1 for epoch in looked)
    assert "largest-share" in {drawing.stem for drawing in result.summary.figures}
