"""Confidence sequences of many entries: valid at all times, tight enough, and the bounds on how few carry a share."""

import itertools

import numpy as np
import pytest

from jostle.intervals import simultaneous


@pytest.mark.parametrize("p", [0.02, 0.3, 0.5])
def test_bounded_means_cover_at_all_times_together(p):
    random, alpha, runs = np.random.default_rng(3), 0.1, 400
    draws = random.random((runs, 600)) < p
    counts = np.arange(1, 601)
    low, high = simultaneous.bounded_means(draws.cumsum(axis=1), counts, alpha)
    missed = ((p < low) | (p > high)).any(axis=1).mean()
    assert missed <= alpha + 4 * np.sqrt(alpha * (1 - alpha) / runs)
    assert (high - low)[:, -1].mean() < 0.25  # and they become narrow


def test_draws_between_0_and_1_are_covered_too():
    random, alpha, runs = np.random.default_rng(4), 0.1, 400
    draws = random.beta(0.5, 1.5, (runs, 400))
    low, high = simultaneous.bounded_means(draws.cumsum(axis=1), np.arange(1, 401), alpha)
    assert ((low > 0.25) | (high < 0.25)).any(axis=1).mean() <= alpha


def test_ends_are_where_the_mixture_crosses_its_threshold():
    from scipy import special

    s, n, alpha = 7.0, 40.0, 0.01
    low, high = (float(end) for end in simultaneous.bounded_means(s, n, alpha))

    def capital(p):
        prior = special.beta(s + 0.5, n - s + 0.5) / special.beta(0.5, 0.5)
        return prior / (p**s * (1 - p) ** (n - s))

    assert capital(low) == pytest.approx(1 / alpha)
    assert capital(high) == pytest.approx(1 / alpha)
    assert capital(s / n) < 1 / alpha
    none, every = (simultaneous.bounded_means(sums, 20, alpha) for sums in (0, 20))
    assert (float(none[0]), float(every[1])) == (0.0, 1.0)
    assert float(none[1]) == pytest.approx(1 - float(every[0]))


def test_no_draws_give_the_whole_range():
    low, high = simultaneous.bounded_means([0.0], [0.0], 0.05)
    assert (low.tolist(), high.tolist()) == ([0.0], [1.0])


def test_means_is_the_formula_for_one():
    from jostle.intervals import anytime

    draws = np.random.default_rng(5).exponential(size=300)
    found = simultaneous.means(draws.sum(), (draws**2).sum(), 300, 0.01, 512.0)
    expected = anytime.asymptotic(draws.mean(), draws.var(ddof=1), 300, 0.99, 512.0)
    assert [float(end) for end in found] == pytest.approx(expected)


def fewest(share, values):
    """The smallest k such that some k numbers make up the share, by trying all sets."""
    for k in range(1, len(values) + 1):
        if any(sum(part) >= share * sum(values) - 1e-12 for part in itertools.combinations(values, k)):
            return k
    return len(values)


@pytest.mark.parametrize("share", [0.5, 0.9])
def test_how_few_carry_a_share_is_bounded_for_all_values_between_the_ends(share):
    random = np.random.default_rng(6)
    for _ in range(40):
        low = random.random(5) ** 3
        high = low + random.random(5) * 0.3
        least, most = simultaneous.tokens_that_carry(share, low, high)
        found = [fewest(share, random.uniform(low, high)) for _ in range(30)]
        found += [fewest(share, np.where(chosen, high, low)) for chosen in random.random((30, 5)) < 0.5]
        assert least <= min(found)
        assert max(found) <= most
        assert simultaneous.tokens_that_carry(share, low, low) == (fewest(share, low), fewest(share, low))
