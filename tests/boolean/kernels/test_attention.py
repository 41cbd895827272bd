import itertools

import numpy as np
import pytest

from jostle.base.errors import UsageError
from jostle.boolean import cube
from jostle.boolean.kernels import attention_gram, fourier_projection, gram_eigenvalues, kernel_spectrum, premise
from jostle.boolean.kernels.recursions import ACTIVATIONS


def printed_kernel(x, y, tokens):
    """sum over a of K_aa times the sum over i, j of K_ij^2, in loops."""
    x, y = np.reshape(x, (tokens, -1)), np.reshape(y, (tokens, -1))
    products = [[float(np.dot(a, b)) / x.shape[1] for b in y] for a in x]
    return sum(products[a][a] for a in range(tokens)) * sum(k**2 for row in products for k in row)


@pytest.mark.parametrize(("tokens", "dim"), [(1, 6), (6, 1), (2, 3), (3, 2)])
def test_one_layer_is_the_printed_formula(tokens, dim):
    points = cube.points(tokens * dim)
    expected = [[printed_kernel(x, y, tokens) for y in points] for x in points]
    found = attention_gram(tokens, dim, scale=1) * tokens  # ours divides the sum over positions by T
    np.testing.assert_allclose(found, expected, atol=1e-12)


def pairwise_kernel(x, y, activation, depth):
    """(CK, NTK) of one pair, flatten, w = 1.7, b = 0.3: blocks (x, x), (x, y), (y, y) followed together, in loops."""
    tokens, dim = np.shape(x)
    scale = tokens + tokens * (tokens - 1) / dim
    pairs = {"xx": (x, x), "xy": (x, y), "yy": (y, y)}
    kernel = {name: np.dot(a, np.transpose(b)) / dim for name, (a, b) in pairs.items()}
    tangent = {name: np.zeros((tokens, tokens)) for name in pairs}
    for _ in range(depth):
        for name in pairs:
            k, t = kernel[name], tangent[name]
            total = sum(k[i, j] ** 2 for i in range(tokens) for j in range(tokens)) / scale
            mixed = sum(k[i, j] * t[i, j] for i in range(tokens) for j in range(tokens)) / scale
            kernel[name], tangent[name] = k * total, 3 * k * total + t * total + 2 * k * mixed
        if activation:
            before = {name: 1.7 * k + 0.3 for name, k in kernel.items()}
            for name in pairs:
                for a, b in itertools.product(range(tokens), repeat=2):
                    p, q = before[name[0] * 2][a, a], before[name[1] * 2][b, b]
                    value, slope = ACTIVATIONS[activation].of_numbers(np.asarray(before[name][a, b]), p, q)
                    kernel[name][a, b] = value
                    tangent[name][a, b] = (before[name][a, b] + 1.7 * tangent[name][a, b]) * slope
    covariance = np.trace(kernel["xy"]) / tokens
    return covariance, covariance + np.trace(tangent["xy"]) / tokens


@pytest.mark.parametrize("activation", [None, "relu", "erf"])
def test_two_layers_agree_with_each_pair_followed_alone(activation):
    options = {"activation": activation, "weight_variance": 1.7, "bias_variance": 0.3} if activation else {}
    points = cube.points(6).reshape(-1, 3, 2).astype(float)
    grams = [attention_gram(3, 2, kind=kind, depth=2, **options) for kind in ("ck", "ntk")]
    for row, column in [(0, 0), (0, 63), (5, 9), (17, 44), (44, 17), (62, 3)]:
        expected = pairwise_kernel(points[row], points[column], activation, depth=2)
        assert [gram[row, column] for gram in grams] == pytest.approx(expected, rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("kind", ["ck", "ntk"])
@pytest.mark.parametrize(
    "options",
    [
        {"depth": 1},
        {"depth": 3},
        {"depth": 2, "activation": "relu"},
        {"depth": 2, "activation": "erf", "weight_variance": 1.7, "bias_variance": 0.3},
    ],
    ids=str,
)
def test_one_token_is_the_kernel_known_by_name(kind, options):
    gram = attention_gram(1, 6, kind=kind, **options)
    found, exact = fourier_projection(gram), kernel_spectrum(f"linear-attention-{kind}", 6, **options)
    assert premise(gram).holds
    assert found.is_diagonal
    assert found.is_weakly_biased
    for summary in (found.minimum, found.mean, found.maximum):
        np.testing.assert_allclose(summary, exact, atol=1e-13 * exact.trace)


@pytest.mark.parametrize("kind", ["ck", "ntk"])
@pytest.mark.parametrize("depth", [1, 2])
def test_one_bit_tokens_keep_the_premise(kind, depth):
    """d = 1: the sum over i, j of (x_i y_j)^2 is T^2, whatever x and y are."""
    gram = attention_gram(6, 1, kind=kind, depth=depth)
    x = cube.points(6).astype(float)
    factor = {("ck", 1): 1, ("ntk", 1): 4, ("ck", 2): 1, ("ntk", 2): 13}[kind, depth]
    np.testing.assert_allclose(gram, factor * x @ x.T / 6, atol=1e-12)
    assert premise(gram).holds


def test_the_mean_readout_breaks_the_premise_even_for_one_bit_tokens():
    gram = attention_gram(6, 1, readout="mean")
    sums = cube.points(6).mean(1)
    np.testing.assert_allclose(gram, np.outer(sums, sums), atol=1e-12)
    found = premise(gram)
    assert not found.holds
    assert not found.is_function_of_product
    assert fourier_projection(gram).off_diagonal_share == pytest.approx(5 / 6)


def test_four_tokens_of_two_bits_break_the_premise():
    """The kernel as printed takes values from 12 to 32 at <x, y> = 4, and mixes the degrees 1 and 3."""
    gram = attention_gram(4, 2, scale=1) * 4
    found, projection = premise(gram), fourier_projection(gram)
    assert not found.holds
    assert not found.is_function_of_product
    at_four = found.products.tolist().index(4)
    assert (found.minimum[at_four], found.maximum[at_four]) == (12, 32)
    assert projection.off_diagonal_share == pytest.approx(3 / 76)
    assert (projection.minimum[3], projection.maximum[3]) == pytest.approx((0, 0.25))
    # x_i goes with the three x_i x_j x_k, (j, k) another token, in a block with the rows (17, sqrt 3), (sqrt 3, 3) / 4
    pair = np.linalg.eigvalsh(np.array([[17, 3**0.5], [3**0.5, 3]]) / 4)
    expected = np.repeat([pair[1], pair[0], 0], [8, 8, 240])
    np.testing.assert_allclose(gram_eigenvalues(gram), expected, atol=1e-10)
    assert pair == pytest.approx([(5 - 13**0.5) / 2, (5 + 13**0.5) / 2])


def test_where_the_premise_fails_the_order_may_fail_too():
    """Two layers with relu on four tokens of two bits: parity of all bits is preferred to most sets of six."""
    found = fourier_projection(attention_gram(4, 2, kind="ntk", depth=2, activation="relu"))
    assert not found.is_weakly_biased
    assert found.mean[8] > 3 * found.mean[6]
    assert found.off_diagonal_share > 0.5


def test_values_by_hand_at_two_pairs_with_the_same_product():
    """Flipping both bits of one token leaves the token's line; flipping one bit each of two tokens does not."""
    x = np.ones(8)
    same_token, two_tokens = x.copy(), x.copy()
    same_token[:2] = -1
    two_tokens[[0, 2]] = -1
    assert printed_kernel(x, same_token, 4) == 32
    assert printed_kernel(x, two_tokens, 4) == 16
    points = [tuple(p) for p in itertools.product((-1, 1), repeat=8)]
    gram = attention_gram(4, 2, scale=1) * 4
    row = points.index(tuple(x))
    assert gram[row, points.index(tuple(same_token))] == 32
    assert gram[row, points.index(tuple(two_tokens))] == 16


@pytest.mark.parametrize("activation", [None, "relu", "erf"])
@pytest.mark.parametrize("kind", ["ck", "ntk"])
def test_kernels_are_positive_and_blind_to_the_order_of_tokens(kind, activation):
    gram = attention_gram(3, 2, kind=kind, depth=2, activation=activation)
    assert gram_eigenvalues(gram).min() > -1e-12
    points = cube.points(6)
    rolled = np.roll(points.reshape(-1, 3, 2), 1, axis=1).reshape(-1, 6)
    order = ((rolled + 1) // 2) @ (1 << np.arange(5, -1, -1))
    np.testing.assert_allclose(gram[np.ix_(order, order)], gram, rtol=1e-12)


def test_the_scale_keeps_the_kernel_near_one():
    for tokens, dim in ((1, 8), (8, 1), (2, 4), (4, 2)):
        assert np.diagonal(attention_gram(tokens, dim)).mean() == pytest.approx(1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"tokens": 0}, "tokens=0 must be a whole number, at least 1"),
        ({"tokens": 2.0}, "tokens=2.0 must be a whole number"),
        ({"dim": True}, "dim=True must be a whole number"),
        ({"depth": 2.0}, "depth=2.0 must be a whole number"),
        ({"depth": 8, "activation": "relu", "weight_variance": 9.0}, "the kernel under- or overflows at depth 8"),
        ({"depth": 30, "activation": "erf"}, "the kernel under- or overflows at depth 30"),
        ({"tokens": 7}, "at most 12 bits"),
        ({"kind": "cnk"}, "unknown kernel kind 'cnk'; did you mean ck"),
        ({"readout": "men"}, "unknown readout 'men'; did you mean mean"),
        ({"depth": 0}, "depth=0"),
        ({"scale": -1.0}, "scale=-1.0"),
        ({"activation": "gelu"}, "unknown activation 'gelu'"),
    ],
)
def test_wrong_use_is_answered_in_one_line(arguments, message):
    with pytest.raises(UsageError, match=message):
        attention_gram(**{"tokens": 2, "dim": 2} | arguments)
