"""Attention features: the definition, and the update for one word against it."""

import pytest
import torch

from jostle.base.errors import UsageError
from jostle_papers.p2402_02969.features import (
    RandomAttention,
    RecomputedWord,
    create,
    isotropic_words,
    shared_mean_words,
)
from tests.papers.features.oracles import attention, moved

KINDS = ("softmax", "relu", "linear")


def relative_error(found, expected):
    return float((found - expected).norm() / expected.norm())


@pytest.mark.parametrize("kind", KINDS)
def test_the_map_is_its_definition(kind):
    words = isotropic_words(2, num_tokens=5, dim=4)
    found = RandomAttention(dim=4, attention=kind, seed=3)
    for one, features in zip(words, found(words), strict=True):
        assert torch.allclose(features, attention(one, found.weight, kind), atol=1e-12)


@pytest.mark.parametrize("rank", [None, 3, 8])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("position", [0, 4, 8])
def test_one_word_is_the_full_map_to_1e_7(kind, rank, position):
    words = shared_mean_words(1, num_tokens=9, dim=8, seed=1)[0]
    phi = RandomAttention(dim=8, attention=kind, rank=rank, seed=2)
    changes = isotropic_words(1, num_tokens=6, dim=8, seed=5)[0] * torch.tensor([0.0, 1e-6, 0.1, 1, 1, 10])[:, None]
    fast, plain = phi.one_word(words, position), RecomputedWord(phi, words, position)
    assert relative_error(fast.clean, plain.clean) < 1e-12
    assert relative_error(fast.features(changes), plain.features(changes)) < 1e-12
    assert torch.allclose(plain.features(changes)[3], phi(moved(words, position, changes[3])[None])[0])
    assert relative_error(fast.relative_change(changes), plain.relative_change(changes)) < 1e-7
    assert fast.relative_change(changes)[0] < 1e-14


@pytest.mark.parametrize("kind", KINDS)
def test_the_square_of_the_change_and_its_gradient_are_those_of_the_features(kind):
    words = isotropic_words(1, num_tokens=12, dim=6)[0]
    phi = RandomAttention(dim=6, attention=kind)
    found = []
    for one_word in (phi.one_word(words, 3), RecomputedWord(phi, words, 3)):
        changes = isotropic_words(1, num_tokens=4, dim=6, seed=9)[0].requires_grad_()
        squares = one_word.squared_change(changes)
        found.append((squares.detach(), torch.autograd.grad(squares.sum(), changes)[0]))
    assert torch.allclose(found[0][0], found[1][0], rtol=1e-10)
    assert torch.allclose(found[0][1], found[1][1], rtol=1e-8, atol=1e-9)


def test_several_positions_share_work_and_nothing_else():
    words = isotropic_words(1, num_tokens=5, dim=4)[0]
    phi = RandomAttention(dim=4)
    changes = torch.eye(4)
    for position, one_word in zip((3, 0), phi.one_words(words, (3, 0)), strict=True):
        assert torch.equal(one_word.features(changes), phi.one_word(words, position).features(changes))
        assert torch.equal(one_word.word, words[position])


def test_a_row_without_positive_scores_is_0_before_and_after():
    phi = RandomAttention(dim=2, attention="relu")
    phi.weight.copy_(-torch.eye(2))
    words = torch.tensor([[1.0, 0.0], [1.0, 1.0], [2.0, 0.5]])  # all scores are negative
    assert phi(words[None]).abs().max() == 0
    one_word = phi.one_word(words, 1)
    changes = torch.tensor([[-4.0, 0.0], [0.1, 0.0]])
    expected = torch.stack([phi(moved(words, 1, change)[None])[0] for change in changes])
    assert torch.allclose(one_word.features(changes), expected)
    assert expected[0].abs().max() > 1
    assert torch.allclose(one_word.squared_change(changes), expected.square().sum(1))


def test_entries_of_all_score_matrices_have_variance_1_over_d():
    for options in ({}, {"rank": 100}, {"rank": 10}):
        entries = RandomAttention(dim=100, seed=1, **options).weight.flatten()
        # sd of a sample variance of products of rank r is about sqrt(2 + 4 (d / r) ...) / d; 4 of them are below 0.25
        assert abs(float(entries.var()) * 100 - 1) < 0.25


def test_a_single_word_and_float32():
    words = isotropic_words(1, num_tokens=1, dim=3)[0]
    for kind in KINDS:
        phi = RandomAttention(dim=3, attention=kind)
        changes = torch.eye(3)
        assert torch.allclose(
            phi.one_word(words, 0).features(changes), torch.stack([phi(moved(words, 0, c)[None])[0] for c in changes])
        )
    assert RandomAttention(dim=3).one_word(words.float(), 0).features(torch.eye(3).float()).dtype == torch.float32


def test_suggested_directions_raise_the_share_of_the_word():
    words = shared_mean_words(1, num_tokens=40, dim=64, seed=0)[0]
    one_word = create("raf", num_tokens=40, dim=64, seed=0).one_word(words, 0)
    directions = one_word.directions()
    assert directions.shape == (7, 64)
    moves = 8 * directions / directions.norm(dim=1, keepdim=True)
    random = isotropic_words(1, num_tokens=200, dim=64, seed=1)[0]
    assert one_word.relative_change(moves).max() > 2 * one_word.relative_change(random).max()


def test_wrong_use_is_one_line():
    words = isotropic_words(1, num_tokens=4, dim=3)
    phi = RandomAttention(dim=3)
    with pytest.raises(UsageError, match=r"position=4 must be a whole number from 0 to 3"):
        phi.one_word(words[0], 4)
    with pytest.raises(UsageError, match=r"words must be one input of floats, \(num_tokens, dim\), got \(1, 4, 3\)"):
        phi.one_word(words, 0)
    with pytest.raises(UsageError, match=r"unknown attention 'soft'"):
        RandomAttention(dim=3, attention="soft")
    with pytest.raises(UsageError, match=r"unknown feature map 'raff'; did you mean raf"):
        create("raff", num_tokens=4, dim=3)
    with pytest.raises(UsageError, match=r"feature map 'raf' cannot be made with \{'depth': 2\}"):
        create("raf", num_tokens=4, dim=3, depth=2)
