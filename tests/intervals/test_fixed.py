import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.proportion import proportion_confint

from jostle.intervals import fixed


@pytest.mark.parametrize(("successes", "trials"), [(0, 10), (10, 10), (3, 10), (1, 1000), (250, 1000), (0, 1)])
@pytest.mark.parametrize("level", [0.8, 0.95, 0.999])
def test_clopper_pearson_agrees_with_scipy_and_statsmodels(successes, trials, level):
    low, high = fixed.clopper_pearson(successes, trials, level)
    expected = stats.binomtest(successes, trials).proportion_ci(level, method="exact")
    assert (float(low), float(high)) == pytest.approx((expected.low, expected.high), abs=1e-10)
    assert (float(low), float(high)) == pytest.approx(
        proportion_confint(successes, trials, 1 - level, "beta"), abs=1e-10
    )


@pytest.mark.parametrize(("p", "n"), [(0.01, 50), (0.3, 20), (0.5, 7)])
def test_clopper_pearson_covers_exactly_at_least_its_level(p, n):
    low, high = fixed.clopper_pearson(np.arange(n + 1), np.full(n + 1, n), 0.95)
    covered = (low <= p) & (p <= high)
    assert stats.binom.pmf(np.arange(n + 1), n, p)[covered].sum() >= 0.95


def test_bounded_mean_of_zeros_and_ones_is_clopper_pearson():
    low, high = fixed.clopper_pearson(7, 40, 0.95)
    assert fixed.bounded_mean([0, 1], [33, 7], 0.95) == pytest.approx((float(low), float(high)))
    low, high = fixed.bounded_mean([-1, 1], [33, 7], 0.95, bounds=(-1, 1))
    assert ((low + 1) / 2, (high + 1) / 2) == pytest.approx(fixed.bounded_mean([0, 1], [33, 7], 0.95))


def test_bounded_mean_approaches_students_t_for_many_values(stream):
    values = stream.uniforms(np.arange(4000), np.zeros(4000), np.zeros(4000), 1)[:, 0]
    low, high = fixed.bounded_mean(*fixed.histogram(values), 0.95)
    t_low, t_high = fixed.student(values.mean(), values.var(ddof=1), 4000, 0.95)
    assert low == pytest.approx(float(t_low), abs=0.003)
    assert high == pytest.approx(float(t_high), abs=0.003)
    assert low < values.mean() < high


def test_bounded_mean_is_deterministic_and_widens_with_the_level():
    values, counts = [0.0, 0.1, 0.7], [90, 5, 5]
    assert fixed.bounded_mean(values, counts, 0.95) == fixed.bounded_mean(values, counts, 0.95)
    wide, narrow = fixed.bounded_mean(values, counts, 0.99), fixed.bounded_mean(values, counts, 0.8)
    assert wide[0] < narrow[0] < narrow[1] < wide[1]


def test_histogram_counts_distinct_values():
    distinct, counts = fixed.histogram([0.5, 0.5, 0.0])
    assert (distinct.tolist(), counts.tolist()) == ([0.0, 0.5], [1.0, 2.0])


@pytest.mark.parametrize("scale", [1.0, 4e-4])
def test_many_values_are_grouped_without_losing_their_spread(scale, stream):
    values = scale * stream.uniforms(np.arange(3000), np.zeros(3000), np.zeros(3000), 1)[:, 0] ** 3
    low, high = fixed.bounded_mean(*fixed.histogram(values), 0.95)
    t_low, t_high = fixed.student(values.mean(), values.var(ddof=1), 3000, 0.95)
    reach = float(t_high - t_low) / 2
    assert low <= float(t_low) + 0.1 * reach
    assert high >= float(t_high) - 0.1 * reach
    assert high - low < 2.5 * reach + 2 * 5 / 3000  # the extra observation at a bound weighs about 1 / n


def test_student_agrees_with_scipy():
    low, high = fixed.student(2.0, 9.0, 16, 0.9)
    assert (float(low), float(high)) == pytest.approx(stats.t.interval(0.9, 15, loc=2.0, scale=3 / 4))
    low, high = fixed.student(2.0, 9.0, 1, 0.9)
    assert (float(low), float(high)) == (-np.inf, np.inf)
