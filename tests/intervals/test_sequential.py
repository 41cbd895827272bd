"""The exact coverage of the stopping rule, by dynamic programming over all paths: no Monte-Carlo error."""

from collections.abc import Iterator

import numpy as np
import pytest
from scipy import stats

from jostle.intervals import anytime
from jostle.intervals.fixed import clopper_pearson
from jostle.sampling import Until


def every(step: int) -> Iterator[tuple[int, int]]:
    start = 0
    while True:
        yield start, start + step
        start += step


def exact_coverage(plan: Until, level: float, p: float, looks: Iterator[tuple[int, int]]) -> tuple[float, float]:
    """(P[the interval where the rule stops holds p], expected draws) if every draw is a success with probability p.

    ``alive[s]`` is the probability of having s successes and not having stopped yet.
    """
    alive, first = np.array([1.0]), 0
    covered = draws = stopped = 0.0
    for before, now in looks:
        step = now - before
        low, high = (int(end) for end in stats.binom.ppf([1e-12, 1 - 1e-12], step, p))
        low, high = max(low - 1, 0), min(high + 1, step)
        alive = np.convolve(alive, stats.binom.pmf(np.arange(low, high + 1), step, p))
        first += low
        successes = first + np.arange(len(alive))
        ends = anytime.stopped_proportion(successes, now, level, is_relative=plan.is_relative)
        stops = np.array([plan.is_met(s / now, a, b) for s, a, b in zip(successes, *ends, strict=True)])
        leaving = alive * stops
        covered += leaving[(ends[0] <= p) & (p <= ends[1])].sum()
        draws += now * leaving.sum()
        stopped += leaving.sum()
        alive = alive * ~stops
        left = np.flatnonzero(alive > 1e-14)
        if not len(left):
            return covered / stopped, draws / stopped
        alive, first = alive[left[0] : left[-1] + 1], first + left[0]
    raise AssertionError("looks are endless")


def least_coverage(plan: Until, level: float, proportions: np.ndarray, step: int | None = None) -> float:
    looks = [every(step) if step else plan.looks() for _ in proportions]
    return min(exact_coverage(plan, level, p, look)[0] for p, look in zip(proportions, looks, strict=True))


def needed(level: float) -> float:
    """What is left for the stopping rule after the confidence sequence beside it took its share."""
    return 1 - ((1 - level) - (1 - anytime.sequence_level(level)))


def test_the_level_is_split():
    assert anytime.sequence_level(0.95) == pytest.approx(0.995)
    assert needed(0.95) == pytest.approx(0.955)
    low, high = anytime.stopped_proportion(3, 100, 0.95)
    assert (low, high) == pytest.approx([float(end) for end in clopper_pearson(3, 100, 0.97)])
    low, high = anytime.stopped_proportion(3, 100, 0.95, is_relative=True)
    assert (low, high) == pytest.approx([float(end) for end in clopper_pearson(3, 100, 0.965)])


@pytest.mark.parametrize("half_width", [0.05, 0.1, 0.2])
def test_it_covers_at_wide_precision(half_width):
    proportions = np.geomspace(half_width / 10, 0.5, 40)
    assert least_coverage(Until(half_width=half_width), 0.95, proportions) >= needed(0.95)
    assert least_coverage(Until(half_width=half_width), 0.95, 1 - proportions) >= needed(0.95)


@pytest.mark.parametrize("relative", [0.3, 0.5])
def test_it_covers_at_a_low_relative_precision(relative):
    assert least_coverage(Until(relative=relative), 0.95, np.geomspace(0.01, 0.95, 60)) >= needed(0.95)


def test_the_plain_interval_would_not_cover():
    """Peeking without calibration falls short, so the tests above can fail."""
    proportions = np.geomspace(0.001, 0.5, 60)
    plan = Until(half_width=0.01)
    level = 1 - 0.05 / 0.6  # so that the interval looked at is Clopper-Pearson at 0.95
    assert least_coverage(plan, level, proportions) < 0.945


@pytest.mark.slow
@pytest.mark.parametrize("level", [0.8, 0.9, 0.95, 0.99])
@pytest.mark.parametrize("half_width", [0.002, 0.01, 0.05, 0.2])
def test_it_covers_at_every_half_width(level, half_width):
    largest = min(0.5, 30 * half_width)
    proportions = np.geomspace(half_width / 10, largest, 120)
    assert least_coverage(Until(half_width=half_width), level, proportions) >= needed(level)


@pytest.mark.slow
@pytest.mark.parametrize("level", [0.8, 0.9, 0.95, 0.99])
@pytest.mark.parametrize("relative", [0.1, 0.2, 0.3, 0.5])
def test_it_covers_at_every_relative_precision(level, relative):
    assert least_coverage(Until(relative=relative), level, np.geomspace(0.01, 0.95, 60)) >= needed(level)


@pytest.mark.slow
@pytest.mark.parametrize("level", [0.9, 0.95, 0.99])
@pytest.mark.parametrize(("half_width", "step"), [(0.02, 4), (0.05, 1), (0.1, 1)])
def test_it_covers_however_often_one_looks(level, half_width, step):
    assert least_coverage(Until(half_width=half_width), level, np.geomspace(half_width / 10, 0.5, 60), step) >= needed(
        level
    )


@pytest.mark.parametrize(("p", "half_width"), [(0.005, 0.002), (0.05, 0.01), (0.3, 0.05)])
def test_it_costs_little_more_than_a_fixed_sample(p, half_width):
    plan = Until(half_width=half_width)
    draws = exact_coverage(plan, 0.95, p, plan.looks())[1]
    fixed = stats.norm.ppf(0.975) ** 2 * p * (1 - p) / half_width**2
    assert draws < 1.5 * fixed
