import numpy as np
import pytest

from jostle.boolean import cube
from jostle.boolean.kernels import KERNELS, Spectrum, gram_eigenvalues, kernel_spectrum, recursions, spectrum_of
from jostle.boolean.kernels.zonal import checked_layers
from jostle.errors import UsageError
from tests.boolean.kernels import reference

CASES = [  # name, depth, activation, weight_variance, bias_variance
    ("mlp-ck", 1, "relu", 2.0, 0.0),
    ("mlp-ntk", 1, "relu", 2.0, 0.0),
    ("mlp-ck", 3, "relu", 2.0, 0.0),
    ("mlp-ntk", 3, "relu", 1.5, 0.3),
    ("mlp-ck", 1, "erf", 1.0, 0.0),
    ("mlp-ntk", 3, "erf", 1.0, 0.1),
    ("mlp-ntk", 2, "erf", 50.0, 1.0),  # converges just beyond 1: the remainder counts
    ("mlp-ntk", 2, "erf", 0.05, 0.01),  # mu_n = 1e-297 at n = 200
    ("linear-attention-ck", 2, None, 1.0, 0.0),
    ("linear-attention-ntk", 6, None, 1.0, 0.0),  # c^729: beyond the terms kept for n = 10
    ("linear-attention-ntk", 2, "relu", 2.0, 0.0),
    ("linear-attention-ntk", 2, "erf", 1.0, 0.2),
]


def spectrum(name, n, depth, activation, weight_variance, bias_variance):
    if activation is None:
        return kernel_spectrum(name, n, depth)
    return kernel_spectrum(
        name, n, depth, activation=activation, weight_variance=weight_variance, bias_variance=bias_variance
    )


def numbers(name, c, *settings):
    """The kernel itself at correlations c, from the recursion on numbers."""
    recursion, which = KERNELS[name]
    depth, activation, w, b = settings
    layers = checked_layers(depth, activation, w if activation else None, b)
    return recursion(np.asarray(c), layers)[which]


def assert_agrees_with_the_reference(n, case, digits, error):
    name, *settings = case
    kernel = reference.mlp if name.startswith("mlp") else reference.attention
    with reference.mp.workdps(digits):
        exact = reference.log_spectrum(lambda c: kernel(c, *settings)[name.endswith("ntk")], n)
    found = spectrum(name, n, *settings).log_eigenvalues
    np.testing.assert_allclose(found, exact, rtol=0, atol=error)  # of logarithms: relative errors


@pytest.mark.parametrize("n", [10, 64])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_every_eigenvalue_agrees_with_the_sum_over_distances_in_many_digits(n, case):
    assert_agrees_with_the_reference(n, case, digits=160, error=2e-12)


@pytest.mark.parametrize("case", [CASES[3], CASES[5]], ids=str)
def test_two_hundred_bits(case):
    assert_agrees_with_the_reference(200, case, digits=400, error=2e-11)


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=str)
def test_two_hundred_bits_in_all_cases(case):
    assert_agrees_with_the_reference(200, case, digits=400, error=2e-11)


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES[:7], ids=str)
def test_five_hundred_bits(case):
    assert_agrees_with_the_reference(500, case, digits=700, error=2e-10)


@pytest.mark.parametrize("n", [1, 2, 3, 8])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_gram_matrix_has_these_eigenvalues(n, case):
    name, *settings = case
    x = cube.points(n).astype(float)
    gram = numbers(name, x @ x.T / n, *settings)
    found = spectrum(name, n, *settings)
    expected = np.sort(found.eigenvalues[cube.degrees(n)])[::-1]
    np.testing.assert_allclose(gram_eigenvalues(gram), expected, rtol=1e-9, atol=1e-13 * found.trace)


@pytest.mark.parametrize("n", [1, 7, 129])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_trace_and_order(n, case):
    name, *settings = case
    found = spectrum(name, n, *settings)
    assert found.trace == pytest.approx(float(numbers(name, 1.0, *settings)), rel=1e-14)
    assert found.shares.sum() == pytest.approx(1, rel=1e-11)
    assert found.is_weakly_biased
    assert np.all(found.even_gaps >= -1e-12 * found.trace)
    assert np.all(found.odd_gaps >= -1e-12 * found.trace)


def test_a_spectrum_out_of_order_is_called_so():
    assert Spectrum("in order", 4, np.log([3.0, 0.5, 2.0, 0.1, 1.0]), trace=1.0).is_weakly_biased
    swapped = Spectrum("out of order", 4, np.log([1.0, 0.5, 2.0, 0.1, 1.0]), trace=1.0)
    assert not swapped.is_weakly_biased
    np.testing.assert_allclose(swapped.even_gaps, [-1, 1])
    np.testing.assert_allclose(swapped.odd_gaps, [0.4])


def test_one_hidden_relu_layer_knows_only_one_odd_degree():
    """kappa_1 has no odd power but the first: a known weakness of one hidden layer without biases."""
    found = kernel_spectrum("mlp-ck", 30)
    assert found[1] > 0
    assert np.all(found[3::2] == 0)
    assert kernel_spectrum("mlp-ck", 30, depth=2)[3] > 0


def test_one_token_attention_is_the_cube_of_the_correlation():
    found = kernel_spectrum("linear-attention-ck", 5)
    expected = np.zeros(6)
    expected[1], expected[3] = (3 * 5 - 2) / 125, 6 / 125  # x_1 and x_1 x_2 x_3 in (x_1 + ... + x_5)^3
    np.testing.assert_allclose(found, expected, rtol=1e-13)
    np.testing.assert_allclose(kernel_spectrum("linear-attention-ntk", 5), 4 * expected, rtol=1e-13)


def test_a_spectrum_behaves_like_its_array():
    found = kernel_spectrum("mlp-ntk", n=64, depth=2)
    assert len(found) == 65
    assert np.asarray(found).shape == (65,)
    assert list(found) == found.eigenvalues.tolist()
    assert found[0] == found.eigenvalues[0]
    assert found.share(1) == pytest.approx(64 * found[1] / found.trace)
    assert (found.name, found.n, found.underflows) == ("mlp-ntk", 64, False)
    with pytest.raises(UsageError, match="degree is 65; expected 0 to 64"):
        found.share(65)


def test_logarithms_go_on_where_eigenvalues_underflow():
    case = "mlp-ck", 1, "erf", 0.01, 0.0  # the coefficients of its series fall below 1e-308 as well
    found = spectrum(case[0], 200, *case[1:])
    assert found.underflows
    assert found[199] == 0
    assert np.isfinite(found.log_eigenvalues[199])
    assert_agrees_with_the_reference(200, case, digits=700, error=2e-11)
    assert found.shares.sum() == pytest.approx(1, rel=1e-11)


def test_a_given_series():
    """c^m has a closed spectrum for m = 2; ends speak for the terms left out."""
    np.testing.assert_allclose(spectrum_of([0, 0, 1.0], 5), [1 / 5, 0, 2 / 25, 0, 0, 0], atol=1e-15)
    geometric = 0.9 ** np.arange(2000)
    cut = spectrum_of(geometric[:100], 4, ends=(10.0, 1 / 1.9))
    np.testing.assert_allclose(cut, spectrum_of(geometric, 4), rtol=1e-9)
    assert not np.allclose(spectrum_of(geometric[:100], 4), spectrum_of(geometric, 4), rtol=1e-7)
    stretched = spectrum_of(np.ones(2000), 4, radius=1 / 0.9)
    np.testing.assert_allclose(stretched, spectrum_of(geometric, 4), rtol=1e-12)


def test_recursions_on_numbers_take_whole_arrays():
    layers = checked_layers(2, "erf", None, 0.1)
    together = recursions.mlp(np.linspace(-1, 1, 5), layers)[1]
    alone = [float(recursions.mlp(np.asarray(c), layers)[1]) for c in np.linspace(-1, 1, 5)]
    np.testing.assert_allclose(together, alone, rtol=1e-14)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"name": "mlp-nkt"}, "unknown kernel 'mlp-nkt'; did you mean mlp-ntk"),
        ({"n": 0}, "n is 0; expected 1 to 1000"),
        ({"n": 5000}, "n is 5000; expected 1 to 1000"),
        ({"depth": 0}, "depth is 0; expected at least 1"),
        ({"activation": "rellu"}, "unknown activation 'rellu'; did you mean relu"),
        ({"weight_variance": -1.0}, "weight_variance is -1.0; expected a number above 0"),
        ({"weight_variance": 0.0}, "weight_variance is 0.0"),
        ({"bias_variance": -0.1}, "bias_variance is -0.1; expected 0 or more"),
        ({"bias_variance": float("nan")}, "bias_variance is nan"),
        ({"name": "linear-attention-ck", "bias_variance": 0.5}, "name an activation"),
    ],
)
def test_wrong_use_is_answered_in_one_line(arguments, message):
    with pytest.raises(UsageError, match=message):
        kernel_spectrum(**{"name": "mlp-ntk", "n": 4} | arguments)


@pytest.mark.parametrize("coefficients", [[], [1.0, -0.1], [np.nan], [[1.0]], [0.0, 0.0]])
def test_coefficients_that_are_no_kernel(coefficients):
    with pytest.raises(UsageError, match="coefficients"):
        spectrum_of(coefficients, 3)
