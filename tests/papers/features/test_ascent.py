"""The ascent: against exact maxima, and what it promises by construction."""

import math

import pytest
import torch

from jostle.base.errors import UsageError
from jostle_papers.p2402_02969.features import RandomFeatures, RecomputedWord, ascend, isotropic_words, word_sensitivity
from jostle_papers.p2402_02969.features.feature_map import FeatureMap
from jostle_papers.p2402_02969.features.word_sensitivity import sensitivity_at


class Identity(FeatureMap):
    def forward(self, words):
        return words.flatten(1)


def test_identity_has_word_sensitivity_1_over_sqrt_n():
    words = isotropic_words(1, num_tokens=7, dim=5)[0]
    found = word_sensitivity(Identity(), words, starts=2, steps=5, draws=4)
    assert found.value == pytest.approx(7**-0.5, rel=1e-12)
    assert found.average == pytest.approx(7**-0.5, rel=1e-12)
    assert found.constructed is None
    assert found.absolute == pytest.approx(7**-0.5, rel=1e-12)
    assert set(found.by_position) == set(range(7))


def test_a_linear_map_reaches_its_operator_norm():
    words = isotropic_words(1, num_tokens=5, dim=12)[0]
    phi = RandomFeatures(num_tokens=5, dim=12, activation="identity", seed=3)
    for radius in (0.5, 1.0):
        found = word_sensitivity(phi, words, radius=radius, positions=[2, 4])
        exact = {i: phi.one_word(words, i).upper_bound(radius * math.sqrt(12)) for i in (2, 4)}
        norms = {i: float(torch.linalg.svdvals(phi.block(i))[0]) for i in (2, 4)}
        assert exact[2] == pytest.approx(norms[2] * radius * math.sqrt(12) / float(phi(words[None]).norm()))
        assert found.by_position == pytest.approx(exact, rel=1e-6)
        assert found.value == max(found.by_position.values())
        assert found.position == max(exact, key=exact.get)
        assert float(found.change.norm()) == pytest.approx(radius * math.sqrt(12))


def test_best_iterate_is_kept_and_the_ball_is_never_left():
    calls = []

    def rugged(changes):
        calls.append(changes.detach().norm(dim=1).max())
        return torch.sin(40 * changes).sum(1)

    starts = torch.randn(6, 3)
    found = ascend(rugged, starts, length=1.0, steps=30, step=5.0)
    assert max(calls) <= 1 + 1e-12
    first = rugged(starts / starts.norm(dim=1, keepdim=True).clamp(min=1))
    assert (found.values >= first).all()
    assert torch.allclose(rugged(found.changes), found.values)


def test_no_gradient_stays_and_nan_is_no_value():
    flat = ascend(lambda changes: changes.sum(1) * 0, torch.ones(1, 2), length=3.0, steps=3)
    assert flat.changes.tolist() == [[1.0, 1.0]]
    broken = ascend(lambda changes: (changes.sum(1) - 2).sqrt(), torch.tensor([[0.0, 1.0], [2.0, 1.0]]), 9.0, steps=5)
    assert broken.values[0] == -math.inf
    assert broken.values[1] > 1
    assert broken.changes.isfinite().all()
    with pytest.raises(UsageError, match="ascent needs starts"):
        ascend(lambda changes: changes.sum(1), torch.zeros(0, 2), 1.0)


def test_radius_0_and_wrong_arguments():
    words = isotropic_words(1, num_tokens=3, dim=4)[0]
    assert word_sensitivity(Identity(), words, radius=0, starts=2, steps=3).value == 0
    with pytest.raises(UsageError, match=r"radius=-1 must be a finite number, at least 0"):
        word_sensitivity(Identity(), words, radius=-1)
    with pytest.raises(UsageError, match="positions is empty"):
        word_sensitivity(Identity(), words, positions=[])
    with pytest.raises(UsageError, match="features of the input are all 0"):
        sensitivity_at(RecomputedWord(lambda batch: batch.flatten(1) * 0, words, 0))
    with pytest.raises(UsageError, match=r"draws=.* must be a whole number, at least 1"):
        word_sensitivity(Identity(), words, draws=0)
