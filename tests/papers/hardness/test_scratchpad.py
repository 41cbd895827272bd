"""What training and measuring of scratchpads refuse, and dropout while they are measured."""

import copy

import numpy as np
import pytest
import torch
from torch import nn

from jostle.base.errors import UsageError
from jostle_papers.p2402_09963.hardness import HardnessPlan
from jostle_papers.p2402_09963.hardness.scratchpad import create_scratchpad, observe_scratchpad, train_scratchpad

PLAN, SIZES = HardnessPlan(batch_size=8, steps=2, fit_loss=0.0), {"dim": 8}


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ({"seed": "a"}, "seed='a' must be a whole number from 0 to"),
        ({"seed": 2**70}, f"seed={2**70} must be a whole number from 0 to"),
        ({"seed": -1}, "seed=-1 must be a whole number from 0 to"),
        ({"sizes": {"dimm": 8}}, "unknown size 'dimm'; did you mean dim"),
        ({"sizes": {"seed": 8}}, "unknown size 'seed'"),
        ({"sizes": {"max_length": 8}}, "unknown size 'max_length'"),
        ({"sizes": {3: 8}}, "size=3 must be a name, a text; known: depth, dim, heads"),
        ({"sizes": {"dim": 7}}, "dim=7 must be even"),
        ({"n": 0}, "n=0 must be a whole number, at least 1"),
        ({"folder": 3}, "folder=3 must be the path of a folder"),
    ],
)
def test_wrong_training_is_one_clear_line(choices, message):
    with pytest.raises(UsageError, match=message):
        train_scratchpad(**{"n": 3, "plan": PLAN, "seed": 0, "sizes": SIZES} | choices)


def test_a_folder_that_is_a_file_is_found_before_the_first_step(tmp_path, monkeypatch):
    (tmp_path / "taken").write_text("mine")
    monkeypatch.setattr(
        "jostle_papers.p2402_09963.hardness.scratchpad.taught_loss", None
    )  # a step would fail in another way
    with pytest.raises(UsageError, match="taken' is a file; expected a folder"):
        train_scratchpad(3, PLAN, seed=0, sizes=SIZES, folder=tmp_path / "taken")
    assert (tmp_path / "taken").read_text() == "mine"


def test_a_seed_of_numpy_is_that_seed(tmp_path):
    plain, _, _ = train_scratchpad(3, PLAN, seed=2, sizes=SIZES)
    found, _, _ = train_scratchpad(3, PLAN, seed=np.int64(2), sizes=SIZES, folder=tmp_path)  # written as JSON
    assert all(torch.equal(*pair) for pair in zip(plain.parameters(), found.parameters(), strict=True))


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ({"strings": -1}, "strings=-1 must be a whole number, at least 1"),
        ({"tests": 0}, "tests=0 must be a whole number, at least 1"),
        ({"seed": "a"}, "seed='a' must be a whole number"),
        ({"n": "a"}, "n='a' must be a whole number, at least 1"),
    ],
)
def test_wrong_measuring_is_one_clear_line(choices, message):
    with pytest.raises(UsageError, match=message):
        observe_scratchpad(create_scratchpad(3, 0, **SIZES), **{"n": 3} | choices)


def test_it_is_measured_without_dropout_and_left_in_its_mode():
    network = create_scratchpad(3, 0, **SIZES)
    network.readout = nn.Sequential(nn.Dropout(0.5), network.readout)
    still = copy.deepcopy(network).eval()
    network.train().encoder_norm.eval()
    modes = [part.training for part in network.modules()]
    assert observe_scratchpad(network, 3, directions=2) == observe_scratchpad(still, 3, directions=2)
    assert [part.training for part in network.modules()] == modes
