import math

import numpy as np
import pytest
from scipy import stats

from jostle.base.errors import UsageError
from jostle.intervals.seeds import (
    PRIOR,
    Spread,
    count_needed,
    difference_of_means,
    fitted_spread,
    guarded_reach,
    moderated_reach,
    welch_reach,
)
from jostle.studies.evidence import exponential, log_ratio, over_seeds
from jostle.studies.verdict import Verdict, is_smaller, is_within_factor

FIRST, SECOND = {0: 0.010, 1: 0.013, 2: 0.011}, {0: 0.05, 1: 0.06, 5: 0.04}


def by_hand(first, second, level, prior):
    """The wider interval, with scipy's t and nothing of jostle."""
    logs = [np.log(list(side.values())) for side in (first, second)]
    (n, m), (v, w) = map(len, logs), (side.var(ddof=1) for side in logs)
    value, t = (
        logs[0].mean() - logs[1].mean(),
        stats.t((v / n + w / m) ** 2 / (v**2 / n**2 / (n - 1) + w**2 / m**2 / (m - 1))),
    )
    satterthwaite = t.args[0]
    half_way = (satterthwaite + min(n, m) - 1) / 2
    welch = stats.t(half_way).ppf((1 + level) / 2) * math.sqrt(v / n + w / m)
    d, s = prior.freedom, prior.std
    posts = [(d * s**2 + (k - 1) * u) / (d + k - 1) for k, u in ((n, v), (m, w))]
    shrunk = stats.t(d + min(n, m) - 1).ppf((1 + level) / 2) * math.sqrt(posts[0] / n + posts[1] / m)
    return value - max(welch, shrunk), value + max(welch, shrunk)


@pytest.mark.parametrize("level", [0.9, 0.95, 0.99])
@pytest.mark.parametrize("second", [SECOND, {**SECOND, 6: 0.2}, {seed: 0.3 + 1e-6 * seed for seed in range(4)}])
def test_the_ratio_is_that_of_the_formula(level, second):
    assert log_ratio(FIRST, second).ends(level) == pytest.approx(by_hand(FIRST, second, level, PRIOR))
    assert log_ratio(FIRST, second).value == pytest.approx(
        np.log(list(FIRST.values())).mean() - np.log(list(second.values())).mean()
    )


def test_the_wider_of_the_two_counts():
    calm, wild = [1e-6, 1e-6], [9.0, 9.0]
    assert guarded_reach(calm, 3, 0.95) == moderated_reach(calm, [3, 3], 0.95, PRIOR) > welch_reach(calm, [3, 3], 0.95)
    assert guarded_reach(wild, 3, 0.95) == welch_reach(wild, [3, 3], 0.95) > moderated_reach(wild, [3, 3], 0.95, PRIOR)


def test_the_prior_is_found_again():
    draw, true = np.random.default_rng(5), Spread(std=0.2, freedom=4.0)
    sigmas = true.std**2 * true.freedom / draw.chisquare(true.freedom, 40_000)
    counts = draw.integers(3, 8, len(sigmas))
    found = fitted_spread((sigmas * draw.chisquare(counts - 1) / (counts - 1)).tolist(), counts.tolist())
    assert found.std == pytest.approx(true.std, rel=0.03)
    assert found.freedom == pytest.approx(true.freedom, rel=0.1)
    same = draw.chisquare(2, 200) / 2
    assert fitted_spread((same * 0 + 0.04).tolist(), [3] * 200) == Spread(pytest.approx(0.2, rel=0.4), math.inf)


def test_findings_show_the_ratio_and_its_factor():
    finding = is_smaller("a / b", FIRST, SECOND, factor=0.5).judge(0.95)
    low, high = by_hand(FIRST, SECOND, 0.95, PRIOR)
    assert (finding.low, finding.high) == pytest.approx((math.exp(low), math.exp(high)))
    assert (finding.verdict, finding.expected) == (Verdict.AGREES, "< 0.5")
    assert is_smaller("b / a", SECOND, FIRST).judge(0.95).verdict == Verdict.DISAGREES
    assert is_smaller("a / b", FIRST, SECOND, factor=0.2).judge(0.95).verdict == Verdict.UNDECIDED
    assert "moderated Welch over 3 seeds" in finding.reason


def test_alike_is_a_factor_and_not_a_margin():
    other = {seed: 1.05 * value for seed, value in FIRST.items()}
    assert is_within_factor("a / b", FIRST, other, 2.0).judge(0.95).verdict == Verdict.AGREES
    assert is_within_factor("a / b", FIRST, other, 1.1).judge(0.95).verdict == Verdict.UNDECIDED
    assert is_within_factor("a / b", FIRST, SECOND, 1.5).judge(0.95).verdict == Verdict.DISAGREES
    assert is_within_factor("b / a", SECOND, FIRST, 1.5).judge(0.95).verdict == Verdict.DISAGREES
    tiny = [{seed: value / 1000 for seed, value in side.items()} for side in (FIRST, other)]
    assert is_within_factor("a / b", *tiny, 2.0).judge(0.95).verdict == Verdict.AGREES
    with pytest.raises(UsageError, match=r"factor=1\.0"):
        is_within_factor("a / b", FIRST, SECOND, 1.0)


@pytest.mark.parametrize(
    ("second", "reason"),
    [
        ({0: 0.1, 1: 0.2}, "3 and 2 seeds; at least 3"),
        ({0: 0.0, 1: 0.2, 2: 0.1}, "1 values are not above 0"),
        ({0: math.nan, 1: 0.2, 2: 0.1}, "1 values are not above 0"),
    ],
)
def test_what_has_no_logarithm_decides_nothing(second, reason):
    finding = is_smaller("a / b", FIRST, second).judge(0.95)
    assert finding.verdict == Verdict.UNDECIDED
    assert reason in finding.reason


def test_a_side_that_does_not_vary_is_judged_by_the_prior_and_two_are_not():
    constant = dict.fromkeys(range(3), 0.5 / 20_000)
    assert is_smaller("a / b", constant, SECOND).judge(0.95).verdict == Verdict.AGREES
    assert "the same number" in is_smaller("a / b", constant, dict.fromkeys(range(3), 0.5)).judge(0.95).reason


def test_seeds_are_the_unit():
    with pytest.raises(UsageError, match="by seed"):
        log_ratio([0.1, 0.2, 0.3], SECOND)


def test_a_power_has_the_ends_of_its_exponent():
    measured = over_seeds({0: 0.9, 1: 1.0, 2: 1.1})
    assert exponential(measured, 10).ends(0.9) == pytest.approx(tuple(10**end for end in measured.ends(0.9)))
    assert exponential(over_seeds({0: -900.0, 1: 0.0, 2: 900.0})).ends(0.95) == (0.0, math.inf)


def test_the_interval_is_that_of_the_mean_difference():
    low, high = difference_of_means([0.0, 0.1, 0.3], [1.0, 1.2, 1.3], 0.95)
    assert (low + high) / 2 == pytest.approx(0.4 / 3 - 3.5 / 3)


@pytest.mark.parametrize(("count", "distance"), [(3, 0.3), (3, 1.0), (6, 0.4)])
def test_the_number_of_seeds_that_decides_does_so_mostly(count, distance):
    """With the true spread instead of an estimated one: of 80 % within a tenth, by Student's t."""
    needed = count_needed(distance, 1.0 / math.sqrt(count), count - 1, count, 0.95)
    draw = np.random.default_rng(1)
    values = draw.normal(distance, 1.0, (4000, needed))
    reach = stats.t(needed - 1).ppf(0.975) * values.std(axis=1, ddof=1) / math.sqrt(needed)
    assert (values.mean(axis=1) > reach).mean() == pytest.approx(0.8, abs=0.1)
