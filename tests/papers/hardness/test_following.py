"""Looks on disk belong to one run; one factor; what ``follow`` refuses."""

import dataclasses

import pytest
import torch

from jostle.base.errors import UsageError
from jostle.landscape import average_direction_sharpness
from jostle_papers.p2402_09963.hardness import HardnessDesign, HardnessPlan, named_task
from jostle_papers.p2402_09963.hardness.course import HardnessObserver, follow
from jostle_papers.p2402_09963.hardness.observation import draw_strings, step_length
from jostle_papers.p2402_09963.hardness.tasks import FACTOR
from jostle_papers.stacked.looks import LOOKS
from jostle_papers.stacked.state import STATE

TASK, SMALL, PLAN = named_task("first", 3), HardnessDesign(dim=8), HardnessPlan(batch_size=16, steps=4, fit_loss=0.0)


@pytest.mark.parametrize(
    ("other", "message"),
    [
        ({"seed": 1}, "seed was 0, is 1"),
        ({"task": named_task("parity", 3)}, "task was {'name': 'first'"),
        ({"design": HardnessDesign(dim=4)}, "dim was 8, is 4"),
        ({"plan": dataclasses.replace(PLAN, lr=0.1)}, "lr was 0.0003, is 0.1"),
        ({"plan": dataclasses.replace(PLAN, curriculum=(2,))}, r"curriculum was \[\], is \[2\]"),
    ],
)
def test_looks_of_another_run_are_refused(tmp_path, other, message):
    """Also where the state of training, which would say so too, is gone."""
    run = {"task": TASK, "design": SMALL, "plan": PLAN, "seed": 0}
    common = {"every": 2, "directions": 2, "folder": tmp_path}
    looks = follow(**run, **common)
    (tmp_path / STATE).unlink()
    before = (tmp_path / LOOKS).read_bytes()
    with pytest.raises(UsageError, match=rf"{LOOKS} is from another run: {message}"):
        follow(**run | other, **common)
    assert (tmp_path / LOOKS).read_bytes() == before
    assert follow(**run, **common) == looks


def test_one_factor_is_that_of_the_landscape():
    network = SMALL.create(3, 2)
    bits, rho = draw_strings(3, 8, 0), step_length(network)
    slow = average_direction_sharpness(network, bits, rho=rho, directions=4, label_values=(0, 1), seed=5)
    assert slow.factor == FACTOR
    assert HardnessObserver(TASK, SMALL, 4, 8, 5).sharpness(network) == pytest.approx(slow.value, rel=1e-3)
    assert TASK.scale() == FACTOR * float(torch.tensor([0.0, 1.0]).var(correction=0))


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ({"seed": "a"}, "seed='a' must be a whole number"),
        ({"seed": -1}, "seed=-1 must be a whole number from 0 to"),
        ({"folder": 3}, "folder=3 must be the path of a folder"),
        ({"folder": 0}, "folder=0 must be the path of a folder"),
    ],
)
def test_wrong_use_is_one_clear_line(choices, message):
    with pytest.raises(UsageError, match=message):
        follow(TASK, SMALL, PLAN, **{"seed": 0} | choices)


def test_a_folder_that_is_a_file_is_one_clear_line(tmp_path):
    (tmp_path / "taken").write_text("mine")
    with pytest.raises(UsageError, match="taken' is a file; expected a folder"):
        follow(TASK, SMALL, PLAN, seed=0, folder=tmp_path / "taken")
    assert (tmp_path / "taken").read_text() == "mine"
