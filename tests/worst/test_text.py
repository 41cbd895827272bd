"""Embedded texts, moved through the hook."""

import numpy as np
import pytest
import torch

import jostle
from jostle import Embeddings
from jostle.base.errors import UsageError
from jostle.worst import worst_case
from tests.tokens.made_up_texts import LENGTHS, Bag, network, padded, sentences

FEW = {"starts": 4, "steps": 6, "draws": 4}


def embedded_norms(model, words):
    """Norms of the embedded tokens of each sentence."""
    return [model.embeddings(ids[None], torch.ones_like(ids[None])).detach()[0].norm(dim=1).numpy() for ids in words]


@pytest.mark.parametrize(("side", "batch_size"), [("right", 128), ("left", 128), ("left", 20)])
def test_a_bag_of_words_moves_as_far_as_its_weights_say(side, batch_size):
    model, words = Bag(), sentences()
    found = worst_case(
        model, padded(words, side), tokens=Embeddings(), radius=[0.5, 2.0], response="margin", batch_size=batch_size,
        **FEW,
    )  # fmt: skip
    weight = float(model.weights.detach().norm())
    for row, norms in enumerate(embedded_norms(model, words)):
        for level, radius in enumerate((0.5, 2.0)):
            exact = radius * norms * weight / len(norms)
            np.testing.assert_allclose(found.values[level, row, : len(norms)], exact, rtol=1e-5)
        assert np.isnan(found.values[:, row, len(norms) :]).all()


def test_a_word_is_flippable_exactly_if_the_logit_is_within_reach():
    model, words = Bag(), sentences([4, 5, 6, 7, 8, 9, 10, 11] * 3)
    found = worst_case(model, padded(words), tokens=Embeddings(), radius=1.0, **FEW)
    weight, flips = float(model.weights.detach().norm()), []
    for row, (ids, norms) in enumerate(zip(words, embedded_norms(model, words), strict=True)):
        logit = abs(float(model(ids[None]).detach()))
        exact = norms * weight / len(norms) > logit
        assert np.array_equal(found.values[0, row, : len(norms)] > 0, exact)
        flips.append(exact.mean())
    assert 0.1 < np.mean(flips) < 0.9
    assert found.value == pytest.approx(np.mean(flips))


@pytest.mark.parametrize("kind", ["roberta", "gpt2"])
def test_models_of_transformers_are_ascended_where_they_embed(kind):
    texts = padded(sentences([5, 6, 4]))
    found = worst_case(
        network(kind), texts, tokens=Embeddings(special=False), radius=[0.5, 1.0], response="margin", **FEW
    )
    assert found.has_gradient
    special = texts["special_tokens_mask"].bool().numpy()
    assert np.array_equal(np.isnan(found.values[0]), special)
    assert (found.values[1][~special] > 1.2 * found.max_of[-1, 1][~special]).mean() > 0.8
    twin = jostle.measure(
        network(kind), texts, tokens=Embeddings(special=False), perturbation=jostle.Sphere(1.0, relative=True),
        response="margin", plan=jostle.Grid(4),
    )  # fmt: skip
    assert found.at().mean.value == pytest.approx(twin.value, rel=1e-6)


def test_positions_count_tokens_from_the_start_of_a_text():
    words = sentences()
    left, right = (
        worst_case(Bag(), padded(words, side), tokens=Embeddings(), positions=[0, 4], response="margin", **FEW)
        for side in ("left", "right")
    )
    np.testing.assert_allclose(left.values, right.values, rtol=1e-9)
    has_fifth = np.asarray(LENGTHS) > 4
    assert np.array_equal(np.isfinite(left.values[0, :, 4]), has_fifth)
    assert np.isfinite(left.values[0, :, 0]).all()


def test_the_worst_position_of_a_text():
    words = sentences()
    found = worst_case(
        Bag(), padded(words), tokens=Embeddings(), positions="worst", candidates=1, response="margin", **FEW
    )
    norms = embedded_norms(Bag(), words)
    assert found.worst_positions().tolist() == [int(np.argmax(part)) for part in norms]


def test_whole_texts_are_refused():
    with pytest.raises(UsageError, match="worst_case one token"):
        worst_case(Bag(), padded(sentences()), tokens="embeddings:after,whole=true", **FEW)
