import pytest

from jostle.base.errors import UsageError
from jostle_papers.p2403_06925.parity import (
    SparseParity,
    lead,
    learning_step,
    relative_lead,
    rise,
    value_before_learning,
    ways,
)
from jostle_papers.stacked.trajectory import Trajectory

TASK = SparseParity()  # p / d = 0.1
STEPS = tuple(range(0, 100, 10))


def course(accuracy, **curves):
    return Trajectory(0, STEPS[: len(accuracy)], {"test_accuracy": tuple(accuracy), **curves})


PLATEAU = (0.5, 0.49, 0.51, 0.5, 0.52, 0.8, 0.99, 1.0, 1.0, 1.0)


def test_half_of_the_way():
    rising = course(PLATEAU, sensitivity=(0, 0.01, 0.04, 0.05, 0.06, 0.12, 0.1, 0.1, 0.1, 0.1))
    assert learning_step(rising) == 60
    assert rise(rising, "test_accuracy", TASK) == 50
    assert rise(rising, "sensitivity", TASK) == 30  # 0.05 of 0.1
    assert lead(rising, "sensitivity", TASK) == 20
    assert relative_lead(rising, "sensitivity", TASK) == 20 / 50
    assert rise(rising, "sensitivity", TASK, 0.1) == 10
    assert rise(rising, "test_accuracy", TASK, 0.1) == 50


def test_what_falls_back_does_not_count():
    wandering = course(PLATEAU, sensitivity=(0.09, 0, 0.11, 0, 0.02, 0.05, 0.1, 0.1, 0.1, 0.1))
    assert rise(wandering, "sensitivity", TASK) == 50
    assert lead(wandering, "sensitivity", TASK) == 0


def test_a_measure_can_rise_after_accuracy_has():
    late = course(PLATEAU, relevant_sensitivity=(0, 0, 0, 0, 0, 0.4, 0.9, 1, 1, 1))
    assert lead(late, "relevant_sensitivity", TASK) == -10


def test_what_comes_after_learning_does_not_count():
    spiking = course(PLATEAU, sensitivity=(0, 0, 0, 0.08, 0.09, 0.1, 0.1, 0.01, 0.0, 0.1))
    assert rise(spiking, "sensitivity", TASK) == 30


def test_a_network_that_does_not_learn_has_no_onsets():
    stuck = course((0.5, 0.5, 0.6, 0.98, 0.9), sensitivity=(0, 0.1, 0.1, 0.1, 0.1))
    assert learning_step(stuck) is None
    assert rise(stuck, "sensitivity", TASK) is None
    assert lead(stuck, "sensitivity", TASK) is None
    assert relative_lead(stuck, "sensitivity", TASK) is None
    assert value_before_learning(stuck, "sensitivity", TASK) is None


def test_a_measure_that_is_below_when_the_network_has_learnt_has_not_risen():
    low = course(PLATEAU, sensitivity=(0, 0.1, 0.1, 0.1, 0.1, 0.1, 0.04, 0.1, 0.1, 0.1))
    assert rise(low, "sensitivity", TASK) is None
    assert lead(low, "sensitivity", TASK) is None


def test_before_learning_is_the_last_look_below_55_percent():
    slow = (0.5, 0.52, 0.54, 0.56, 0.7, 0.99, 1.0)
    rising = course(slow, sensitivity=(0, 0.02, 0.07, 0.08, 0.09, 0.1, 0.1))
    assert value_before_learning(rising, "sensitivity", TASK) == 0.07
    at_once = course((0.6, 0.99), sensitivity=(0.1, 0.1))
    assert value_before_learning(at_once, "sensitivity", TASK) is None


def test_the_way_of_output_sensitivity_begins_at_a_linear_function():
    assert ways(TASK)["output_sensitivity"] == (0.025, 0.1)
    bent = course(PLATEAU, output_sensitivity=(0.025, 0.03, 0.05, 0.062, 0.063, 0.1, 0.1, 0.1, 0.1, 0.1))
    assert rise(bent, "output_sensitivity", TASK) == 40  # 0.0625


def test_wrong_use_is_one_clear_line():
    some = course(PLATEAU, sensitivity=(0.1,) * 10)
    with pytest.raises(UsageError, match="share of the way=0 must be a finite number above 0 and at most 1"):
        rise(some, "sensitivity", TASK, 0)
    with pytest.raises(UsageError, match="unknown measure that rises 'sensitivty'; did you mean sensitivity"):
        rise(some, "sensitivty", TASK)
