"""Means over corruptions and their intervals, against closed forms and simulations."""

import json

import numpy as np
import pytest
from scipy import stats

from jostle.base.errors import UsageError
from jostle.corruptions import CorruptionAccuracy
from jostle.intervals.fixed import clopper_pearson

NAMES = ("gaussian_noise", "shot_noise", "fog", "contrast")


def outcome(correct, names=NAMES, severities=(1, 2), level=0.95):
    return CorruptionAccuracy(names, severities, correct, correct[0, 0], level)


def ends(found):
    return found.value, found.low, found.high


def clustered(generator, images, chances=0.7, spread=0.6):
    """Images differ in difficulty: all outcomes of an image succeed with its own chance, Beta with mean ``chances``."""
    weight = (1 - spread) / spread
    difficulty = generator.beta(chances * weight, (1 - chances) * weight, images)
    return generator.uniform(size=(4, 2, images)) < difficulty


def test_single_settings_are_clopper_pearson_and_means_are_means():
    correct = clustered(np.random.default_rng(0), 50)
    result = outcome(correct)
    found = result.accuracy("fog", 2)
    low, high = clopper_pearson(correct[2, 1].sum(), 50, 0.95)
    assert ends(found) == (correct[2, 1].mean(), low, high)
    assert (found.interval.target, found.interval.level) == ("population", 0.95)
    assert result.mean.value == pytest.approx(correct.mean())
    assert result.family("noise").value == pytest.approx(correct[:2].mean())
    assert list(result.families()) == ["noise", "weather", "digital"]
    assert result.mean.low < result.mean.value < result.mean.high


def test_identical_settings_give_the_interval_of_one():
    """If all corruptions agree on every image, eight settings say no more than one: cluster = image."""
    one = np.random.default_rng(1).uniform(size=40) < 0.6
    result = outcome(np.broadcast_to(one, (4, 2, 40)))
    assert ends(result.mean) == pytest.approx(ends(result.accuracy("fog", 1)))


def test_plain_mean_error_mirrors_the_mean():
    result = outcome(clustered(np.random.default_rng(2), 60))
    assert ends(result.mean_corruption_error()) == pytest.approx(
        (1 - result.mean.value, 1 - result.mean.high, 1 - result.mean.low)
    )


def test_mean_corruption_error_is_the_papers():
    correct = clustered(np.random.default_rng(3), 80)
    reference = {"gaussian_noise": 0.8, "shot_noise": 0.5, "fog": 1.5, "contrast": 0.3, "snow": 1.0}
    expected = 0.0
    for index, name in enumerate(NAMES):
        error = sum(1 - correct[index, severity].mean() for severity in range(2))
        expected += error / reference[name] / 4
    found = outcome(correct).mean_corruption_error(reference)
    assert found.value == pytest.approx(expected)
    assert found.low < expected < found.high


def test_a_model_that_is_always_wrong_has_the_largest_error_there_is():
    result = outcome(np.zeros((4, 2, 20), dtype=bool))
    low = 4 * 0.025 ** (1 / 20)  # Clopper-Pearson, 20 of 20, times 2 severities / 0.5
    assert ends(result.mean_corruption_error(dict.fromkeys(NAMES, 0.5))) == pytest.approx((4.0, low, 4.0))


def test_a_model_is_1_relative_to_itself():
    result = outcome(clustered(np.random.default_rng(4), 80))
    assert ends(result.mean_corruption_error(result)) == pytest.approx((1.0, 1.0, 1.0))
    assert result.mean_corruption_error(result.summed_errors).value == pytest.approx(1.0)


def test_the_paired_interval_is_the_delta_methods():
    """One corruption, one severity: the ratio of two means has the textbook variance."""
    generator = np.random.default_rng(5)
    ours, theirs = generator.uniform(size=(2, 1, 1, 500)) < np.asarray([0.8, 0.6])[:, None, None, None]
    first, second = (outcome(one, ("fog",), (3,)) for one in (ours, theirs))
    found = first.mean_corruption_error(second)
    x, y = (~ours).ravel() * 1.0, (~theirs).ravel() * 1.0
    ratio = x.mean() / y.mean()
    variance = (x.var(ddof=1) - 2 * ratio * np.cov(x, y)[0, 1] + ratio**2 * y.var(ddof=1)) / y.mean() ** 2 / 500
    reach = stats.t.ppf(0.975, 499) * np.sqrt(variance)
    assert ends(found) == pytest.approx((ratio, ratio - reach, ratio + reach))


def share_covered(runs, interval, truth):
    covered = [low <= truth <= high for low, high in map(interval, runs)]
    return np.mean(covered), np.sqrt(0.95 * 0.05 / len(covered))


def check_coverage(count):
    generator = np.random.default_rng(6)
    runs = [outcome(clustered(generator, 60)) for _ in range(count)]
    found, error = share_covered(runs, lambda run: ends(run.mean)[1:], 0.7)
    assert found > 0.95 - 4 * error
    reference = dict.fromkeys(NAMES, 0.5)  # the true mCE is 2 * 0.3 / 0.5
    found, error = share_covered(runs, lambda run: ends(run.mean_corruption_error(reference))[1:], 1.2)
    assert found > 0.95 - 4 * error
    naive, _ = share_covered(runs, lambda run: clopper_pearson(run.correct.sum(), run.correct.size, 0.95), 0.7)
    assert naive < 0.8  # as if all outcomes were independent


def test_intervals_cover_although_outcomes_of_an_image_belong_together():
    check_coverage(80)


@pytest.mark.slow
def test_intervals_cover_many_times():
    check_coverage(1500)
    generator = np.random.default_rng(7)

    def pair():
        both = [outcome(clustered(generator, 300, chances)) for chances in (0.7, 0.5)]
        return both[0].mean_corruption_error(both[1])

    found, error = share_covered([pair() for _ in range(1500)], lambda one: ends(one)[1:], 0.3 / 0.5)
    assert found > 0.94 - 4 * error  # asymptotic


def test_what_is_printed_and_kept():
    result = outcome(clustered(np.random.default_rng(8), 30))
    lines = str(result).splitlines()
    assert lines[0].split() == ["corruption", "severity", "1", "severity", "2"]
    assert lines[3].startswith("fog ")
    assert f"{result.accuracy('fog', 1)}" in lines[3]
    assert lines[-1] == f"mean           {result.mean}"
    kept = json.loads(json.dumps(result.to_dict()))
    assert kept["cells"][5] == {"corruption": "fog", "severity": 2, **result.accuracy("fog", 2).to_dict()}
    assert kept["mean"]["value"] == result.mean.value
    assert (kept["images"], kept["level"]) == (30, 0.95)


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda r: r.accuracy("snow", 1), "unknown corruption in this result 'snow'"),
        (lambda r: r.accuracy("fog", 3), r"severity=3 was not measured; there are \[1, 2\]"),
        (lambda r: r.family("blur"), "unknown family in this result 'blur'"),
        (lambda r: r.mean_corruption_error({"fog": 1.0}), "no error for gaussian_noise, shot_noise, contrast"),
        (lambda r: r.mean_corruption_error(dict.fromkeys(NAMES, 80.0)), "errors are shares, not percentages"),
        (lambda r: r.mean_corruption_error(dict.fromkeys(NAMES, 0.0)), "must be above 0"),
        (lambda r: r.mean_corruption_error(outcome(r.correct[:, :, :5])), "the same images"),
    ],
)
def test_wrong_use_is_one_clear_line(ask, message):
    with pytest.raises(UsageError, match=message):
        ask(outcome(clustered(np.random.default_rng(9), 30)))
