"""The oracles themselves, against values worked out by hand."""

from fractions import Fraction

import pytest

from tests.boolean import oracles_boolean as oracles

AND = (-1, -1, -1, 1)
HALF, QUARTER = Fraction(1, 2), Fraction(1, 4)


def test_and_of_two_bits_by_hand():
    assert oracles.sensitivities(AND) == [0, 1, 1, 2]
    assert oracles.total_sensitivity(AND) == 1
    assert oracles.profile(AND) == [1, 2, 1]
    assert oracles.profile_by_value(AND, 1) == [0, 0, 1]
    assert oracles.influences(AND) == [HALF, HALF]
    assert oracles.coefficients(AND) == [-HALF, HALF, HALF, HALF]
    assert oracles.weight_by_degree(AND) == [QUARTER, HALF, QUARTER]
    assert oracles.degree(AND) == 2
    assert oracles.mean(AND) == -HALF
    assert oracles.variance(AND) == 3 * QUARTER


def test_the_first_coordinate_is_the_most_significant():
    first = oracles.tabulate(lambda x: x[0], 3)
    assert first == [-1] * 4 + [1] * 4
    assert oracles.influences(first) == [1, 0, 0]
    assert [s for s, c in zip(oracles.subsets(3), oracles.coefficients(first), strict=True) if c] == [(0,)]
    assert oracles.subsets(3)[5] == (0, 2)


def test_noise_on_and_by_hand():
    # Stab_rho = 1/4 + rho/2 + rho^2/4, and Pr[f(x) != f(y)] = (1 - Stab_rho) / 2 for signs.
    rho = Fraction(1, 3)
    stability = QUARTER + HALF * rho + QUARTER * rho**2
    assert oracles.noise_stability(AND, rho) == stability
    assert oracles.disagreement(AND, rho) == (1 - stability) / 2


@pytest.mark.parametrize("rho", [Fraction(0), Fraction(1), Fraction(-1)])
def test_noise_at_its_ends(rho):
    majority = oracles.tabulate(lambda x: 1 if sum(x) > 0 else -1, 3)
    expected = {0: oracles.mean(majority) ** 2, 1: 1, -1: -1}[int(rho)]  # majority of 3 bits is odd
    assert oracles.noise_stability(majority, rho) == expected


def test_real_values_stay_exact():
    average = oracles.tabulate(lambda x: Fraction(sum(x), 3), 3)
    assert oracles.total_sensitivity(average) == Fraction(1, 3)
    assert oracles.sensitivities(average) == [Fraction(1, 3)] * 8
    assert oracles.weight_by_degree(average) == [0, Fraction(1, 3), 0, 0]
