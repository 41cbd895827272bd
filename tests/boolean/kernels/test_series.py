from math import comb

import numpy as np
import pytest
from scipy.special import erf

from jostle.boolean.kernels.recursions import ACTIVATIONS, moments
from jostle.boolean.kernels.series import inverse_root, line
from tests.boolean.kernels import reference


def test_the_inverse_root_has_the_binomial_coefficients():
    expected = [comb(2 * m, m) / 4**m for m in range(300)]
    found = inverse_root(line(0.0, 1.0, terms=600).coefficients, complement=1.0)
    np.testing.assert_allclose(found[0::2], expected, rtol=1e-13)
    assert not np.any(found[1::2])


def test_the_inverse_root_squared_times_what_it_inverts_is_one():
    path = np.array([0.3, 0.2, 0.0, 0.1, 0.05, 0.0, 0.0, 0.0])
    root = inverse_root(path, complement=0.7)
    inverted = -np.convolve(path, path)[:8]
    inverted[0] += 1
    product = np.convolve(np.convolve(root, root)[:8], inverted)[:8]
    np.testing.assert_allclose(product, [1, 0, 0, 0, 0, 0, 0, 0], atol=1e-14)


def test_the_inverse_root_of_a_path_that_starts_just_below_one():
    """1 - path(0) = 1e-9 comes from the caller; from path(0) itself it would be wrong in the eighth digit."""
    with reference.mp.workdps(60):
        complement = reference.mp.mpf(10) ** -9
        exact = reference.mp.taylor(lambda t: 1 / reference.mp.sqrt(1 - (1 - complement * (1 - t)) ** 2), 0, 20)
    found = inverse_root(line(1 - 1e-9, 1e-9, terms=21).coefficients, complement=1e-9)
    np.testing.assert_allclose(found, [float(x) for x in exact], rtol=1e-13)


@pytest.mark.parametrize("name", ACTIVATIONS)
@pytest.mark.parametrize("bias", [0.0, 0.4])
def test_series_and_numbers_are_one_function(name, bias):
    """Inside the circle of convergence the sum of the series is the closed form."""
    covariance = line(bias, 1.5, terms=200)
    found = moments(ACTIVATIONS[name], covariance, 1.5 + bias)
    for c in (-0.6, 0.0, 0.3, 0.7):
        exact = moments(ACTIVATIONS[name], np.asarray(1.5 * c + bias), 1.5 + bias)
        for series, number in zip(found, exact, strict=True):
            assert np.polynomial.polynomial.polyval(c, series.coefficients) == pytest.approx(float(number), rel=1e-12)


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_moments_are_gaussian_integrals(name):
    """Against a quadrature of E[phi(u) phi(v)] and E[phi'(u) phi'(v)] on a fine grid."""
    phi, slope = {
        "relu": (lambda u: np.maximum(u, 0), lambda u: (u > 0) * 1.0),
        "erf": (erf, lambda u: 2 / np.sqrt(np.pi) * np.exp(-(u**2))),
    }[name]
    p, q, k = 1.3, 0.6, 0.5
    grid = np.linspace(-8, 8, 601) + 1e-4
    weight = np.exp(-(grid**2) / 2) * (grid[1] - grid[0]) / np.sqrt(2 * np.pi)
    u = np.sqrt(p) * grid[:, None]
    v = k / np.sqrt(p) * grid[:, None] + np.sqrt(q - k**2 / p) * grid
    weights = weight[:, None] * weight
    found = ACTIVATIONS[name].of_numbers(np.asarray(k), p, q)
    assert float(found[0]) == pytest.approx((weights * phi(u) * phi(v)).sum(), abs=1e-4)
    assert float(found[1]) == pytest.approx(
        (weights * slope(u) * slope(v)).sum(), abs=4e-3
    )  # relu' jumps between points of the grid
