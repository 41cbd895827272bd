"""Continuing from the key-value cache of a language model gives what reading whole texts gives."""

import numpy as np
import pytest

import jostle
from jostle import Deletion, Embeddings, GaussianNoise, Grid, UniformToken, Words
from jostle.sampling import readers
from jostle.sampling.caches import CacheReader
from tests.integrations.families import CAUSAL, SINGLE, TEXTS, VOCABULARY, network, padded

pytest.importorskip("transformers")

WITHOUT = ("rwkv",)  # it has a state of another kind


@pytest.fixture
def continued(monkeypatch):
    """The tokens (rows, tokens) that were read from a cache on."""
    shapes, own = [], CacheReader._continue

    def watched(self, layers, start, *given, **named):
        shapes.append((start, tuple((given[0] if given else named["input_ids"]).shape)))
        return own(self, layers, start, *given, **named)

    monkeypatch.setattr(CacheReader, "_continue", watched)
    return shapes


def both(ask):
    with readers.switched_off():
        plain = ask()
    return plain, ask()


@pytest.mark.parametrize("kind", CAUSAL)
def test_with_and_without_the_cache(kind, continued):
    model, size = network(kind), 128 if len(kind) % 2 else 3
    moves = [(Embeddings(), GaussianNoise(1.0), "kl"), (Words(), UniformToken(VOCABULARY), "total-variation:later")]
    for tokens, perturbation, response in moves:

        def ask(tokens=tokens, perturbation=perturbation, response=response):
            return jostle.measure(
                model, padded("left"), tokens=tokens, perturbation=perturbation, response=response, plan=Grid(6),
                batch_size=size,
            )  # fmt: skip

        plain, found = both(ask)
        assert np.allclose(found.per_input, plain.per_input, rtol=1e-4 if kind in SINGLE else 1e-9)
        assert found.passes == plain.passes
    assert bool(continued) == (kind not in WITHOUT)
    assert all(start > 0 for start, _ in continued)


def test_influence_with_and_without_the_cache(continued):
    model = network("llama")
    plain, found = both(lambda: jostle.influence(model, TEXTS, half_width=0.3))
    assert len(continued) > 3
    assert np.array_equal(found.matrix, plain.matrix, equal_nan=True)
    assert (found.passes, found.stopped) == (plain.passes, plain.stopped)


def test_a_layer_inside_is_moved_alike(continued):
    model = network("gpt2")
    view = Embeddings(module="transformer.h.0.mlp")
    plain, found = both(
        lambda: jostle.measure(model, TEXTS, tokens=view, perturbation=GaussianNoise(1.0), response="kl", plan=Grid(6))
    )
    assert continued
    assert found.value == pytest.approx(plain.value, rel=1e-9)
    assert plain.value > 0


def test_where_it_does_not_apply_whole_texts_are_read(continued):
    model = network("llama")
    jostle.measure(model, TEXTS, tokens=Words(), perturbation=Deletion(), response="kl")
    jostle.measure(
        model, TEXTS, tokens=Words(), perturbation=UniformToken(VOCABULARY), response="kl:every", plan=Grid(6)
    )
    handle = model.model.norm.register_forward_hook(lambda *_: None)
    jostle.measure(model, TEXTS, tokens=Words(), perturbation=UniformToken(VOCABULARY), response="kl", plan=Grid(6))
    handle.remove()
    assert not continued


def test_a_cache_that_gives_other_answers_is_not_used(monkeypatch, continued):
    model = network("llama")
    own, calls = type(model).forward, []

    def forgetful(self, *given, past_key_values=None, **named):
        calls.append(past_key_values is not None)
        return own(self, *given, **({} if past_key_values is None else {"position_ids": None} | named) or named)

    monkeypatch.setattr(type(model), "forward", forgetful)
    monkeypatch.setattr("jostle.sampling.caches._NEEDED", set())
    found = jostle.measure(
        model, TEXTS, tokens=Words(), perturbation=UniformToken(VOCABULARY), response="kl", plan=Grid(6)
    )
    assert len(continued) == sum(calls) == 1  # the check alone
    assert found.value > 0
