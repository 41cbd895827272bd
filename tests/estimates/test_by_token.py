"""Averages in which all tokens weigh the same: exact values, and intervals that cover."""

import numpy as np
import pytest

from jostle.estimates.request import Request
from jostle.estimates.tallies import BINARY, REAL, TERNARY, GridTally
from jostle.intervals import fixed
from jostle.sampling import Grid, Trials
from jostle.tokens import Coordinates, Inputs


def tallied(cells, support=BINARY, average="micro", draws=1, is_deterministic=False):
    """A grid tally of inputs with different numbers of tokens: ``cells[i]`` holds (tokens, draws) changes."""
    inputs = Inputs(np.zeros((len(cells), max(len(part) for part in cells))), Coordinates())
    perturbation = "sign-flip" if is_deterministic else "gaussian-noise:1"
    request = Request.build(tokens="coordinates", perturbation=perturbation, average=average)
    tally = GridTally(request, Grid(draws), inputs, support, 0.95)
    owner = np.repeat(np.arange(len(cells)), [len(part) for part in cells])
    token = np.concatenate([np.arange(len(part)) for part in cells])
    trials = Trials(np.repeat(owner, draws), np.repeat(token, draws), np.tile(np.arange(draws), len(owner)))
    tally.add(trials, np.concatenate([np.ravel(part) for part in cells]).astype(float))
    return tally.estimate()


def test_tokens_weigh_the_same():
    cells = [np.ones((1, 1)), np.zeros((9, 1)), np.array([[1.0], [0.0]])]
    assert tallied(cells).value == pytest.approx(2 / 12)
    assert tallied(cells, average="macro").value == pytest.approx((1 + 0 + 0.5) / 3)
    exact = tallied(cells, is_deterministic=True).dataset
    assert (exact.low, exact.high) == pytest.approx((2 / 12, 2 / 12))
    binomial = tallied(cells).dataset
    assert (binomial.low, binomial.high) == pytest.approx(
        [float(end) for end in fixed.clopper_pearson(2, 12, 0.95)], rel=1e-12
    )
    assert "Clopper-Pearson" in binomial.method
    assert tallied(cells).population.method == "ratio over inputs, Gaffke's bound"


def test_equal_sizes_make_no_difference():
    means = np.random.Generator(np.random.PCG64(0)).beta(1, 4, size=60)
    sizes = np.full(60, 7.0)
    expected = fixed.bounded_mean(*fixed.histogram(means), 0.95)
    assert fixed.bounded_ratio(means, sizes, 0.95, (0.0, 1.0)) == pytest.approx(expected, abs=2e-3)
    mean, variance = means.mean(), means.var(ddof=1)
    student = [float(end) for end in fixed.student(mean, variance, 60, 0.95)]
    assert fixed.student_ratio(means, sizes, 0.95) == pytest.approx(student)
    cells = list(np.random.Generator(np.random.PCG64(1)).normal(size=(40, 5, 3)))
    micro, macro = (tallied(cells, REAL, average, draws=3) for average in ("micro", "macro"))
    assert micro.value == pytest.approx(macro.value)
    assert (micro.dataset.low, micro.dataset.high) == pytest.approx((macro.dataset.low, macro.dataset.high))


def test_no_flip_at_all_is_no_certainty():
    low, high = fixed.bounded_ratio(np.zeros(50), np.arange(1.0, 51.0), 0.95, (0.0, 1.0))
    assert low == 0.0
    assert 0.02 < high < 0.2
    low, high = fixed.bounded_ratio(np.zeros(50), np.arange(1.0, 51.0), 0.95, (-1.0, 1.0))
    assert low == pytest.approx(-high, abs=0.02)


def drawn(generator, count):
    """Inputs whose flips come together, more of them in long inputs: means and sizes."""
    sizes = np.clip(np.round(np.exp(generator.normal(3.0, 0.5, count))), 2, 80)
    chances = generator.beta(0.3, 3.0, count) * np.minimum(1.0, sizes / 30)
    return generator.binomial(sizes.astype(int), chances) / sizes, sizes


@pytest.mark.slow
@pytest.mark.parametrize("count", [25, 100])
def test_ratios_of_flips_in_a_population_are_covered(count):
    generator = np.random.Generator(np.random.PCG64(2))
    exact, runs, covered = fixed.weighted_mean(*drawn(generator, 1_000_000)), 300, 0
    for _ in range(runs):
        low, high = fixed.bounded_ratio(*drawn(generator, count), 0.95, (0.0, 1.0))
        covered += low <= exact <= high
    assert covered / runs > 0.95 - 4 * np.sqrt(0.95 * 0.05 / runs)


def test_ratios_of_real_changes_in_a_population_are_covered():
    generator, runs, covered = np.random.Generator(np.random.PCG64(4)), 1000, 0
    for _ in range(runs):
        sizes = generator.integers(1, 20, size=60).astype(np.float64)
        low, high = fixed.student_ratio(sizes / 10 + generator.normal(size=60), sizes, 0.95)
        covered += low <= 13 / 10 <= high  # E[size^2] / E[size] = 39 / 3 for sizes 1 .. 19
    assert abs(covered / runs - 0.95) < 4 * np.sqrt(0.95 * 0.05 / runs)


@pytest.mark.slow
@pytest.mark.parametrize("support", [BINARY, TERNARY, REAL])
def test_the_mean_over_the_tokens_given_is_covered(support):
    generator = np.random.Generator(np.random.PCG64(3))
    chances = [generator.beta(0.3, 3.0, (size, 1)) for size in generator.integers(1, 30, size=25)]
    runs, inside, draws = 100 if support == TERNARY else 300, 0, 3
    exact = np.concatenate(chances).mean() * (0.0 if support == TERNARY else 1.0)
    for _ in range(runs):
        cells = [(generator.random((len(part), draws)) < part).astype(float) for part in chances]
        if support == TERNARY:
            cells = [part - (generator.random((len(p), draws)) < p) for part, p in zip(cells, chances, strict=True)]
        inside += exact in tallied(cells, support, draws=draws).dataset
    assert inside / runs > 0.95 - 4 * np.sqrt(0.95 * 0.05 / runs)
