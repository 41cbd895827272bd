"""What every interval promises, at random counts and levels: no number is pinned here."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jostle.intervals import anytime, fixed
from jostle.sampling import Until
from tests.properties.checked import MODEST

SEARCH = 1e-5  # ends that are searched for on a grid are right to about this, in units of the range
LEVELS = st.floats(0.5, 0.999)
COUNTS = st.integers(1, 3000).flatmap(lambda trials: st.tuples(st.integers(0, trials), st.just(trials)))
TERNARY = st.tuples(*[st.integers(0, 400)] * 3).filter(any)
PLANS = st.sampled_from([Until(half_width=0.01), Until(half_width=0.2)])


def clopper_pearson(successes, trials, level):
    low, high = fixed.clopper_pearson(successes, trials, level)
    return float(low), float(high)


def bernoulli(plan):
    return lambda successes, trials, level: anytime.bernoulli(
        successes, trials, level, lambda p: plan.horizon(p, level)
    )


def bounded(counts, level):
    return anytime.bounded([-1, 0, 1], counts, level, (-1.0, 1.0))


def check_proportion(interval, successes, trials, levels, tolerance):
    """Holds the estimate, lies in [0, 1], grows with the level, is mirrored when 0 and 1 are swapped."""
    less, more = sorted(levels)
    low, high = interval(successes, trials, less)
    assert 0 <= low <= successes / trials <= high <= 1
    assert low == 0 or successes > 0
    assert high == 1 or successes < trials
    wide_low, wide_high = interval(successes, trials, more)
    assert wide_low <= low + tolerance
    assert wide_high >= high - tolerance
    mirrored = interval(trials - successes, trials, less)
    assert mirrored == pytest.approx((1 - high, 1 - low), abs=max(tolerance, 1e-12))


@MODEST
@given(COUNTS, st.tuples(LEVELS, LEVELS))
def test_clopper_pearson(counts, levels):
    check_proportion(clopper_pearson, *counts, levels, tolerance=1e-12)


@MODEST
@given(COUNTS, LEVELS, PLANS)
def test_bernoulli(counts, level, plan):
    check_proportion(bernoulli(plan), *counts, (level, level), tolerance=SEARCH)


@MODEST
@given(COUNTS, st.tuples(LEVELS, LEVELS))
def test_bernoulli_with_one_horizon_grows_with_the_level(counts, levels):
    def interval(successes, trials, level):
        return anytime.bernoulli(successes, trials, level, lambda p: np.full_like(p, 1000.0))

    (low, high), (wide_low, wide_high) = (interval(*counts, level) for level in sorted(levels))
    assert wide_low <= low + SEARCH
    assert wide_high >= high - SEARCH


@MODEST
@given(st.integers(1, 3000), LEVELS, PLANS)
def test_no_valid_interval_is_narrower_when_nothing_was_seen(trials, level, plan):
    """If n failures ruled p out, that error would have probability (1 - p)^n <= 1 - level: p cannot be smaller."""
    least = 1 - (1 - level) ** (1 / trials)
    assert bernoulli(plan)(0, trials, level)[1] >= least - 1e-12
    assert clopper_pearson(0, trials, level)[1] >= least


@MODEST
@given(TERNARY, st.tuples(LEVELS, LEVELS))
def test_bounded(counts, levels):
    less, more = sorted(levels)
    mean = (counts[2] - counts[0]) / sum(counts)
    low, high = bounded(counts, less)
    assert -1 <= low <= mean + 1e-12
    assert mean - 1e-12 <= high <= 1
    wide_low, wide_high = bounded(counts, more)
    assert wide_low <= low + 2 * SEARCH
    assert wide_high >= high - 2 * SEARCH
    assert bounded(counts[::-1], less) == pytest.approx((-high, -low), abs=1e-3)


@MODEST
@given(
    st.dictionaries(st.floats(0, 1), st.integers(1, 50), min_size=1, max_size=6),
    st.tuples(st.floats(0.8, 0.999), LEVELS),
)
def test_bounded_mean(histogram, levels):
    values, counts = list(histogram), list(histogram.values())
    less, more = sorted(max(level, 0.8) for level in levels)
    mean = np.dot(values, counts) / sum(counts)
    low, high = fixed.bounded_mean(values, counts, less)
    assert 0 <= low <= mean + 1e-12
    assert mean - 1e-12 <= high <= 1
    wide_low, wide_high = fixed.bounded_mean(values, counts, more)
    assert wide_low <= low + 1e-9
    assert wide_high >= high - 1e-9


@MODEST
@given(st.lists(st.floats(0, 1), min_size=1, max_size=700))
def test_a_histogram_keeps_count_mean_and_range(values):
    distinct, counts = fixed.histogram(values)
    assert counts.sum() == len(values)
    assert distinct @ counts == pytest.approx(sum(values), abs=1e-9)
    assert min(values) - 1e-12 <= distinct.min()
    assert distinct.max() <= max(values) + 1e-12
