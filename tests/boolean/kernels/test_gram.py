import numpy as np
import pytest
import torch

from jostle.base.errors import UsageError
from jostle.boolean import cube
from jostle.boolean.kernels import attention_gram, fourier_projection, gram_eigenvalues, premise


@pytest.fixture
def characters():
    """chi_U(x) as a matrix (x, U) for n = 4, by products."""
    x, subsets = cube.points(4), cube.points(4) > 0
    return np.array([[np.prod(point[subset]) for subset in subsets] for point in x], dtype=float)


def test_the_diagonal_is_the_quotient_with_each_monomial(characters):
    half = np.random.default_rng(1).normal(size=(16, 16))
    gram = half @ half.T
    found = fourier_projection(gram)
    rotated = characters.T @ gram @ characters / 16**2
    np.testing.assert_allclose(found.diagonal, np.diagonal(rotated), rtol=1e-12)
    off = (rotated**2).sum() - (np.diagonal(rotated) ** 2).sum()
    assert found.off_diagonal_share == pytest.approx(off / (rotated**2).sum(), rel=1e-12)
    for k in range(5):
        group = np.diagonal(rotated)[cube.degrees(4) == k]
        assert (found.minimum[k], found.mean[k], found.maximum[k]) == pytest.approx(
            (group.min(), group.mean(), group.max())
        )
    assert not found.is_diagonal
    assert found.diagonal.sum() == pytest.approx(np.trace(gram) / 16)
    assert gram_eigenvalues(gram) == pytest.approx(np.linalg.eigvalsh(rotated)[::-1])


def test_a_function_of_the_product_has_monomials_but_no_single_value_for_a_degree(characters):
    """Three kinds of kernel: of x * y with unequal mu(U); of <x, y>; of neither."""
    mu = 1.0 + np.arange(16)
    gram = characters * mu @ characters.T
    found = premise(gram)
    assert found.is_function_of_product
    assert not found.holds
    projection = fourier_projection(gram)
    assert projection.is_diagonal
    np.testing.assert_allclose(projection.diagonal, mu, rtol=1e-12)
    assert not projection.is_weakly_biased  # the full set has the largest of all

    by_degree = characters * (5.0 - cube.degrees(4)) @ characters.T
    assert premise(by_degree).holds
    assert fourier_projection(by_degree).is_weakly_biased

    one_exception = (5.0 - cube.degrees(4)) * np.where(
        np.arange(16) == 3, 0.1, 1
    )  # mu({3, 4}) = 0.3 < mu of the full set
    assert not fourier_projection(characters * one_exception @ characters.T).is_weakly_biased

    tilted = by_degree.copy()
    tilted[3, 5] = tilted[5, 3] = tilted[3, 5] + 1e-3
    assert not premise(tilted).is_function_of_product
    assert not fourier_projection(tilted).is_diagonal


def test_the_spread_is_over_pairs_with_one_product():
    gram = np.random.default_rng(2).normal(size=(8, 8))
    gram += gram.T
    found = premise(gram)
    x = cube.points(3).astype(int)
    products = x @ x.T
    for product, low, high in zip(found.products, found.minimum, found.maximum, strict=True):
        values = gram[products == product]
        assert (low, high) == (values.min(), values.max())
    assert found.spread == (found.maximum - found.minimum).max()
    assert 0 < found.spread_within_product <= found.spread


def test_a_transposed_matrix_is_the_same_matrix():
    """Its columns lie one after the other in memory; 64 x 64, so that more than one matrix product is taken."""
    gram = attention_gram(3, 2)
    gram = (gram + gram.T) / 2
    transposed = gram.T
    assert not transposed.flags.c_contiguous
    found, expected = fourier_projection(transposed), fourier_projection(gram)
    for one, other in zip(vars(found).values(), vars(expected).values(), strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_kernel_of_zeros_is_diagonal():
    assert fourier_projection(np.zeros((4, 4))).off_diagonal_share == 0


@pytest.mark.parametrize("look", [fourier_projection, premise, gram_eigenvalues])
@pytest.mark.parametrize(
    ("gram", "message"),
    [
        (np.ones((6, 6)), "gram has 6 values; expected 2\\^n"),
        (np.ones((4, 8)), "gram has the shape \\(4, 8\\)"),
        (np.ones(4), "gram has the shape \\(4,\\)"),
        (np.full((4, 4), np.nan), "nan or inf"),
        (np.triu(np.ones((4, 4))), "not symmetric"),
        (torch.ones(4, 4, requires_grad=True), "gram is a Tensor .* give gram.detach\\(\\)$"),
        ([["a", "b"], ["c", "d"]], "gram is a list that is no array of numbers"),
    ],
)
def test_wrong_use_is_answered_in_one_line(look, gram, message):
    with pytest.raises(UsageError, match=message):
        look(gram)
