"""Masses and excesses against the same sums and differences in 60 digits."""

import numpy as np
import pytest

from jostle.boolean.kernels import series
from jostle.boolean.kernels.recursions import ACTIVATIONS, moments
from jostle.boolean.kernels.series import Masses, line
from tests.boolean.kernels import reference

mp = reference.mp


def masses_of(polynomial):
    return Masses(*polynomial[:2], float(np.sum(polynomial[2::2])), float(np.sum(polynomial[3::2])))


def as_tuple(masses):
    return masses.constant, masses.linear, masses.even, masses.odd


def test_products_and_sums_are_those_of_polynomials():
    left, right = np.random.default_rng(0).uniform(0, 1, (2, 6))
    found = as_tuple(masses_of(left) * masses_of(right) + masses_of(left) * 3.0 + 0.5)
    expected = np.convolve(left, right)
    expected[:6] += 3 * left
    expected[0] += 0.5
    assert found == pytest.approx(as_tuple(masses_of(expected)), rel=1e-14)


def test_the_values_at_both_ends():
    polynomial = np.random.default_rng(1).uniform(0, 1, 7)
    masses = masses_of(polynomial)
    at = [np.polynomial.polynomial.polyval(c, polynomial) for c in (0, 1, -1)]
    found = masses.moving, masses.total, masses.swing
    assert found == pytest.approx([at[1] - at[0], at[1], at[1] - at[2]])


FUNCTIONS = {  # f, f'
    "excess_of_arcsine": (lambda r: mp.asin(r), lambda r: 1 / mp.sqrt(1 - r * r)),
    "excess_of_arc_cosine": (lambda r: mp.sqrt(1 - r * r) + r * (mp.pi - mp.acos(r)), lambda r: mp.pi - mp.acos(r)),
    "excess_of_inverse_root": (lambda r: 1 / mp.sqrt(1 - r * r), lambda r: r / (1 - r * r) ** mp.mpf(1.5)),
}
STARTS = [1e-12, 1e-6, 0.01, 0.099, 0.11, 0.4, 0.9, 1 - 1e-6, 1 - 1e-12]


@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize("curved", [0.0, 0.3])
@pytest.mark.parametrize(
    ("name", "complement"),
    [
        ("excess_of_arcsine", 0.0),
        ("excess_of_arcsine", 0.02),
        ("excess_of_arc_cosine", 0.0),
        ("excess_of_inverse_root", 0.02),
    ],
)
def test_the_excess_over_the_tangent_keeps_its_digits(name, complement, curved, start):
    """Of a series that starts at S(0), with 1 - S(1) = complement and a part ``curved`` of the way in even terms.

    The tolerance counts the parts that a function adds to the series' own, slope * even and slope * odd.
    """
    f, slope = FUNCTIONS[name]
    with mp.workdps(60):
        rest = mp.mpf(1 - complement) * (1 - mp.mpf(start))
        r, e = (1 - mp.mpf(complement)) * mp.mpf(start), rest * curved * mp.mpf(start)
        linear, o = (rest - e) * 3 / 4, (rest - e) / 4
        up, down = (f(s) - f(r) - slope(r) * (s - r) for s in (r + linear + e + o, r - linear + e - o))
        expected = (up + down) / 2, (up - down) / 2
        around = float(expected[0] + slope(r) * e), float(expected[1] + slope(r) * o)
        at = series.Angles.of(Masses(*map(float, (r, linear, e, o))), float(1 - (r + linear + e + o)))
        found = getattr(series, name)(at)
        for mine, exact, size in zip(found, expected, around, strict=True):
            assert abs(mine - float(exact)) < 3e-14 * size


def test_small_series_lose_nothing():
    for size in (0.49, 1e-3, 1e-40):
        with mp.workdps(120):
            r, linear, e, o = (mp.mpf(size) * part for part in (0.125, 0.5, 0.125, 0.25))
            found = series.masses_of_small(Masses(*map(float, (r, linear, e, o))))
            for name, masses in zip(("excess_of_arcsine", "excess_of_inverse_root"), found, strict=True):
                f, slope = FUNCTIONS[name]
                ends = f(r + linear + e + o), f(r - linear + e - o)
                even, odd = (ends[0] + ends[1]) / 2 - f(r), (ends[0] - ends[1]) / 2 - slope(r) * linear
                expected = [float(x) for x in (f(r), slope(r) * linear, even, odd)]
                assert as_tuple(masses) == pytest.approx(expected, rel=1e-14)


@pytest.mark.parametrize("name", ACTIVATIONS)
@pytest.mark.parametrize(("weight", "bias"), [(2.0, 0.0), (0.1, 0.0), (1.5, 0.2), (0.1, 5.0), (30.0, 1.0)])
def test_the_masses_of_an_activation_are_its_values_at_both_ends(name, weight, bias):
    covariance = line(bias, weight, terms=4)
    found = moments(ACTIVATIONS[name], covariance, weight + bias)
    at = [moments(ACTIVATIONS[name], np.asarray(weight * c + bias), weight + bias) for c in (0.0, 1.0, -1.0)]
    for which, moment in enumerate(found):
        zero, one, minus = (float(pair[which]) for pair in at)
        masses = moment.masses
        assert moment.coefficients[:2] == pytest.approx([masses.constant, masses.linear], rel=1e-14)
        assert masses.constant == pytest.approx(zero, rel=1e-14)
        assert masses.total == pytest.approx(one, rel=1e-14)
        assert masses.total - masses.swing == pytest.approx(minus, rel=1e-13, abs=1e-14 * one)


def test_a_sine_and_its_argument():
    for x in (1e-200, 1e-5, 0.5, 0.999, 1.001, 3.0):
        with mp.workdps(460):
            exact = float(mp.mpf(x) - mp.sin(mp.mpf(x)))
        assert series.lag(x) == pytest.approx(exact, rel=2e-15)
        assert series.lag(-x) == -series.lag(x)
