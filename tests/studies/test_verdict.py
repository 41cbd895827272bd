import math

import numpy as np
import pytest
from scipy import stats

from jostle.base.errors import UsageError
from jostle.base.estimate import Estimate, Interval
from jostle.studies.evidence import (
    Measured,
    difference,
    estimated,
    exact,
    interval,
    mean_by_seed,
    over_sample,
    over_seeds,
    paired,
    proportion,
    scaled,
    unpaired,
)
from jostle.studies.schema import from_plain, to_plain
from jostle.studies.verdict import (
    Finding,
    Verdict,
    beyond,
    decide,
    doubted,
    holds_for_all,
    is_above,
    is_below,
    is_less,
    is_smaller,
    overall,
    within,
)

AGREES, DISAGREES, ALIKE, UNDECIDED = Verdict.AGREES, Verdict.DISAGREES, Verdict.ALIKE, Verdict.UNDECIDED


def seeded(values):
    return dict(enumerate(values))


def judged(expectation, level=0.95):
    return expectation.judge(level).verdict


@pytest.mark.parametrize(
    ("ends", "below", "above", "near"),
    [
        ((0.1, 0.2), AGREES, DISAGREES, DISAGREES),
        ((0.8, 0.9), AGREES, DISAGREES, AGREES),
        ((0.7, 0.9), AGREES, DISAGREES, UNDECIDED),
        ((0.9, 1.1), UNDECIDED, UNDECIDED, AGREES),
        ((0.5, 1.5), UNDECIDED, UNDECIDED, UNDECIDED),
        ((1.1, 1.2), DISAGREES, AGREES, AGREES),
        ((1.3, 1.4), DISAGREES, AGREES, DISAGREES),
        ((1.0, 1.0), DISAGREES, DISAGREES, AGREES),  # exactly the bound is neither below nor above it
        ((0.9, 1.0), UNDECIDED, DISAGREES, AGREES),
        ((1.0, 1.1), DISAGREES, UNDECIDED, AGREES),
        ((None, 0.5), AGREES, DISAGREES, DISAGREES),
        ((None, None), UNDECIDED, UNDECIDED, UNDECIDED),
    ],
)
def test_the_interval_decides(ends, below, above, near):
    measured = interval(1.0, *ends, level=0.95)
    assert judged(is_below("s", measured, 1.0)) == below
    assert judged(is_above("s", measured, 1.0)) == above
    assert judged(within("s", measured, target=1.0, margin=0.25)) == near


def test_computed_numbers_decide_by_themselves():
    finding = is_below("s", exact(0.5), 1.0).judge(0.95)
    assert (finding.verdict, finding.level, finding.measured) == (AGREES, None, "0.5")
    assert judged(within("s", exact(2.0), 1.0, 0.5)) == DISAGREES
    with pytest.raises(UsageError, match="margin=-1"):
        within("s", exact(2.0), 1.0, -1)


@pytest.mark.parametrize(
    ("violations", "tested", "exhaustive", "verdict", "reason"),
    [
        (0, 16, True, AGREES, "0 violations among all 16 cases"),
        (1, 16, True, DISAGREES, "1 violations among all 16 cases"),
        (1, 16, False, DISAGREES, "a sample of 16"),
        (0, 1000, False, UNDECIDED, "no violation in a sample of 1,000 cases"),
        (0, 0, True, UNDECIDED, "no case was tested"),
    ],
)
def test_a_claim_about_all_cases(violations, tested, exhaustive, verdict, reason):
    finding = holds_for_all("s", violations, tested, exhaustive=exhaustive).judge(0.95)
    assert finding.verdict == verdict
    assert reason in finding.reason
    with pytest.raises(UsageError, match="5 violations in 3 cases cannot be"):
        holds_for_all("s", 5, 3)


def test_a_sample_without_violations_says_how_rare_they_are():
    finding = holds_for_all("s", 0, 1000, exhaustive=False).judge(0.95)
    assert finding.high == pytest.approx(1 - 0.025 ** (1 / 1000))


def test_the_paired_interval_is_that_of_the_textbook():
    first, second = [1.0, 2.5, 2.0, 3.0], [1.5, 2.0, 4.0, 5.5]
    low, high = stats.ttest_rel(first, second).confidence_interval(0.9)
    shuffled = {seed: second[seed] for seed in (2, 0, 3, 1)}
    assert paired(seeded(first), shuffled).ends(0.9) == pytest.approx((low, high))
    single = stats.ttest_1samp(first, 0).confidence_interval(0.95)
    assert over_seeds(seeded(first)).ends(0.95) == pytest.approx(tuple(single))
    assert over_sample(first, "runs").ends(0.95) == pytest.approx(tuple(single))
    assert over_sample(first, "runs").method == "Student's t over 4 runs"


def test_pairing_decides_what_separate_intervals_cannot():
    seeds = np.array([0.0, 10.0, 20.0, 30.0])  # seeds differ much, the two in each seed by about 1
    first, second = seeded(seeds + np.array([0.1, -0.1, 0.05, 0.0])), seeded(seeds + 1)
    assert judged(is_less("s", first, second)) == AGREES
    assert judged(is_less("s", second, first)) == DISAGREES
    assert judged(is_below("s", difference(over_seeds(first), over_seeds(second)), 0)) == UNDECIDED


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ([], "no values"),
        ([1.0], "1 seed; at least 3 are needed"),
        ([1.0, 1.1], "2 seeds; at least 3 are needed"),
        ([0.3, 0.3, 0.3], "all 3 seeds give the same number"),
        ([0.1 + 0.2, 0.3, 0.3], "all 3 seeds give the same number"),
        ([1.0, math.nan, 2.0], "1 of 3 values are NaN or infinite"),
        ([1.0, math.inf, -math.inf], "2 of 3 values are NaN or infinite"),
    ],
)
def test_what_says_nothing_is_undecided_with_the_reason(values, reason):
    finding = is_below("s", over_seeds(seeded(values)), 100.0).judge(0.95)
    assert finding.verdict == UNDECIDED
    assert reason in finding.reason


def test_nan_and_no_trials_are_undecided():
    for measured in (exact(math.nan), interval(math.nan, 0.0, 1.0, 0.95), interval(0.5, math.nan, 1.0, 0.95)):
        assert judged(is_below("s", measured, 100.0)) == UNDECIDED
    assert is_below("s", proportion(0, 0), 1.0).judge(0.95).reason == "no trials"
    assert is_below("s", exact(math.nan), 1.0).judge(0.95).measured == "nothing"


def test_values_that_do_not_match_are_refused():
    with pytest.raises(UsageError, match="not of the same seeds: 2 only on one side"):
        paired({0: 1.0, 1: 2.0}, {0: 1.0, 1: 2.0, 2: 3.0})
    for wrong in (
        lambda: over_seeds([1.0, 2.0]),
        lambda: paired([1.0], {0: 1.0}),
        lambda: paired({0: 1.0}, [1.0]),
    ):
        with pytest.raises(UsageError, match="must be given by seed"):
            wrong()


def test_the_interval_of_a_finding_does_not_depend_on_the_others():
    measured = over_seeds(seeded([1.0, 2.0, 3.0, 2.0]))
    alone = decide([is_below("s", measured, 9.0)], scale="small")
    among = decide([is_below("s", measured, 9.0)] * 5 + [holds_for_all("a", 0, 4)], scale="small")
    assert among[0] == alone[0]
    assert (among[0].level, among[-1].level) == (0.95, None)
    assert (among[0].low, among[0].high) == pytest.approx(measured.ends(0.95))
    later = decide([is_below("s", measured, 9.0)], scale="small", share=0.4)[0]
    assert (later.low, later.high) == pytest.approx(measured.ends(0.98))


def test_a_claim_disagrees_by_holm_only():
    """Of m expectations one must disagree at error / m, the next at error / (m - 1), and so on."""

    def at(p):  # two-sided p of the finding that the number is below 0
        return is_below(f"p {p}", Measured(1.0, lambda level: (1.0 if p < 1 - level else -1.0, 3.0)), 0.0)

    def held(*ps):
        return [finding.by_holm for finding in decide([at(p) for p in ps], scale="small")]

    assert held(0.02) == [True]
    assert held(0.02, 0.5) == [True, None]  # 0.05 / 2
    assert held(0.03, 0.5) == [False, None]
    assert held(0.03, 0.02) == [True, True]  # the second at 0.05 / 2, then the first at 0.05
    assert held(0.016, 0.02, 0.04) == [True, True, True]
    assert held(0.02, 0.02, 0.04) == [False, False, False]
    among = decide([at(0.03), at(0.5)], scale="small")
    assert (among[0].verdict, overall(among)) == (DISAGREES, UNDECIDED)
    assert "not among all expectations of the claim (Holm)" in among[0].reason
    assert overall(decide([at(0.03)], scale="small")) == DISAGREES
    assert overall(decide([at(0.03), beyond(at(0.5))], scale="small")) == DISAGREES  # questions beyond it cost nothing
    assert overall(decide([at(0.5), holds_for_all("s", 1, 4)], scale="small")) == DISAGREES  # a fact needs no level


def test_an_interval_of_too_low_a_level_supports_nothing():
    weak = is_below("s", estimated(Estimate(0.5, Interval(0.4, 0.6, 0.95, "dataset", "made up"))), 1.0)
    assert [found.verdict for found in decide([weak, weak], scale="small")] == [AGREES, AGREES]
    finding = decide([weak], scale="small", share=0.5)[0]
    assert finding.verdict == UNDECIDED
    assert finding.reason == "its interval has level 0.95, 0.975 is needed"
    against = is_above("s", interval(0.5, 0.4, 0.6, level=0.95), 1.0)
    assert overall(decide([against], scale="small")) == DISAGREES
    assert overall(decide([against, weak], scale="small")) == UNDECIDED  # among two it would need 0.975
    strong = is_above("s", interval(0.5, 0.4, 0.6, level=0.975), 1.0)
    assert overall(decide([strong, weak], scale="small")) == DISAGREES


def test_an_estimate_whose_interval_is_not_known_decides_nothing():
    unknown = Estimate(0.5, Interval(0.0, 1.0, 0.95, "population", "unknown with average=micro", is_known=False))
    assert judged(is_below("s", estimated(unknown), 2.0)) == UNDECIDED
    assert "no interval is known" in estimated(unknown).doubt


def test_a_difference_of_two_intervals_halves_the_error():
    first, second = proportion(5, 100), proportion(40, 100)
    low, high = difference(first, second).ends(0.95)
    a, b = first.ends(0.975), second.ends(0.975)
    assert (low, high) == (a[0] - b[1], a[1] - b[0])
    assert judged(is_below("s", difference(first, second), 0)) == AGREES
    fixed = difference(interval(0.1, 0.0, 0.2, 0.975), interval(0.5, 0.4, 0.6, 0.975))
    assert fixed.most_level == pytest.approx(0.95)
    assert judged(is_below("s", fixed, 0)) == AGREES
    assert judged(is_below("s", difference(interval(0.1, 0.0, 0.2, 0.95), second), 0)) == UNDECIDED
    assert difference(first, exact(0.5)).ends(0.95) == pytest.approx(tuple(end - 0.5 for end in first.ends(0.95)))
    assert difference(exact(1), exact(3)).is_exact


def test_smoke_decides_nothing_and_says_so():
    for expectation in (is_below("s", exact(0.0), 1.0), is_above("s", exact(0.0), 1.0), holds_for_all("s", 1, 2)):
        [finding] = decide([expectation], scale="smoke")
        assert finding.verdict == UNDECIDED
        assert "smoke" in finding.reason


def test_the_overall_verdict():
    def of(*verdicts):
        return overall([Finding("s", "e", verdict) for verdict in verdicts])

    assert of(AGREES, AGREES) == AGREES
    assert of(AGREES, UNDECIDED) == UNDECIDED
    assert of(AGREES, UNDECIDED, DISAGREES) == DISAGREES
    assert of(AGREES, ALIKE) == of(UNDECIDED, ALIKE) == ALIKE
    assert of(ALIKE, DISAGREES) == DISAGREES
    assert of() == UNDECIDED


@pytest.mark.parametrize(
    ("ends", "verdict"),
    [
        ((-0.3, -0.1), AGREES),  # also where it is near: less is less
        ((0.0, 0.1), DISAGREES),
        ((-0.2, 0.2), ALIKE),
        ((-0.2, 0.0), ALIKE),
        ((-0.21, 0.1), UNDECIDED),
        ((-0.1, 0.21), UNDECIDED),
        ((-0.2, -0.01), AGREES),
    ],
)
def test_no_difference_worth_telling_is_alike(ends, verdict):
    measured = interval(0.0, *ends, 0.95)
    assert is_below("s", measured, 0.0, alike=0.2).judge(0.95).verdict == verdict
    above = interval(0.0, -ends[1], -ends[0], 0.95)
    mirrored = is_above("s", above, 0.0, alike=0.2).judge(0.95).verdict
    assert mirrored == verdict
    assert is_below("s", measured, 0.0).judge(0.95).verdict == (UNDECIDED if verdict == ALIKE else verdict)


def test_ratios_within_a_factor_are_alike():
    def judged(ratio, spread, seeds=24):
        logs = spread * np.linspace(-1, 1, seeds)
        first, second = (seeded(np.exp(shift + logs).tolist()) for shift in (math.log(ratio), 0.0))
        return is_smaller("s", first, second).judge(0.95)

    assert judged(1.0, 0.1).verdict == ALIKE
    assert judged(0.7, 0.1).verdict == AGREES
    assert judged(1.5, 0.1).verdict == DISAGREES
    assert judged(1.0, 2.0).verdict == UNDECIDED
    # However near to 1 the ratio is, some number of seeds decides.
    assert judged(1.0, 2.0).needs.startswith("about ")
    half = is_smaller("s", seeded([0.5, 0.51, 0.49]), seeded([1.0, 1.01, 0.99]), factor=0.5)
    assert half.judge(0.95).verdict == UNDECIDED  # a factor is asked for, so near to it is not alike


def test_a_claim_is_alike_by_holm_only():
    wide, narrow = (over_seeds(seeded([-half, half, -half, half])) for half in (0.1, 0.01))
    asked = [is_below("s", wide, 0.0, alike=0.2), *(is_below("s", narrow, 1.0) for _ in range(3))]
    alone = decide(asked[:1], scale="small")
    assert (alone[0].verdict, alone[0].by_holm, overall(alone)) == (ALIKE, True, ALIKE)
    among = decide(asked, scale="small")
    assert (among[0].verdict, among[0].by_holm, overall(among)) == (ALIKE, False, UNDECIDED)
    assert "is alike by itself" in among[0].reason


def test_a_question_beyond_the_paper_is_judged_and_decides_nothing():
    paper, ours = holds_for_all("theirs", 0, 4), beyond(holds_for_all("ours", 1, 4))
    findings = decide([paper, ours], scale="small")
    assert [finding.verdict for finding in findings] == [AGREES, DISAGREES]
    assert [finding.is_beyond for finding in findings] == [False, True]
    assert overall(findings) == AGREES
    assert overall(decide([ours], scale="small")) == UNDECIDED
    assert from_plain(Finding, to_plain(findings[1]), "finding").is_beyond


def test_findings_survive_json_and_show_open_ends():
    finding = is_below("s", interval(0.5, None, 0.75, 0.95), 1.0).judge(0.95)
    assert from_plain(Finding, to_plain(finding), "finding") == finding
    assert finding.measured == "0.5 [-∞, 0.75]"
    assert to_plain(finding)["verdict"] == "AGREES"


def test_unpaired_is_welch_with_careful_degrees_of_freedom():
    draw = np.random.default_rng(3)
    first, second = draw.normal(1, 2, 12), draw.normal(0, 0.5, 30)
    parts = [sample.var(ddof=1) / len(sample) for sample in (first, second)]
    freedom = (sum(parts) ** 2 / (parts[0] ** 2 / 11 + parts[1] ** 2 / 29) + 11) / 2
    reach = stats.t(freedom).ppf(0.99) * math.sqrt(sum(parts))
    value = first.mean() - second.mean()
    assert unpaired(first.tolist(), second.tolist()).ends(0.98) == pytest.approx((value - reach, value + reach))
    assert "at least 3" in unpaired([1.0, 2.0], second).doubt
    assert "NaN" in unpaired([1.0, 2.0, math.nan], second).doubt
    assert "varies" in unpaired([1.0] * 4, [2.0] * 4).doubt


def test_independent_numbers_are_compared_by_welch():
    first, second = (seeded(values) for values in ([1.0, 2.0, 4.0], [5.0, 5.5, 7.0, 8.0]))
    apart = difference(over_seeds(first), over_seeds(second), independent=True)
    assert apart.ends(0.9) == pytest.approx(unpaired(first, second).ends(0.9))
    union = difference(over_seeds(first), over_seeds(second)).ends(0.9)
    assert union[0] < apart.ends(0.9)[0] < apart.ends(0.9)[1] < union[1]
    assert scaled(apart, -2).ends(0.9) == pytest.approx([-2 * end for end in reversed(apart.ends(0.9))])
    twice = difference(scaled(over_seeds(first), 2), scaled(over_seeds(second), 2), independent=True)
    assert twice.ends(0.9) == pytest.approx([2 * end for end in apart.ends(0.9)])


def test_what_a_seed_gives_several_times_counts_once():
    assert mean_by_seed([(0, 1.0), (1, 2.0), (0, 2.0), (1, 4.0), (0, 6.0)]) == {0: 3.0, 1: 3.0}


def test_undecided_says_what_would_decide_it():
    def needs(*values, bound=0.0):
        return is_below("s", over_seeds(seeded(values)), bound).judge(0.95).needs

    assert needs(-1.0, -1.1, -0.9) == ""
    assert needs(-1.0, -2.0, 0.1, 0.2) == "about 21 seeds"
    assert needs(-1.0, 1.0, 0.01) == "more than 180 seeds: too close to the bound"
    assert needs(1.0, 2.0) == ""  # its reason says that there are too few
    near = within("s", over_seeds(seeded([0.0, 0.1, 0.2])), 0.1, 0.12).judge(0.95)
    assert near.needs == "about 8 seeds"
    assert from_plain(Finding, to_plain(near), "finding") == near


def test_a_doubt_leaves_an_expectation_undecided_with_its_numbers():
    sure = is_below("s", over_seeds(seeded([1.0, 2.0, 3.0])), 90.0)
    (before,), (after,) = decide([sure], scale="small"), decide([doubted(sure, "not trained", "more")], scale="small")
    assert (before.verdict, after.verdict, after.reason) == (AGREES, UNDECIDED, "not trained")
    assert (after.value, after.low, after.high) == (before.value, before.low, before.high)
    assert after.needs == "more"
    open_still = is_below("s", over_seeds(seeded([1.0, 2.0, 3.0])), 2.5).judge(0.95)
    assert open_still.needs
    assert doubted(is_below("s", over_seeds(seeded([1.0, 2.0, 3.0])), 2.5), "not trained").judge(0.95).needs == ""
