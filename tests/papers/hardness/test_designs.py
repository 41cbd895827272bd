"""Designs and plans: what they refuse, in whose words, and the learning rates of a plan against a slow twin."""

import json
import math

import numpy as np
import pytest
import torch

from jostle.base.errors import UsageError
from jostle.models.bit_encoder import BitEncoder
from jostle_papers.p2402_09963.hardness import HardnessDesign, HardnessPlan
from jostle_papers.p2402_09963.hardness.architectures import names
from jostle_papers.p2402_09963.hardness.designs import check_seed


def slow_rate(plan, steps, fitted):
    """By cases: over, not fitted, settling, settled."""
    if steps >= plan.steps:
        return 0.0
    if fitted < 0:
        return plan.lr
    left = plan.settle - (steps - fitted)
    return plan.lr * left / plan.settle if left > 0 else 0.0


@pytest.mark.parametrize("settle", [1, 4, 30])
def test_rates_are_those_of_a_slow_twin(settle):
    plan = HardnessPlan(lr=0.3, steps=12, settle=settle)
    for steps in range(15):
        fitted = torch.arange(-1, steps + 1)
        expected = [slow_rate(plan, steps, int(step)) for step in fitted]
        found = plan.rates(steps, fitted).tolist()
        assert found == pytest.approx(expected, rel=1e-12, abs=0)  # and 0 where training is over, exactly
        assert found[-1] == (0.3 if steps < 12 else 0)  # just fitted


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ({"weight_decay": "a"}, "weight_decay='a' must be a finite number, at least 0"),
        ({"weight_decay": -0.1}, "weight_decay=-0.1 must be a finite number, at least 0"),
        ({"weight_decay": math.nan}, "weight_decay=nan must be a finite number, at least 0"),
        ({"weight_decay": math.inf}, "weight_decay=inf must be a finite number, at least 0"),
        ({"weight_decay": True}, "weight_decay=True must be a finite number, at least 0"),
        ({"fit_loss": None}, "fit_loss=None must be a finite number, at least 0"),
        ({"fit_loss": math.nan}, "fit_loss=nan must be a finite number, at least 0"),
        ({"curriculum": 4}, "curriculum=4 must be growing lengths"),
        ({"curriculum": None}, "curriculum=None must be growing lengths"),
        ({"curriculum": ("a",)}, r"curriculum=\('a',\) must be growing lengths"),
        ({"curriculum": (2.5,)}, r"curriculum=\(2.5,\) must be growing lengths"),
        ({"curriculum": (True, 2)}, r"curriculum=\(True, 2\) must be growing lengths"),
        ({"curriculum": ([1], [2])}, r"curriculum=\(\[1\], \[2\]\) must be growing lengths"),
        ({"curriculum": (0, 2)}, r"curriculum=\(0, 2\) must be growing lengths"),
        ({"curriculum": (4, 3)}, r"curriculum=\(4, 3\) must be growing lengths"),
    ],
)
def test_a_plan_says_what_it_cannot_use(choices, message):
    with pytest.raises(UsageError, match=message):
        HardnessPlan(**choices)


@pytest.mark.parametrize("curriculum", [(), (4, 6), [4, 6], range(2, 5)])
def test_a_plan_takes_lengths_in_any_row(curriculum):
    described = HardnessPlan(curriculum=curriculum, weight_decay=0, fit_loss=0).describe()
    assert json.loads(json.dumps(described))["curriculum"] == list(curriculum)


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ({"architecture": 3}, "architecture=3 must be a name, a text; known: lstm, mlp"),
        ({"architecture": ["mlp"]}, "must be a name, a text"),
        ({"architecture": "lstn"}, "did you mean lstm"),
        ({"dim": "a"}, "dim='a' must be a whole number, at least 1"),
    ],
)
def test_a_design_says_what_it_cannot_use(choices, message):
    with pytest.raises(UsageError, match=message):
        HardnessDesign(**choices)


@pytest.mark.parametrize("architecture", ["transformer", "transformer-without-norm"])
@pytest.mark.parametrize("sizes", [{"dim": 7}, {"dim": 6, "heads": 4}, {"dim": 9, "heads": 3}])
def test_sizes_that_the_class_refuses_are_refused_in_its_words(architecture, sizes):
    with pytest.raises(UsageError) as theirs:
        BitEncoder(**sizes)
    with pytest.raises(UsageError) as ours:
        HardnessDesign(architecture=architecture, **sizes)
    assert str(ours.value) == str(theirs.value)


@pytest.mark.parametrize("architecture", names())
def test_a_design_that_is_taken_can_be_made(architecture):
    """Of all small sizes; those that are refused are refused by ``Design``."""
    taken = 0
    for dim in (1, 2, 3, 6):
        for heads in (1, 2, 3, 4):
            try:
                design = HardnessDesign(dim=dim, heads=heads, architecture=architecture)
            except UsageError:
                continue
            taken += 1
            assert design.create(2, 0)(torch.ones(3, 2)).shape == (3,)
    assert taken == (5 if architecture.startswith("transformer") else 16)


def test_a_seed_may_be_one_of_numpy():
    assert check_seed(np.int64(3)) == check_seed(3) == 3
    assert type(check_seed(np.uint8(3))) is int
    assert check_seed(2**64 - 1) == 2**64 - 1
    first, second = (HardnessDesign(dim=4).create(3, seed).readout.weight for seed in (np.int64(3), 3))
    assert torch.equal(first, second)


@pytest.mark.parametrize("seed", ["a", -1, 2**64, 2**70, 0.0, True, None])
def test_other_seeds_are_one_clear_line(seed):
    before = torch.random.get_rng_state()
    with pytest.raises(UsageError, match=f"seed={seed!r} must be "):
        HardnessDesign(dim=4).create(3, seed)
    assert torch.equal(torch.random.get_rng_state(), before)
    assert torch.get_default_dtype() == torch.float64
