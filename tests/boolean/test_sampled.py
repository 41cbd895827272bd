"""The sampled analysis: its intervals hold the exact values as often as they say, and it costs what it says."""

import numpy as np
import pytest
import torch

from jostle.base.errors import UsageError
from jostle.boolean import SampledAnalysis, analyse, sampled
from jostle.boolean.sampled import uniform_points


def majority(x):
    return np.where(x.sum(axis=1) > 0, 1.0, -1.0)


def real(x):
    return x[:, 0] * x[:, 1] + 0.5 * x[:, 2] - 0.1 * x.sum(axis=1)


@pytest.mark.parametrize("f", [majority, real])
def test_with_every_quantity_near_the_exact_one(f):
    exact = analyse(f, 11)
    b = analyse(f, 11, method="sampled", samples=4000)
    assert isinstance(b, SampledAnalysis)
    assert b.is_boolean == exact.is_boolean
    for estimate, value in (
        (b.mean, exact.mean),
        (b.sensitivity, exact.sensitivity),
        (b.total_sensitivity, exact.total_sensitivity),
        (b.coefficient([0]), exact.coefficient([0])),
        (b.coefficient([1, 0]), exact.coefficient([0, 1])),
        (b.noise_stability(0.6), exact.noise_stability(0.6)),
        (b.noise_stability(-0.6, pairs=500), exact.noise_stability(-0.6)),
    ):
        reach = 2.1 * (estimate.high - estimate.low) / 2 + 1e-12  # four standard errors
        assert estimate.low <= estimate.value <= estimate.high
        assert abs(estimate.value - value) <= reach
    values, low, high = b.influences
    assert np.all(np.abs(values - exact.influences) <= 2.1 * (high - low) / 2 + 1e-12)
    assert b.max_sensitivity_seen <= exact.max_sensitivity + 1e-9


def test_the_profile_is_an_estimate_of_shares():
    exact, b = analyse(majority, 11), analyse(majority, 11, method="sampled", samples=3000)
    shares, low, high = b.sensitivity_profile
    assert shares.sum() == pytest.approx(1)
    assert np.all(np.abs(shares - exact.sensitivity_profile / 2**11) <= 2.1 * (high - low) / 2)
    r = b.disagreement(0.9)
    assert r.low < r.value < r.high
    assert r.value == pytest.approx(exact.disagreement(0.9), abs=0.03)
    with pytest.raises(UsageError, match="output='sign'"):
        analyse(real, 30).sensitivity_profile  # noqa: B018


def test_the_known_answers_of_large_cubes():
    parity = analyse(lambda x: x.prod(axis=1), 60, samples=100)
    assert (parity.sensitivity.value, parity.sensitivity.high, parity.max_sensitivity_seen) == (1.0, 1.0, 60)
    assert parity.sensitivity.low > 0.95
    dictator = analyse(lambda x: x[:, 7], 200, samples=50)
    assert dictator.total_sensitivity.value == pytest.approx(1)
    assert dictator.influences[0].argmax() == 7
    mean = analyse(lambda x: x.mean(axis=1), 40, samples=50)
    assert mean.total_sensitivity.value == pytest.approx(1 / 40, rel=1e-12)
    assert "estimated from 50 random inputs" in str(mean)


def test_a_sample_of_a_constant_does_not_prove_that_it_is_one():
    b = analyse(lambda x: np.ones(len(x)), 40, samples=50)
    assert (b.mean.value, b.mean.high, b.sensitivity.value, b.sensitivity.low) == (1, 1, 0, 0)
    assert 0.8 < b.mean.low < 0.9  # 2 * 0.05^(1/50) - 1 at one side's 0.025
    assert b.sensitivity.high > 0.01


def test_the_cost_is_a_point_and_its_neighbours():
    b = analyse(majority, 31, samples=64)
    assert b.samples == 64
    assert 64 * 32 <= b.passes <= 64 * 33 + 64  # the points twice, and the check that f answers alike twice
    assert b.to_dict()["is_exact"] is False
    with pytest.raises(UsageError, match="pairs=1"):
        b.noise_stability(0.5, pairs=1)


def test_modules_are_in_eval_mode_throughout():
    model = torch.nn.Sequential(torch.nn.Linear(30, 8), torch.nn.Dropout(0.9), torch.nn.Linear(8, 1)).train()
    first, second = (analyse(model, 30, output="sign", samples=40) for _ in range(2))
    assert first.pointwise.tolist() == second.pointwise.tolist()
    assert model.training


def test_points_depend_on_the_seed_and_their_number_alone():
    assert np.array_equal(uniform_points(30, 10, seed=1), uniform_points(30, 20, seed=1)[:10])
    assert not np.array_equal(uniform_points(30, 10, seed=1), uniform_points(30, 10, seed=2))
    assert set(np.unique(uniform_points(30, 100, seed=0))) == {-1.0, 1.0}


@pytest.mark.slow
def test_the_intervals_cover():
    """1,000 samples of 100 points: each interval misses at most its share of times, within 4 standard errors."""
    n, runs, level = 9, 1000, 0.9
    weights = np.array([9, 7, 5, 4, 3, 3, 2, 2, 1.0])

    def f(x):
        return np.where(x @ weights > 6.5, 1.0, -1.0)

    exact, misses = analyse(f, n), np.zeros(5)
    for seed in range(runs):
        b = analyse(f, n, method="sampled", samples=100, level=level, seed=seed)
        q = b.disagreement(0.8)
        pairs = [
            (b.sensitivity, exact.sensitivity), (b.mean, exact.mean), (q, exact.disagreement(0.8)),
            (b.coefficient([0]), exact.coefficient([0])),
        ]  # fmt: skip
        misses[:4] += [not estimate.low <= value <= estimate.high for estimate, value in pairs]
        misses[4] += not b.influences[1][0] <= exact.influences[0] <= b.influences[2][0]
    allowed = (1 - level) + 4 * np.sqrt(level * (1 - level) / runs)
    assert (misses / runs <= allowed).all(), misses / runs
    assert (misses / runs > 0.01).any()  # a share of misses that says the test could fail


def test_zeros_and_ones_are_an_error_here_too():
    with pytest.raises(UsageError, match="values 0 and 1"):
        analyse(lambda x: (x[:, 0] > 0).astype(int), 30, samples=50)
    assert analyse(lambda x: (x[:, 0] > 0) * 1.0, 30, samples=50, output="values").is_boolean is False


def test_a_function_may_write_into_its_argument():
    def careless(x):
        x[x < 0] = 0
        return np.where(x.sum(axis=1) > x.shape[1] / 2, 1.0, -1.0)

    expected = analyse(majority, 31, samples=100)
    assert analyse(careless, 31, samples=100).pointwise.tolist() == expected.pointwise.tolist()
    assert analyse(careless, 9).table.tolist() == analyse(majority, 9).table.tolist()


def test_a_value_seen_only_at_a_neighbour_makes_a_function_real():
    def rarely_large(x):
        return np.where(x[:, :4].sum(axis=1) == 4, 41.0, 1.0)

    exact = analyse(rarely_large, 6)
    seeds = [seed for seed in range(30) if (uniform_points(30, 8, seed)[:, :4].sum(axis=1) < 4).all()]
    found = [analyse(rarely_large, 30, samples=8, seed=seed) for seed in seeds]
    assert any((b.pointwise > 0).any() for b in found)
    for b in found:
        assert b.is_boolean == (not (b.pointwise > 0).any())
        if not b.is_boolean:
            assert b.pointwise.max() == exact.pointwise.min() + 400 - exact.pointwise.min()


def test_no_spread_in_a_sample_proves_nothing():
    b = analyse(lambda x: 0.5 * x[:, 0] + 100.0 * (x[:, 1:13].sum(axis=1) == 12), 30, samples=50)
    if np.ptp(b.pointwise) == 0:
        assert (b.total_sensitivity.low, b.total_sensitivity.high) == (0, np.inf)
        assert b.influences[2][1] == np.inf
    assert analyse(lambda x: 1e-5 * x[:, 0], 30, samples=20).max_sensitivity_seen == pytest.approx(1e-10)
    assert analyse(lambda x: 0 * x[:, 0] - 0.5, 30, samples=20).mean.high == np.inf


def test_memory_is_bounded_by_what_is_sampled(monkeypatch):
    with pytest.raises(UsageError, match="too many to hold"):
        analyse(majority, 10**6)
    assert analyse(majority, 3, samples=10**9).table.tolist() == analyse(majority, 3).table.tolist()  # none is drawn
    sizes = []

    def watched(x):
        sizes.append(len(x))
        return majority(x)

    expected = analyse(majority, 31, samples=100).pointwise
    monkeypatch.setattr(sampled, "_BITS_AT_ONCE", 31 * 64)
    assert analyse(watched, 31, samples=100).pointwise.tolist() == expected.tolist()
    assert max(sizes) == 64
