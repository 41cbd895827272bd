"""Values from papers and textbooks, and closed forms at sizes where nothing can be enumerated."""

import math
from fractions import Fraction

import numpy as np
import pytest

from jostle.boolean import fourier, functions, pointwise
from jostle.boolean.functions import create

# Total sensitivity of majority with strict >: n C(n, n/2) / 2^n for even n, n C(n-1, (n-1)/2) / 2^(n-1) for odd n.
MAJORITY = {4: 1.5, 5: 1.875, 6: 1.875, 8: 2.188, 10: 2.461, 12: 2.707, 15: 3.142, 20: 3.524, 25: 4.030, 30: 4.334}


@pytest.mark.parametrize(("n", "expected"), MAJORITY.items())
def test_majority_of_paper_2(n, expected):
    assert functions.majority(n).exact.total_sensitivity == pytest.approx(expected, abs=5.1e-4)


@pytest.mark.parametrize("n", [3, 4, 17, 30, 101, 400])
def test_majority_by_its_own_formula(n):
    if n % 2:
        expected = Fraction(n * math.comb(n - 1, (n - 1) // 2), 2 ** (n - 1))
    else:
        expected = Fraction(n * math.comb(n, n // 2), 2**n)
    exact = functions.majority(n).exact
    assert exact.total_sensitivity == float(expected)
    assert exact.max_sensitivity == n // 2 + 1
    assert exact.min_sensitivity == (0 if n > 1 else 1)
    assert sum(exact.sensitivity_profile) == 2**n
    assert exact.weight_by_degree.sum() == pytest.approx(1, abs=1e-12)


def test_majority_of_4_and_of_101():
    assert functions.majority(4).exact.sensitivity_profile == (6, 0, 6, 4, 0)
    exact = functions.majority(101).exact
    assert exact.total_sensitivity == pytest.approx(8.0385, abs=5e-5)
    assert math.sqrt(2 * 101 / math.pi) == pytest.approx(8.019, abs=5e-4)
    # Sheppard: the noise stability tends to (2/pi) arcsin(rho) as n grows (O'Donnell 2014).
    assert exact.noise_stability(0.5) == pytest.approx(2 / math.pi * math.asin(0.5), abs=3e-3)
    assert exact.weight_by_degree[1] == pytest.approx(2 / math.pi, abs=5e-3)
    assert not exact.weight_by_degree[::2].any()  # odd for odd n


@pytest.mark.parametrize("n", [1, 2, 5, 20, 100])
def test_simple_totals(n):
    assert functions.parity(n).exact.total_sensitivity == n
    assert functions.parity(n).exact.degree == n
    assert functions.and_(n).exact.total_sensitivity == n / 2 ** (n - 1)
    assert functions.or_(n).exact.total_sensitivity == n / 2 ** (n - 1)
    assert functions.first(n).exact.total_sensitivity == 1
    assert functions.mean(n).exact.total_sensitivity == 1 / n
    assert functions.mean(n).exact.max_sensitivity == functions.mean(n).exact.min_sensitivity == 1 / n
    assert functions.sparse_parity(n, k=min(n, 3)).exact.total_sensitivity == min(n, 3)
    assert functions.constant(n).exact.total_sensitivity == 0
    assert functions.random(min(n, 96)).exact.total_sensitivity == min(n, 96) / 2


@pytest.mark.parametrize(
    "spec",
    [
        *("parity", "majority", "first", "mean", "and", "or", "tribes", "bent", "threshold", "junta", "decision-list"),
        *("sparse-parity:k=40", "not-all-equal", "hamming-ball:radius=30", "constant", "multiplexer"),
    ],
)
def test_a_hundred_bits_and_more(spec):
    n = 135 if spec == "multiplexer" else 100
    exact = create(spec, n).exact
    assert exact.influences.shape == (n,)
    assert exact.influences.sum() == pytest.approx(exact.total_sensitivity, rel=1e-12)
    if exact.sensitivity_profile is not None:
        assert sum(exact.sensitivity_profile) == 2**n
        total = Fraction(sum(s * count for s, count in enumerate(exact.sensitivity_profile)), 2**n)
        assert float(total) == pytest.approx(exact.total_sensitivity, rel=1e-12)
    if exact.weight_by_degree is not None:
        energy = 1 / 100 if spec == "mean" else 1
        assert exact.weight_by_degree.sum() == pytest.approx(energy, rel=1e-12)
        assert (np.arange(n + 1) * exact.weight_by_degree).sum() == pytest.approx(exact.total_sensitivity, rel=1e-9)
        assert exact.noise_stability(1.0) == pytest.approx(energy, rel=1e-12)
        assert exact.noise_stability(0.0) == pytest.approx(exact.mean**2, rel=1e-12, abs=1e-300)


def test_threshold_with_equal_weights_is_majority_and_shares_its_values():
    for n in (5, 6, 100, 101):
        one, other = functions.threshold(n).exact, functions.majority(n).exact
        assert one.sensitivity_profile == other.sensitivity_profile
        assert one.influences.tolist() == other.influences.tolist()
        assert (one.mean, one.max_sensitivity) == (other.mean, other.max_sensitivity)


def test_tribes_of_textbook_size():
    # Width 2, two tribes: Pr[f = -1] = (3/4)^2; a bit decides with its partner +1 and the other tribe not full.
    exact = functions.tribes(4, width=2).exact
    assert exact.mean == 1 - 2 * (3 / 4) ** 2
    assert exact.influences.tolist() == [3 / 8] * 4
    # The default width balances; the influences are then of order log(n) / n (Ben-Or and Linial 1985).
    large = functions.tribes(1000).exact
    assert abs(large.mean) < 0.35
    assert 0.3 < large.influences[0] / (math.log(1000) / 1000) < 1.5


def test_bent_spectrum_is_flat():
    assert set(np.abs(fourier.coefficients(functions.bent(8).table())).tolist()) == {2.0**-4}


def test_random_functions_scatter_around_their_expectation():
    n, count = 8, 64
    exact = functions.random(n).exact
    assert exact.is_expectation
    assert (exact.max_sensitivity, exact.min_sensitivity, exact.degree) == (None, None, None)
    tables = np.stack([functions.random(n, seed=seed).table() for seed in range(count)])
    assert len({table.tobytes() for table in tables}) == count
    totals = pointwise.sensitivities(tables).mean(axis=1)
    spread = math.sqrt(n / 2 ** (n + 1))  # of one function
    assert abs(totals.mean() - exact.total_sensitivity) < 4 * spread / math.sqrt(count)
    assert totals.std() == pytest.approx(spread, rel=4 / math.sqrt(2 * count))
    assert abs(tables.mean()) < 4 / math.sqrt(tables.size)
    for found, expected in zip(
        np.bincount(pointwise.sensitivities(tables).ravel(), minlength=n + 1) / count,
        exact.sensitivity_profile,
        strict=True,
    ):
        # Points of one function are dependent, but only neighbours: n + 1 times the variance of independent ones.
        assert abs(found - expected) <= 4 * math.sqrt((n + 1) * expected / count)
    assert exact.noise_stability(0.5) == pytest.approx(0.75**n, rel=1e-12)


def test_random_functions_of_many_bits_differ_in_every_word():
    function = functions.random(96)
    rng = np.random.default_rng(0)
    points = rng.choice([-1, 1], size=(2000, 96))
    for coordinate in (0, 31, 32, 63, 64, 95):
        neighbours = points.copy()
        neighbours[:, coordinate] *= -1
        changed = (function(points) != function(neighbours)).mean()
        assert abs(changed - 0.5) < 4 * 0.5 / math.sqrt(2000)
