"""Random features: the matrix in blocks, and features drawn without it, whose law must be the same."""

import pytest
import torch

from jostle.base.errors import UsageError
from jostle_papers.p2402_02969.features import (
    DeepRandomFeatures,
    DrawnFeatures,
    RandomFeatures,
    RecomputedWord,
    isotropic_words,
    shared_mean_words,
)


@pytest.mark.parametrize("held", [0, 2**20])
def test_blocks_make_the_plain_map(held):
    words = isotropic_words(3, num_tokens=4, dim=5)
    phi = RandomFeatures(num_tokens=4, dim=5, width=7, seed=2, held=held)
    matrix = torch.cat([phi.block(i) for i in range(4)], dim=1)  # (7, 20)
    assert torch.allclose(phi(words), torch.relu(words.flatten(1) @ matrix.T))
    assert torch.equal(phi(words), RandomFeatures(num_tokens=4, dim=5, width=7, seed=2)(words))
    assert not torch.equal(phi.block(0), phi.block(1))


@pytest.mark.parametrize("activation", ["relu", "tanh", "identity"])
def test_one_word_is_the_full_map(activation):
    words = isotropic_words(1, num_tokens=6, dim=5)[0]
    phi = RandomFeatures(num_tokens=6, dim=5, activation=activation)
    changes = isotropic_words(1, num_tokens=4, dim=5, seed=3)[0]
    fast, plain = phi.one_word(words, 2), RecomputedWord(phi, words, 2)
    assert torch.allclose(fast.features(changes), plain.features(changes), rtol=1e-12)
    assert bool((fast.relative_change(changes * 0.9) <= fast.upper_bound(5**0.5)).all())


def test_sums_have_variance_1_and_blocks_1_over_nd():
    words = isotropic_words(1, num_tokens=10, dim=8)
    phi = RandomFeatures(num_tokens=10, dim=8, width=4000, activation="identity")
    entries = phi.block(3).flatten() * 80**0.5
    for sample in (phi(words)[0], entries):
        assert abs(float(sample.var()) - 1) < 4 * (2 / len(sample)) ** 0.5


def drawn_pairs(words, seeds, position=1, width=400):
    """(V flat(X) of all inputs, V_i) stacked as columns, (seeds width, N + d)."""
    parts = [DrawnFeatures(words, position, width=width, activation="identity", seed=seed) for seed in range(seeds)]
    return torch.cat([torch.cat([part.sums.T, part.block], dim=1) for part in parts])


def test_drawn_features_have_the_joint_law_of_the_matrix():
    """Rows of V are Gaussian, so the joint covariance of all that is drawn is all of the law."""
    words = shared_mean_words(3, num_tokens=4, dim=5, seed=1)
    flat, size = words.flatten(1), 20
    selected = torch.zeros(5, size)
    selected[:, 5:10] = torch.eye(5)  # v -> v_i
    functionals = torch.cat([flat, selected])  # (3 + 5, 20)
    expected = functionals @ functionals.T / size
    sample = drawn_pairs(words, seeds=50)  # 20,000 rows
    found = sample.T @ sample / len(sample)
    spread = ((expected.square() + expected.diag()[:, None] * expected.diag()) / len(sample)).sqrt()
    assert ((found - expected).abs() / spread).max() < 4.5  # 36 different entries
    assert sample.mean(0).abs().max() < 4.5 * len(sample) ** -0.5
    kurtosis = (sample / sample.std(0)).pow(4).mean(0)
    assert (kurtosis - 3).abs().max() < 4.5 * (24 / len(sample)) ** 0.5


def test_a_moved_word_has_the_law_of_the_full_matrix():
    words = isotropic_words(1, num_tokens=8, dim=6, seed=0)
    changes = isotropic_words(1, num_tokens=1, dim=6, seed=4)[0]
    options = {"width": 100}
    full = [
        RandomFeatures(num_tokens=8, dim=6, seed=s, **options).one_word(words[0], 3).relative_change(changes)
        for s in range(150)
    ]
    short = [DrawnFeatures(words, 3, seed=s, **options).one_word().relative_change(changes) for s in range(150)]
    a, b = torch.cat(full), torch.cat(short)
    assert abs(float(a.mean() - b.mean())) < 4 * float((a.var() / len(a) + b.var() / len(b)).sqrt())


def test_repeated_and_dependent_inputs_are_told_alike():
    words = isotropic_words(2, num_tokens=3, dim=2)
    words = torch.cat([words, words[:1], words.sum(0, keepdim=True)])
    drawn = DrawnFeatures(words, 0, activation="identity")
    assert torch.allclose(drawn.sums[2], drawn.sums[0], atol=1e-7)
    assert torch.allclose(drawn.sums[3], drawn.sums[0] + drawn.sums[1], atol=1e-7)
    # All of v is known from enough inputs: the block must be exactly what they say.
    many = isotropic_words(8, num_tokens=3, dim=2, seed=1)
    full = DrawnFeatures(many, 1, activation="identity")
    solved = torch.linalg.lstsq(many.flatten(1), full.sums).solution  # (6, k)
    assert torch.allclose(full.block, solved[2:4].T, atol=1e-6)


def test_one_word_of_drawn_features_starts_at_the_features():
    words = isotropic_words(3, num_tokens=4, dim=5)
    drawn = DrawnFeatures(words, 2)
    assert torch.equal(drawn.one_word(1).clean, drawn.features[1])
    assert torch.equal(drawn.block, DrawnFeatures(words, 2).block)
    assert DrawnFeatures(words.float(), 2).block.dtype == torch.float32
    with pytest.raises(UsageError, match=r"words must be inputs of shape \(inputs, num_tokens, dim\), got \(4, 5\)"):
        DrawnFeatures(words[0], 0)


def test_deep_features_of_one_layer_change_like_random_features():
    words = isotropic_words(1, num_tokens=4, dim=3)[0]
    deep = DeepRandomFeatures(num_tokens=4, dim=3, depth=1, width=50, seed=1)
    flat = RandomFeatures(num_tokens=4, dim=3, width=50)
    flat._kept = {i: deep._layers[0][:, 3 * i : 3 * i + 3] / 2**0.5 for i in range(4)}
    changes = isotropic_words(1, num_tokens=5, dim=3, seed=2)[0]
    assert torch.allclose(
        deep.one_word(words, 1).relative_change(changes), flat.one_word(words, 1).relative_change(changes)
    )


def test_deep_one_word_is_the_full_map():
    words = isotropic_words(1, num_tokens=4, dim=3)[0]
    deep = DeepRandomFeatures(num_tokens=4, dim=3, depth=3, width=20)
    changes = isotropic_words(1, num_tokens=5, dim=3, seed=2)[0]
    assert torch.allclose(
        deep.one_word(words, 1).features(changes), RecomputedWord(deep, words, 1).features(changes), rtol=1e-12
    )
    with pytest.raises(UsageError, match=r"built for words of shape \(4, 3\), got \(5, 3\)"):
        deep(torch.ones(1, 5, 3))
