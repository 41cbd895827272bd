"""AUROC against its definition, and how often its intervals hold the truth."""

import math

import numpy as np
import pytest
from scipy import special

from jostle.intervals.ranks import auroc, auroc_difference, auroc_interval


def by_pairs(scores, is_positive):
    above, below = scores[is_positive][:, None], scores[~is_positive][None, :]
    return float(((above > below) + 0.5 * (above == below)).mean())


@pytest.mark.parametrize("levels", [3, 1000])
def test_it_is_the_share_of_pairs_in_order(levels):
    generator = np.random.default_rng(0)
    scores, is_positive = generator.integers(levels, size=80) / levels, generator.random(80) < 0.3
    assert auroc(scores, is_positive) == pytest.approx(by_pairs(scores, is_positive), abs=1e-12)
    assert auroc(-scores, is_positive) == pytest.approx(1 - by_pairs(scores, is_positive), abs=1e-12)
    assert math.isnan(auroc(scores, np.ones(80, dtype=bool)))


def test_the_interval_solves_its_equation_and_never_collapses():
    low, high = auroc_interval(0.8, 20, 80, 0.95)
    for theta in (low, high):
        spread = 1 + 49 * (1 - theta) / (2 - theta) + 49 * theta / (1 + theta)
        expected = special.ndtri(0.975) ** 2 * theta * (1 - theta) * spread / 1600
        assert (theta - 0.8) ** 2 == pytest.approx(expected, rel=1e-9)
    assert 0.7 < auroc_interval(1.0, 10, 30, 0.95)[0] < 0.95
    assert auroc_interval(1.0, 10, 30, 0.95)[1] == 1.0
    assert auroc_interval(0.0, 10, 30, 0.95)[0] == 0.0
    assert auroc_interval(float("nan"), 0, 30, 0.95) == (0.0, 1.0)


def simulate(shift, sizes, rounding, count, seed=0):
    """Scores of normal groups; with rounding they have ties, as flip rates from few draws do."""
    generator = np.random.default_rng(seed)
    is_positive = np.arange(sum(sizes)) < sizes[0]
    scores = generator.standard_normal((count, sum(sizes))) + shift * is_positive
    return (np.round(scores * rounding) if rounding else scores), is_positive


@pytest.mark.parametrize("shift", [0.0, 1.0, 2.0])
@pytest.mark.parametrize("sizes", [(15, 60), (40, 400)])
@pytest.mark.parametrize("rounding", [0, 1])
def test_intervals_cover(shift, sizes, rounding):
    """At least 93 % of 95 % intervals hold the AUROC of the population, known from a large sample; 600 rounds."""
    large, groups = simulate(shift, (20000, 20000), rounding, 1, seed=9)
    truth = auroc(large[0], groups)
    scores, is_positive = simulate(shift, sizes, rounding, 600)
    held = 0
    for one in scores:
        low, high = auroc_interval(auroc(one, is_positive), *sizes, 0.95)
        held += low <= truth <= high
    assert held / 600 >= 0.93


def test_differences_are_paired_and_cover():
    """Two scores that share most of their noise: their difference is known better than either."""
    generator, held, widths = np.random.default_rng(1), 0, []
    is_positive = np.arange(200) < 60
    large = np.arange(40000) < 20000
    truth = None
    for count in (40000, *[200] * 400):
        groups = large if count == 40000 else is_positive
        shared = generator.standard_normal(count)
        first = groups * 1.5 + shared + 0.3 * generator.standard_normal(count)
        second = groups * 1.0 + shared + 0.3 * generator.standard_normal(count)
        value, low, high = auroc_difference(first, second, groups, 0.95)
        if truth is None:
            truth = value
            assert value == pytest.approx(auroc(first, groups) - auroc(second, groups), abs=1e-12)
            continue
        held += low <= truth <= high
        widths.append(high - low)
    assert held / 400 >= 0.92
    single = np.diff(auroc_interval(0.8, 60, 140, 0.95))[0]
    assert np.mean(widths) < 0.7 * single


def test_a_group_of_one_says_nothing_about_a_difference():
    value, low, high = auroc_difference([0.1, 0.9, 0.2], [0.3, 0.1, 0.2], [False, True, False], 0.95)
    assert (value, low, high) == (1.0, -1.0, 1.0)
