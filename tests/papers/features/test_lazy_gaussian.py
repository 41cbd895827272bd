"""A matrix revealed product by product: it must be one matrix, and a Gaussian one."""

import torch

from jostle_papers.p2402_02969.features import DeepRandomFeatures, LazyGaussian, isotropic_words
from jostle_papers.p2402_02969.features.word_sensitivity import sensitivity_at


def test_answers_are_those_of_one_matrix():
    lazy = LazyGaussian(6, 5, std=0.7, seed=1)
    right, left = torch.randn(3, 5), torch.randn(2, 6)
    first, second = lazy.product(right), lazy.transposed_product(left)
    more = lazy.product(torch.eye(5))  # (5, 6): now all of V is known
    matrix = more.T
    assert torch.allclose(right @ matrix.T, first, atol=1e-10)
    assert torch.allclose(left @ matrix, second, atol=1e-10)
    assert torch.allclose(lazy.transposed_product(torch.eye(6)), matrix, atol=1e-10)
    assert lazy.directions_known == (5, 6) or lazy.directions_known[0] == 5
    assert torch.equal(lazy.product(torch.zeros(1, 5)), torch.zeros(1, 6))


def test_the_law_is_gaussian_even_if_questions_depend_on_answers():
    """x -> V x -> V^T V x -> V (V^T V x), then all of V: its entries must be independent N(0, std^2)."""
    rows = []
    for seed in range(500):
        lazy = LazyGaussian(3, 2, std=2.0, seed=seed)
        x = torch.ones(1, 2)
        for _ in range(2):
            x = lazy.transposed_product(lazy.product(x))
        rows.append(lazy.product(torch.eye(2)).flatten() / 2.0)
    sample = torch.stack(rows)  # (500, 6)
    covariance = sample.T @ sample / len(sample)
    spread = torch.where(torch.eye(6) > 0, 2.0, 1.0).sqrt() / len(sample) ** 0.5
    assert ((covariance - torch.eye(6)).abs() / spread).max() < 4
    assert sample.mean(0).abs().max() < 4 * len(sample) ** -0.5
    assert (sample.pow(4).mean(0) - 3).abs().max() < 4 * (96 / len(sample)) ** 0.5


def test_gradients_are_products_with_the_transposed_matrix():
    lazy = LazyGaussian(4, 3, std=1.0)
    x = torch.randn(2, 3, requires_grad=True)
    weights = torch.randn(2, 4)
    (gradient,) = torch.autograd.grad((lazy.times(x) * weights).sum(), x)
    matrix = lazy.product(torch.eye(3)).T
    assert torch.allclose(gradient, weights @ matrix, atol=1e-10)


def test_lazy_deep_features_have_the_law_of_dense_ones():
    words = isotropic_words(1, num_tokens=4, dim=3, seed=0)[0]
    found = {}
    for lazy in (False, True):
        found[lazy] = torch.tensor(
            [
                sensitivity_at(
                    DeepRandomFeatures(num_tokens=4, dim=3, depth=2, seed=seed, lazy=lazy).one_word(words, 1),
                    starts=2, steps=5, draws=4,
                ).value
                for seed in range(40)
            ]
        )  # fmt: skip
    a, b = found[False], found[True]
    assert abs(float(a.mean() - b.mean())) < 4 * float(((a.var() + b.var()) / 40).sqrt())


def test_memory_grows_with_questions_and_not_with_the_matrix():
    lazy = LazyGaussian(200_000, 200_000, std=1.0)  # 320 GB as a matrix
    lazy.product(torch.ones(1, 200_000))
    assert lazy.directions_known == (1, 0)


def test_layers_keep_the_size_of_the_input():
    """He's variance: E ||phi_l||^2 = ||X||^2 k / (n d) at every depth; relative changes would not see another one."""
    words = isotropic_words(1, num_tokens=4, dim=3)
    for lazy in (False, True):
        made = [DeepRandomFeatures(num_tokens=4, dim=3, depth=3, width=200, seed=s, lazy=lazy) for s in range(40)]
        sizes = torch.stack([phi(words).square().sum() for phi in made]) / 200
        assert abs(float(sizes.mean()) - 1) < 4 * float(sizes.std()) / 40**0.5
        assert float(sizes.std()) < 0.5
