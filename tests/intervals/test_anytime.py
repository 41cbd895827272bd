import numpy as np
import pytest
from scipy import special

from jostle.intervals import anytime, fixed


def constant(draws: float):
    return lambda p: np.full_like(p, draws)


def log_martingale(p: float, successes: int, trials: int, prior: float) -> float:
    likelihood = successes * np.log(p) + (trials - successes) * np.log1p(-p)
    total = 0.0
    for share, weight in ((1, 0.8), (1 / 8, 0.05), (1 / 64, 0.05), (1 / 512, 0.05), (1 / 4096, 0.05)):
        a, b = prior * share * p, prior * share * (1 - p)
        mixture = special.betaln(a + successes, b + trials - successes) - special.betaln(a, b)
        total += weight * np.exp(mixture - likelihood)
    return float(np.log(total))


@pytest.mark.parametrize(("successes", "trials"), [(3, 100), (50, 100), (97, 100), (4, 5000)])
def test_ends_are_where_the_martingale_reaches_its_threshold(successes, trials):
    low, high = anytime.bernoulli(successes, trials, 0.95, constant(500.0))
    prior = 500.0 / (2 * np.log(20) + np.log1p(2 * np.log(20)))
    for end in (low, high):
        assert log_martingale(end, successes, trials, prior) == pytest.approx(np.log(20), abs=0.02)
    assert low < successes / trials < high


def test_the_mixture_is_a_martingale():
    """E[M_{n+1} | s, n] = M_n if p is true: checked at random states."""
    p, prior = 0.07, 3000.0
    for successes, trials in [(0, 1), (3, 40), (10, 100)]:
        now = np.exp(log_martingale(p, successes, trials, prior))
        up = np.exp(log_martingale(p, successes + 1, trials + 1, prior))
        down = np.exp(log_martingale(p, successes, trials + 1, prior))
        assert p * up + (1 - p) * down == pytest.approx(now, rel=1e-10)


def test_nothing_seen_says_nothing_and_no_success_starts_at_zero():
    assert anytime.bernoulli(0, 0, 0.95, constant(100.0)) == (0.0, 1.0)
    low, high = anytime.bernoulli(0, 1000, 0.95, constant(1000.0))
    assert low == 0
    assert 0.003 < high < 0.01
    assert anytime.bernoulli(1000, 1000, 0.95, constant(1000.0))[1] == 1


@pytest.mark.parametrize("trials", [100, 2000])
def test_wider_than_fixed_but_not_by_much_at_its_horizon(trials):
    low, high = anytime.bernoulli(trials // 5, trials, 0.95, constant(trials))
    cp_low, cp_high = fixed.clopper_pearson(trials // 5, trials, 0.95)
    ratio = (high - low) / float(cp_high - cp_low)
    assert 1.3 < ratio < 1.7


@pytest.mark.parametrize("counts", [[5, 80, 15], [0, 100, 0], [100, 0, 0], [0, 0, 7], [10, 1000, 400]])
def test_bounded_holds_the_mean_and_stays_inside(counts):
    low, high = anytime.bounded([-1, 0, 1], counts, 0.95, (-1.0, 1.0))
    mean = (counts[2] - counts[0]) / sum(counts)
    assert -1 <= low <= mean <= high <= 1


def test_bounded_mirrors():
    low, high = anytime.bounded([-1, 0, 1], [5, 80, 15], 0.95, (-1.0, 1.0))
    other_low, other_high = anytime.bounded([-1, 0, 1], [15, 80, 5], 0.95, (-1.0, 1.0))
    assert (low, high) == pytest.approx((-other_high, -other_low), abs=1e-4)


def test_bounded_bets_are_a_martingale_at_the_true_mean():
    """The capital's expectation over one draw stays 1 for every bet: checked by solving for the threshold's meaning."""
    values, probabilities = np.array([-1.0, 0.0, 1.0]), np.array([0.1, 0.7, 0.2])
    mean = values @ probabilities
    for bet in (-0.9 / (1 - mean), 0.4, 0.9 / (1 + mean)):
        assert probabilities @ (1 + bet * (values - mean)) == pytest.approx(1.0)


def test_asymptotic_shrinks_and_widens_with_the_level():
    near = anytime.asymptotic(1.0, 4.0, 100, 0.95, 1000.0)
    far = anytime.asymptotic(1.0, 4.0, 10_000, 0.95, 1000.0)
    surer = anytime.asymptotic(1.0, 4.0, 100, 0.99, 1000.0)
    assert surer[0] < near[0] < far[0] < 1 < far[1] < near[1] < surer[1]
    assert anytime.asymptotic(1.0, 4.0, 1, 0.95, 10.0) == (-np.inf, np.inf)
