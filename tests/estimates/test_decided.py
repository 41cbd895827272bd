"""Deciding which of two models is more sensitive, without measuring either."""

import itertools
import math

import numpy as np
import pytest
import torch
from scipy import special, stats

import jostle
from jostle import Until
from jostle.intervals.sign import log_evidence, signs

X = torch.zeros(2000, 8, dtype=torch.float64)
SETTINGS = {"tokens": "coordinates", "perturbation": "gaussian-noise:1"}


def flipping(rate, sign=1.0):
    """Flips in this share of the trials; of two with the same sign, the rarer flips only where the other does."""
    threshold = float(-special.ndtri(rate))
    return lambda x: 10 * (threshold - sign * x.sum(dim=1))


def compared(models, plan, **options):
    return jostle.compare(models, X, plan=plan, **SETTINGS, **options)


@pytest.mark.parametrize(("wins", "losses"), [(0, 0), (5, 1), (30, 12), (3, 40), (200, 150)])
def test_the_evidence_is_the_integral_of_its_definition(wins, losses):
    theta = np.linspace(0.5, 1, 200_001)
    densities = 2 * stats.binom.pmf(wins, wins + losses, theta) / stats.binom.pmf(wins, wins + losses, 0.5)
    expected = np.log(np.trapezoid(densities, theta))
    more, less = log_evidence(wins, losses)
    assert float(more) == pytest.approx(expected, abs=1e-4)
    assert log_evidence(losses, wins) == (pytest.approx(less), pytest.approx(more))


def test_the_evidence_is_a_martingale_for_a_fair_coin():
    for wins, losses in [(0, 0), (3, 1), (10, 14)]:
        now, up, down = (
            np.exp(log_evidence(*state)[0]) for state in ((wins, losses), (wins + 1, losses), (wins, losses + 1))
        )
        assert (up + down) / 2 == pytest.approx(float(now))
        assert 0.4 * up + 0.6 * down < now


def test_a_decision_takes_far_fewer_draws_than_two_measurements():
    """They differ by half: at most a quarter of the passes of measuring both to 10 %."""
    models = {"often": flipping(0.02), "seldom": flipping(0.01)}
    decided = [compared(models, Until(decided=True), seed=seed) for seed in range(3)]
    measured = compared(models, Until(relative=0.1))
    for found in decided:
        difference = found.difference("often", "seldom")
        assert found.stopped == "decided"
        assert difference.direction == 1
        assert difference.verdict == "often is more sensitive than seldom"
        assert found.difference("seldom", "often").verdict == "seldom is less sensitive than often"
        assert 0 <= difference.low <= 0.01 <= difference.high
        assert found["often"].low <= 0.02 <= found["often"].high
    assert np.mean([found["often"].passes for found in decided]) < measured["often"].passes / 4


def test_equal_models_are_shown_to_differ_by_less_than_what_matters():
    models = {"one": flipping(0.02), "other": flipping(0.02, sign=-1.0)}
    found = compared(models, Until(decided=True, at_least=0.01))
    difference = found.difference("one", "other")
    assert found.stopped == "decided"
    assert difference.direction == 0
    assert -0.01 < difference.low < 0 < difference.high < 0.01
    assert difference.verdict == "one and other differ by less than 0.01"
    ended = compared(models, Until(decided=True, max_passes=5000))
    assert ended.stopped == "max_passes"
    assert ended.difference("one", "other").verdict.startswith("no significant difference")


def test_every_pair_is_decided_and_a_decision_lasts():
    models = {"a": flipping(0.2), "b": flipping(0.1), "c": flipping(0.03)}
    found = compared(models, Until(decided=True))
    for first, second in itertools.combinations("abc", 2):
        assert found.difference(first, second).direction == 1
    assert jostle.Comparison.from_dict(found.to_dict()).difference("a", "c").direction == 1
    assert "every difference is decided" in str(found)


@pytest.mark.parametrize("batch_size", [3, 500])
def test_the_batch_size_does_not_matter(batch_size):
    models = {"often": flipping(0.2), "seldom": flipping(0.1)}
    one, other = (compared(models, Until(decided=True), batch_size=size) for size in (None, batch_size))
    assert one["often"].trials == other["often"].trials
    assert one.difference("often", "seldom").high == other.difference("often", "seldom").high


def test_sweeps_decide_at_every_strength_with_the_level_shared():
    models = {"often": flipping(0.2), "seldom": flipping(0.05)}
    found = jostle.sweep(models, X, tokens="coordinates", stds=[1, 2], plan=Until(decided=True))
    assert found.crossings() == ["often against seldom: more sensitive at std 1 and 2."]
    assert all(found.at[std].stopped == "decided" for std in found.strengths)
    assert found.differences()[1.0].interval.level == pytest.approx(0.975)


def test_other_responses_are_decided_by_their_sequence():
    models = {"steep": lambda x: 2 * x.sum(dim=1), "flat": lambda x: x.sum(dim=1)}
    found = jostle.compare(models, X, response="logit-change", plan=Until(decided=True), **SETTINGS)
    assert found.stopped == "decided"
    assert found.difference("steep", "flat").direction == 1


def test_wrong_use_is_one_clear_line():
    with pytest.raises(jostle.UsageError, match="give at least two"):
        jostle.measure(flipping(0.1), X, plan=Until(decided=True), **SETTINGS)
    with pytest.raises(jostle.UsageError, match="exactly one of half_width=, relative= and decided=True"):
        Until(decided=True, relative=0.1)
    with pytest.raises(jostle.UsageError, match="needs decided=True"):
        Until(relative=0.1, at_least=0.1)
    with pytest.raises(jostle.UsageError, match="at_least"):
        Until(decided=True, at_least=-1)
    assert Until(decided=True, at_least=0.001).describe() == "until:decided=true,at_least=0.001,max_passes=1000000"


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("shares", [(0.01, 0.01), (0.05, 0.05), (0.3, 0.3), (0.02, 0.015), (0.01, 0.005)])
def test_wrong_signs_are_as_rare_as_stated(shares, seed):
    """4,000 runs of up to 100,000 draws each, looked at as ``Until`` does."""
    generator, runs = np.random.default_rng(seed), 4000
    wins, losses, decided = np.zeros(runs), np.zeros(runs), np.zeros(runs, dtype=np.int64)
    for start, stop in Until(decided=True).looks():
        drawn = generator.multinomial(stop - start, [*shares, 1 - sum(shares)], size=runs)
        wins, losses = wins + drawn[:, 0], losses + drawn[:, 1]
        decided = np.where(decided == 0, signs(wins, losses, 0.95), decided)
        if stop > 100_000:
            break
    wrong = (decided == -1).mean() if shares[0] > shares[1] else (decided != 0).mean()
    allowed = 0.025 if shares[0] > shares[1] else 0.05
    assert wrong <= allowed + 3 * math.sqrt(allowed / runs), wrong
    if shares[0] > shares[1]:
        assert (decided == 1).mean() > 0.9


@pytest.mark.slow
def test_the_interval_covers_where_the_sign_is_decided():
    """2,000 comparisons of two models from counts, each with the interval that it reports."""
    from jostle.intervals import anytime

    generator, runs, hits = np.random.default_rng(3), 2000, 0
    shares = np.array([0.01, 0.97, 0.02])  # of -1, 0 and 1
    for _ in range(runs):
        counts = np.zeros(3)
        for start, stop in Until(decided=True).looks():
            counts += generator.multinomial(stop - start, shares)
            sign = int(signs(counts[2], counts[0], 0.95))
            if sign:
                break
        low, high = anytime.bounded([-1, 0, 1], counts, 0.975, (-1.0, 1.0))
        low, high = (max(low, 0.0), high) if sign > 0 else (low, min(high, 0.0))
        hits += low <= 0.01 <= high
    assert hits / runs >= 0.95 - 3 * math.sqrt(0.05 * 0.95 / runs), hits / runs
