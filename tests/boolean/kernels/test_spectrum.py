import numpy as np
import pytest

from jostle.base.errors import UsageError
from jostle.boolean import cube
from jostle.boolean.kernels import KERNELS, Spectrum, gram_eigenvalues, kernel_spectrum, recursions, spectrum_of
from jostle.boolean.kernels.recursions import make_layers
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
    ("mlp-ck", 1, "erf", 16.0, 1.0),  # converges beyond 1, and 600 terms leave 1e-11 of it
    ("mlp-ck", 1, "relu", 2.0, 1e-6),  # the odd terms are a millionth of the even ones
    ("mlp-ck", 12, "erf", 90.0, 0.0),
    ("mlp-ck", 2, "relu", 0.1, 5.0),  # nearly a constant
    ("mlp-ntk", 20, "relu", 1.0, 1.0),  # all inputs drawn together: correlations 1 - 1e-6 and up
    ("linear-attention-ck", 2, None, 1.0, 0.0),
    ("linear-attention-ntk", 6, None, 1.0, 0.0),  # c^729: beyond the terms kept for n = 10
    ("linear-attention-ntk", 2, "relu", 2.0, 0.0),
    ("linear-attention-ntk", 2, "erf", 1.0, 0.2),
]

LARGE_BIAS = [  # n, weight_variance, bias_variance, depth of mlp-ck with relu: the remainder is far below Psi(1)
    (200, 2.0, 5.0, 1),
    (200, 2.0, 100.0, 1),
    (40, 0.5, 1.0, 6),
    (40, 1.0, 1.0, 20),
    (60, 0.1, 5.0, 2),
    (40, 0.1, 1.0, 3),
    (40, 0.5, 1.0, 40),
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
    layers = make_layers(depth, activation, w if activation else None, b)
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


@pytest.mark.parametrize(("n", "weight_variance", "bias_variance", "depth"), LARGE_BIAS)
def test_a_large_constant_costs_no_digits(n, weight_variance, bias_variance, depth):
    case = "mlp-ck", depth, "relu", weight_variance, bias_variance
    assert_agrees_with_the_reference(n, case, digits=2 * n, error=4e-11 if n == 200 else 2e-12)


@pytest.mark.parametrize("weight_variance", [8.0, 10.0, 12.0, 14.0, 16.0, 18.0, 20.0, 30.0])
@pytest.mark.parametrize("name", ["mlp-ck", "mlp-ntk"])
def test_a_remainder_near_rounding_errors_is_neither_lost_nor_noise(name, weight_variance):
    """From 1e-19 to 1e-5 of the mass of its parity."""
    assert_agrees_with_the_reference(24, (name, 1, "erf", weight_variance, 1.0), digits=80, error=2e-13)


@pytest.mark.parametrize("n", [3, 7, 12])
@pytest.mark.parametrize("depth", [1, 2, 3])
def test_series_in_the_cube_of_the_correlation_have_a_remainder_too(n, depth):
    assert_agrees_with_the_reference(n, ("linear-attention-ntk", depth, "erf", 1.0, 0.2), digits=80, error=2e-13)


def test_layers_that_shrink_their_input_fiftyfold():
    assert_agrees_with_the_reference(40, ("mlp-ck", 11, "erf", 0.02, 1e-5), digits=400, error=2e-13)


@pytest.mark.parametrize("bias", [1e-3, 1e-6, 1e-9])
def test_attention_with_relu_and_a_small_bias_loses_digits_as_stated(bias):
    case = "linear-attention-ck", 1, "relu", 2.0, bias
    assert_agrees_with_the_reference(16, case, digits=80, error=4e-15 * 2.0 / bias)


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
    with pytest.raises(UsageError, match="degree=65 must be a whole number from 0 to 64"):
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


def test_a_finite_series_has_no_remainder_though_its_ends_are_rounded():
    """It falls like a geometric series and stops: mu_k = 0 beyond its degree."""
    finite = 0.7 ** np.arange(40)
    ends = finite.sum() * (1 + 4e-15), finite[0::2].sum() - finite[1::2].sum()
    found = spectrum_of(finite, 60, ends=ends)
    np.testing.assert_array_equal(found.log_eigenvalues, spectrum_of(finite, 60).log_eigenvalues)
    assert np.all(np.isneginf(found.log_eigenvalues[40:]))


def test_recursions_on_numbers_take_whole_arrays():
    layers = make_layers(2, "erf", None, 0.1)
    together = recursions.mlp(np.linspace(-1, 1, 5), layers)[1]
    alone = [float(recursions.mlp(np.asarray(c), layers)[1]) for c in np.linspace(-1, 1, 5)]
    np.testing.assert_allclose(together, alone, rtol=1e-14)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"name": "mlp-nkt"}, "unknown kernel 'mlp-nkt'; did you mean mlp-ntk"),
        ({"n": 0}, "n=0 must be a whole number from 1 to 1000"),
        ({"n": 5000}, "n=5000 must be a whole number from 1 to 1000"),
        ({"n": 10.0}, "n=10.0 must be a whole number"),
        ({"n": "8"}, "n='8' must be a whole number"),
        ({"n": True}, "n=True must be a whole number"),
        ({"depth": 0}, "depth=0 must be a whole number from 1 to 10000"),
        ({"depth": 10**9}, "depth=1000000000 must be a whole number from 1 to 10000"),
        ({"depth": 2.0}, "depth=2.0 must be a whole number"),
        ({"activation": "rellu"}, "unknown activation 'rellu'; did you mean relu"),
        ({"weight_variance": -1.0}, "weight_variance=-1.0 must be a finite number above 0"),
        ({"weight_variance": 0.0}, "weight_variance=0.0"),
        ({"weight_variance": "2"}, "weight_variance='2' must be a finite number above 0"),
        ({"bias_variance": -0.1}, "bias_variance=-0.1 must be a finite number, at least 0"),
        ({"bias_variance": float("nan")}, "bias_variance=nan"),
        ({"name": "linear-attention-ck", "bias_variance": 0.5}, "name an activation"),
        (
            {"name": "linear-attention-ck", "n": 8, "depth": 8, "activation": "relu", "weight_variance": 4.0},
            "the kernel under- or overflows at depth 8 with weight_variance 4;",
        ),
        ({"name": "linear-attention-ck", "depth": 30, "activation": "erf"}, "under- or overflows at depth 30"),
        ({"name": "linear-attention-ck", "depth": 30, "activation": "relu", "weight_variance": 0.1}, "under- or over"),
        ({"name": "mlp-ck", "depth": 60, "weight_variance": 1e6}, "under- or overflows at depth 60"),
        ({"name": "mlp-ntk", "depth": 60, "weight_variance": 1e-6}, "under- or overflows at depth 60"),
    ],
)
def test_wrong_use_is_answered_in_one_line(arguments, message):
    with pytest.raises(UsageError, match=message):
        kernel_spectrum(**{"name": "mlp-ntk", "n": 4} | arguments)


def test_whole_numbers_of_numpy_are_whole_numbers():
    plain = kernel_spectrum("mlp-ntk", 8, 2)
    np.testing.assert_array_equal(kernel_spectrum("mlp-ntk", np.int64(8), np.uint8(2)), plain)
    assert len(spectrum_of([1, 1], np.int32(2))) == 3
    with pytest.raises(UsageError, match=r"n=2\.5 must be a whole number"):
        spectrum_of([1, 1], 2.5)
    with pytest.raises(UsageError, match=r"ends\[0\]=0\.0 must be a finite number above 0"):
        spectrum_of([1, 1], 2, ends=(0.0, 0.0))


@pytest.mark.parametrize("coefficients", [[], [1.0, -0.1], [np.nan], [[1.0]], [0.0, 0.0], ["a"], None])
def test_coefficients_that_are_no_kernel(coefficients):
    with pytest.raises(UsageError, match="coefficients"):
        spectrum_of(coefficients, 3)
