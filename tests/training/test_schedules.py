import math
import warnings

import pytest
import torch

from jostle.base import specs
from jostle.base.errors import UsageError
from jostle.training import SCHEDULES, Constant, Cosine, Step

EXAMPLES = {
    "constant": ["constant", "constant:warmup=2"],
    "step": ["step:every=8,factor=0.5", "step:2,0.3", "step:3,warmup=4"],
    "cosine": ["cosine:epochs=6", "cosine:epochs=7,final=0.1,warmup=2"],
}


def built(spec):
    return specs.build(SCHEDULES, spec, "schedule")


def test_paper_1_halves_every_8_epochs():
    """0.002 for epochs 1 to 8, 0.001 for 9 to 16, 0.0005 for 17 to 24, written out."""
    rates = [0.002 * built("step:every=8,factor=0.5").multiplier(epoch) for epoch in range(1, 25)]
    assert rates == [0.002] * 8 + [0.001] * 8 + [0.0005] * 8


def test_cosine_by_hand():
    root = math.sqrt(2) / 2
    expected = [1, (1 + root) / 2, 0.5, (1 - root) / 2, 0, 0, 0]
    assert [Cosine(4).multiplier(epoch) for epoch in range(1, 8)] == pytest.approx(expected, abs=1e-15)
    raised = [0.2 + 0.8 * value for value in expected]
    assert [Cosine(4, 0.2).multiplier(epoch) for epoch in range(1, 8)] == pytest.approx(raised, abs=1e-15)
    assert Cosine(4).multiplier(99) == 0.0


def test_warmup_by_hand():
    assert [Constant(warmup=4).multiplier(epoch) for epoch in range(1, 7)] == [0.2, 0.4, 0.6, 0.8, 1.0, 1.0]
    assert [Step(2, 0.5, warmup=1).multiplier(epoch) for epoch in range(1, 7)] == [0.5, 1.0, 1.0, 0.5, 0.5, 0.25]
    wave = [Cosine(4, warmup=2).multiplier(epoch) for epoch in range(1, 6)]
    assert wave == pytest.approx([1 / 3, 2 / 3, 1.0, 0.5, 0.0], abs=1e-15)


@pytest.mark.parametrize(
    ("schedule", "oracle"),
    [
        (Step(3, 0.7), lambda optimizer: torch.optim.lr_scheduler.StepLR(optimizer, 3, 0.7)),
        (Cosine(10), lambda optimizer: torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 10)),
        (Cosine(10, 0.25), lambda optimizer: torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 10, 0.25 * 0.3)),
    ],
)
def test_against_torch(schedule, oracle):
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=0.3)
    scheduler, theirs = oracle(optimizer), []
    for _ in range(10):
        theirs.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            scheduler.step()
    assert [0.3 * schedule.multiplier(epoch) for epoch in range(1, 11)] == pytest.approx(theirs, rel=1e-12)


def test_every_schedule_has_examples():
    assert set(EXAMPLES) == set(SCHEDULES.names())


@pytest.mark.parametrize("spec", [spec for group in EXAMPLES.values() for spec in group])
def test_a_contract_for_every_schedule(spec):
    """It can be written down and made again; the rate is full right after the warm-up, and in [0, 1] everywhere."""
    schedule = built(spec)
    assert built(schedule.describe()) == schedule
    assert schedule.multiplier(schedule.warmup + 1) == 1.0
    assert all(0 <= schedule.multiplier(epoch) <= 1 for epoch in range(1, 50))
    warm = [schedule.multiplier(epoch) for epoch in range(1, schedule.warmup + 2)]
    assert warm == sorted(set(warm))


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("stepp:8", "unknown schedule 'stepp'; did you mean step"),
        ("step", "schedule='step': step needs every=; options: every, factor, warmup"),
        ("step:every=0", "every=0 must be a whole number, at least 1"),
        ("step:every=2.5", "every=2.5 must be a whole number"),
        ("step:8,factor=0", "factor=0 must be a finite number above 0, for example 0.5"),
        ("step:8,factor=half", "factor='half' must be a finite number above 0"),
        ("step:8,gamma=2", "unknown option of step 'gamma'"),
        ("cosine:epochs=5,warmup=5", "epochs=5 must be a whole number, at least 6"),
        ("cosine:5,final=2", "final=2 must be a finite number from 0 to 1"),
        ("constant:warmup=-1", "warmup=-1 must be a whole number, at least 0"),
        (Step, r"schedule=Step is a class; give an object"),
    ],
)
def test_specs_that_cannot_be(spec, message):
    with pytest.raises(UsageError, match=message) as caught:
        built(spec)
    assert "\n" not in str(caught.value)
