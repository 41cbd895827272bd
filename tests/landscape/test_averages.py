"""Intervals over draws cover what they claim to cover."""

import math

import numpy as np
import pytest
import torch
from scipy import stats

from jostle.landscape import sharpness
from jostle.landscape.averages import real_mean, share_mean
from tests.landscape.toys import linear

LEVEL = 0.9


def shortfall(hits: int, trials: int) -> float:
    """By how many standard errors the coverage is below its level."""
    return (LEVEL - hits / trials) / math.sqrt(LEVEL * (1 - LEVEL) / trials)


def test_intervals_of_a_measurement_cover():
    """ShOp and ShPred of a linear model are known; inputs share the draws, so they are far from independent."""
    x = torch.randn(30, 4, generator=torch.Generator().manual_seed(0))
    model = linear([[1.0, -1.0, 0.5, 2.0]])
    sizes = x.norm(dim=1)
    output = float(0.5 * math.sqrt(2 / math.pi) * sizes.mean())
    prediction = float((0.5 * torch.erfc((model(x)[:, 0].detach() / (0.5 * sizes)).abs() / math.sqrt(2))).mean())
    runs = [sharpness(model, x, std=0.5, draws=8, seed=seed, level=LEVEL) for seed in range(120)]
    assert shortfall(sum(output in run.output.interval for run in runs), 120) < 4
    assert shortfall(sum(prediction in run.prediction.interval for run in runs), 120) < 4
    # As many independent numbers as draws times inputs would be too sure of themselves by far.
    naive = [run.output.per_draw.std(ddof=1) / math.sqrt(8 * 30) * 1.645 for run in runs]
    wrong = sum(abs(run.output.value - output) <= reach for run, reach in zip(runs, naive, strict=True))
    assert shortfall(wrong, 120) > 12


@pytest.mark.slow
@pytest.mark.parametrize("draws", [2, 5, 20])
@pytest.mark.parametrize("concentration", [1.0, 50.0])
@pytest.mark.parametrize("share", [0.001, 0.02, 0.5])
def test_shares_cover(share, concentration, draws):
    """Shares of 200 inputs that move together: beta-binomial, from strongly to hardly clustered."""
    generator = np.random.Generator(np.random.PCG64(7))
    a, b = share * concentration, (1 - share) * concentration
    shares = generator.binomial(200, generator.beta(a, b, size=(600, draws))) / 200
    hits = sum(share in share_mean(row, LEVEL).interval for row in shares)
    # Student's t is asymptotic. Two draws of all-or-nothing shares cover least: 0.853 in 2,000 repetitions.
    least = 0.85 if (share, concentration, draws) == (0.5, 1.0, 2) else LEVEL
    assert hits / 600 > least - 4 * math.sqrt(least * (1 - least) / 600)


def test_student():
    values = np.array([1.0, 4.0, 2.0, 3.5])
    mean = real_mean(values, 0.95)
    low, high = stats.t.interval(0.95, 3, loc=values.mean(), scale=stats.sem(values))
    assert (mean.low, mean.high) == (pytest.approx(low), pytest.approx(high))
    assert real_mean(values - 2, 0.95, least=0.0).low == 0
    assert mean.interval.target == "dataset"


def test_equal_draws_say_nothing_about_their_spread():
    assert (real_mean(np.ones(4), 0.95).low, real_mean(np.ones(4), 0.95).high) == (-math.inf, math.inf)
    exact = real_mean(np.ones(4), 0.95, is_exact=True)
    assert (exact.low, exact.high) == (1, 1)
    assert real_mean(np.zeros(4), 0.95).to_dict()["high"] is None


def test_shares_stay_between_0_and_1():
    wide = share_mean(np.array([0.01, 0.6, 0.99]), 0.95)
    assert (wide.low, wide.high) == (0, 1)
    assert wide.interval.method == "Student's t over 3 draws, asymptotic"
    rare = share_mean(np.array([0.0, 0.0, 0.01]), 0.95)
    assert rare.interval.method == "Gaffke's bound over 3 draws"
    assert 0 <= rare.low < rare.value < 0.6 < rare.high < 1
    assert share_mean(np.full(3, 0.5), 0.95).interval.method == "Gaffke's bound over 3 draws"
    assert share_mean(np.zeros(5), 0.95).high == pytest.approx(1 - 0.025**0.2)
