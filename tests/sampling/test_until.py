import itertools
import math

import numpy as np
import pytest
import torch

import jostle
from jostle.sampling import Until
from jostle.tokens import Inputs, Rows

PLAN = Until(half_width=0.01)
PLAIN = Inputs(torch.zeros(13, 7), Rows())
COUNTS = np.array([1, 2, 3, 4, 5, 6, 7, 7, 7, 7, 7, 7, 7])
MASKED = Inputs(torch.zeros(13, 7), Rows(), torch.from_numpy(np.arange(7) >= 7 - COUNTS[:, None]))


def columns(trials):
    return np.stack([trials.inputs, trials.tokens, trials.draws])


def is_uniform(counts, expected):
    """Whether a chi-square statistic lies within 4 standard deviations of its mean."""
    freedom = len(counts) - 1
    return abs(((counts - expected) ** 2 / expected).sum() - freedom) < 4 * math.sqrt(2 * freedom)


@pytest.mark.parametrize("inputs", [PLAIN, MASKED], ids=["plain", "masked"])
@pytest.mark.parametrize("cuts", [[0, 1, 2, 500], [0, 64, 128, 500], [0, 499, 500]])
def test_a_trial_is_a_function_of_seed_and_number_alone(inputs, cuts):
    whole = columns(PLAN.trials(inputs, 7, 0, 500))
    parts = [columns(PLAN.trials(inputs, 7, start, stop)) for start, stop in itertools.pairwise(cuts)]
    assert (np.concatenate(parts, axis=1) == whole).all()
    assert (columns(Until(relative=0.5, max_passes=9).trials(inputs, 7, 0, 500)) == whole).all()
    assert not (columns(PLAN.trials(inputs, 8, 0, 500))[:2] == whole[:2]).all()


def test_no_trial_shares_its_noise_with_another():
    assert PLAN.trials(PLAIN, 0, 300, 400).draws.tolist() == list(range(300, 400))


@pytest.mark.parametrize("inputs", [PLAIN, MASKED], ids=["plain", "masked"])
def test_inputs_are_uniform_and_tokens_uniform_among_the_unmasked(inputs):
    size = 60_000
    trials = PLAN.trials(inputs, 3, 0, size)
    assert is_uniform(np.bincount(trials.inputs, minlength=13), size / 13)
    for i in range(13):
        tokens = trials.tokens[trials.inputs == i]
        count = 7 if inputs is PLAIN else COUNTS[i]
        assert tokens.min() == 7 - count
        if count > 1:
            assert is_uniform(np.bincount(tokens - (7 - count), minlength=count), len(tokens) / count)


def test_inputs_and_tokens_are_drawn_independently():
    size = 60_000
    trials = PLAN.trials(PLAIN, 5, 0, size)
    assert is_uniform(np.bincount(trials.inputs * 7 + trials.tokens, minlength=91), size / 91)


def test_looks_follow_each_other_and_grow_slowly():
    looks = list(itertools.islice(PLAN.looks(), 300))
    stops = [stop for _, stop in looks]
    assert [start for start, _ in looks] == [0, *stops[:-1]]
    assert stops[0] == 64
    assert all(later > earlier for earlier, later in itertools.pairwise(stops))
    assert all(later - earlier <= max(64, 0.04 * earlier + 64) for earlier, later in itertools.pairwise(stops))
    assert stops[-1] > 100_000
    assert list(itertools.islice(Until(relative=0.1).looks(), 300)) == looks


def test_sampling_stops_at_a_look_whatever_the_batch_size():
    inputs = torch.randn(40, 5, dtype=torch.float64)
    stops = {stop for _, stop in itertools.islice(PLAN.looks(), 300)}
    for plan in (Until(half_width=0.03), Until(relative=0.2)):
        counted = {
            jostle.measure(lambda x: x, inputs, tokens="rows", perturbation="sphere:1", plan=plan, batch_size=b).trials
            for b in (5, 64, 1000)
        }
        assert len(counted) == 1
        assert counted <= stops


@pytest.mark.parametrize("level", [0.5, 0.95, 0.999])
@pytest.mark.parametrize("rule", ["half_width", "relative"])
def test_the_horizon_is_positive_and_grows_with_the_precision(rule, level):
    p = np.array([0.0, 1e-9, 1e-4, 0.1, 0.5, 0.9, 1 - 1e-9, 1.0])
    rough, fine = (Until(**{rule: aim}).horizon(p, level) for aim in (0.1, 0.01))
    for horizon in (rough, fine):
        assert horizon.shape == p.shape
        assert np.isfinite(horizon).all()
        assert (horizon > 0).all()
    assert (fine >= rough).all()
    assert fine[4] > 20 * rough[4]
    surer = Until(**{rule: 0.1}).horizon(p, (1 + level) / 2)
    assert (surer >= rough).all()


@pytest.mark.parametrize(
    ("plan", "value", "low", "high", "is_met"),
    [
        (Until(half_width=0.1), 0.3, 0.25, 0.44, True),
        (Until(half_width=0.1), 0.3, 0.2, 0.41, False),
        (Until(relative=0.5), 0.2, 0.1, 0.29, True),
        (Until(relative=0.5), 0.2, 0.1, 0.31, False),
        (Until(relative=0.5), -0.2, -0.29, -0.1, True),
        (Until(relative=0.5), 0.0, 0.0, 0.001, False),
    ],
)
def test_the_stopping_rule_and_the_share_done_agree(plan, value, low, high, is_met):
    assert plan.is_met(value, low, high) == is_met
    assert (plan.share_done(value, low, high) == 1.0) == is_met
    assert 0 <= plan.share_done(value, low, high) <= 1


def test_half_the_width_is_four_times_the_draws():
    assert Until(half_width=0.1).share_done(0.5, 0.3, 0.7) == pytest.approx(1 / 4)
