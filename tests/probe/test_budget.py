"""Time is a number here: a clock that the loop and the model move."""

import numpy as np
import pytest
import torch

import jostle
from jostle.estimates import JostleWarning
from jostle.probe import Probe
from jostle.probe.budget import Budget, Rung, plan_ladder
from jostle.tokens import Coordinates, Inputs
from tests.probe.toys import CHOICES, points


class Clock:
    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


def watched_run(*, step_seconds, pass_seconds, steps=120, every=10, share=0.05, **options):
    """A loop of known speed with a model of known speed."""
    clock, weights = Clock(), torch.tensor([1.0, 0.5, 0.0, 0.0, -1.0])
    probe = Probe(points(40), **(CHOICES | {"plan": "until:half_width=0.02"} | options), every=every, share=share)
    probe._budget.clock = clock

    def model(x):
        clock.now += pass_seconds * len(x)
        return x @ weights.to(x.dtype)

    for step in range(steps):
        probe(model, step)
        clock.now += step_seconds
    return probe, clock


@pytest.mark.parametrize(("share", "pass_seconds"), [(0.01, 1e-4), (0.05, 1e-3), (0.5, 1e-5), (0.5, 0.1)])
def test_the_probe_keeps_to_its_share_and_says_what_it_left_out(share, pass_seconds):
    probe, clock = watched_run(step_seconds=0.1, pass_seconds=pass_seconds, share=share)
    history = probe.history
    spent, trained = history["probe_seconds"], history["training_seconds"]
    assert np.all(spent[1:] <= share * trained[1:] + 1e-6)  # but for the first, for which nothing was timed
    assert clock.now == pytest.approx(probe._budget.probe_seconds + 12.0)
    skipped = [note for note in probe.notes if "skipped" in note]
    assert len(skipped) + len(history["step"]) == 12  # every step that was due is accounted for
    precise = history["high"] - history["low"] <= 0.04
    assert np.all(precise | (history["halvings"] > 0) | np.isin(history["step"], noted(probe)))


def test_the_first_step_that_is_skipped_is_said_once_in_a_loop_of_ones_own():
    with pytest.warns(JostleWarning) as caught:
        probe, _ = watched_run(step_seconds=0.1, pass_seconds=0.1, share=0.01)
    said = [str(one.message) for one in caught if "skipped" in str(one.message)]
    first = next(note for note in probe.notes if "skipped" in note).split(":")[0]
    assert len(said) == 1
    assert said[0].startswith(f"{first} was due and is skipped, as others may be, to stay within share=0.01")
    assert said[0].endswith("give Probe(share=None) to measure all of them, or a larger share")


def noted(probe):
    return [int(note.split(":")[0].removeprefix("step ")) for note in probe.notes]


def test_a_loop_with_time_to_spare_is_measured_in_full_and_a_tight_one_is_not():
    rich, _ = watched_run(step_seconds=10.0, pass_seconds=1e-5, steps=50)
    assert rich.notes == [rich.notes[0]]
    assert "the first measurement, for which nothing is timed yet" in rich.notes[0]
    assert np.all((rich.history["high"] - rich.history["low"])[1:] <= 0.04)
    assert rich.history["halvings"].tolist() == [4.0] + 4 * [0.0]
    tight, _ = watched_run(step_seconds=0.5, pass_seconds=1e-3)
    halved = tight.history["halvings"][1:]
    assert 0 < len(halved) < 11
    assert np.any(halved > 0)
    assert any("s are needed at least, " in note and "of 0.05 of" in note for note in tight.notes)
    poor, _ = watched_run(step_seconds=1e-4, pass_seconds=1.0)
    assert poor.history["step"].tolist() == [0]
    assert len(poor.notes) == 12


def test_without_a_share_every_measurement_is_the_plan():
    probe, _ = watched_run(step_seconds=1e-9, pass_seconds=1.0, steps=30, share=None)
    assert probe.notes == []
    assert len(set(probe.history["passes"])) == len(set(probe.history["sensitivity"])) == 1
    assert len(probe.history["step"]) == 3


def test_fewer_passes_see_the_same_trials_first_and_their_intervals_hold():
    """The exact twin: a majority of 7 bits flips with probability C(6, 3) / 2^6 = 0.3125."""
    bits = torch.tensor([[1.0 if number >> place & 1 else -1.0 for place in range(7)] for number in range(128)])
    missed = 0
    for seed in range(40):
        plan = jostle.Until(half_width=0.02)
        probe = Probe(bits, tokens="coordinates", perturbation="sign-flip", plan=plan, seed=seed)
        first = probe(lambda x: x.sum(dim=1), 0)
        missed += not first["low"] <= 0.3125 <= first["high"]
        assert probe.history["halvings"] == 4
        assert first["high"] - first["low"] <= 2 * 0.02 * 2**2  # sqrt(2) for each halving
    assert missed <= 0.05 * 40 + 4 * (0.05 * 0.95 * 40) ** 0.5


def test_the_ladder_of_each_plan():
    inputs = Inputs(torch.randn(10, 4), Coordinates())
    assert [(rung.plan.draws, rung.passes) for rung in plan_ladder(jostle.Grid(5), inputs, 0.95)] == [
        (5, 258),
        (2, 138),
        (1, 98),
    ]
    masked = Inputs(torch.randn(10, 4), Coordinates(), torch.tensor([[1, 1, 0, 0]] * 10))
    assert plan_ladder(jostle.Grid(1), masked, 0.95) == [Rung(jostle.Grid(1), 78, 0)]
    plan = jostle.Until(half_width=0.02)
    rungs = plan_ladder(plan, inputs, 0.95)
    assert rungs[0].plan is plan
    assert [rung.halvings for rung in rungs] == [0, 1, 2, 3, 4]
    assert [rung.plan.max_passes for rung in rungs[1:]] == [rungs[0].passes >> times for times in (1, 2, 3, 4)]
    assert [rung.plan.half_width for rung in rungs] == pytest.approx([0.02 * 2 ** (times / 2) for times in range(5)])
    assert len(plan_ladder(jostle.Until(half_width=0.1), inputs, 0.95)) == 1  # too few passes to be halved
    assert plan_ladder(jostle.Until(relative=0.1, max_passes=700), inputs, 0.95)[1].passes == 350


def test_a_precision_that_needs_more_than_expected_ends_where_the_time_does():
    budget, plan = Budget(0.1, clock := Clock()), jostle.Until(half_width=0.02)
    budget.start()
    clock.now = 100.0
    with budget.measuring():
        budget.learn(800, 0.8, 0.0, is_precise=True)
        choice = budget.choose([Rung(plan, 6000, 0), Rung(plan, 3000, 1)])
    assert (choice.plan.max_passes, choice.halvings) == (10_000, 0)
    assert choice.note == "ended at 10,000 passes: 10 s are left of 0.1 of 100 s of training"


def test_a_full_step_of_the_ladder_is_tried_again_once_it_is_known_to_need_less():
    rungs = [Rung(jostle.Until(half_width=0.02), 6000, 0), Rung(jostle.Until(half_width=0.02, max_passes=500), 500, 1)]
    budget = Budget(0.1, clock := Clock())
    budget.start()
    clock.now = 10.0
    with budget.measuring():
        budget.learn(800, 0.8, 0.0, is_precise=False)
        assert budget.choose(rungs).note.startswith("passes halved once, to 500: 6 s are needed, 1 s are left")
        budget.learn(700, 0.7, 0.0, is_precise=True)
        assert budget.choose(rungs).halvings == 0
        budget.learn(700, 0.7, 0.95, is_precise=True)  # other measures take the rest of it
        assert budget.choose(rungs).plan is None
