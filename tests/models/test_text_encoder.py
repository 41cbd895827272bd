"""The encoder against transformers' RoBERTa with the same weights."""

import pytest
import torch

from jostle import models
from jostle.base.errors import UsageError
from tests.models.test_text_create import texts

SIZES = {"vocabulary": 20, "classes": 3, "dim": 12, "depth": 3, "heads": 4, "mlp_dim": 20, "max_length": 15}


@pytest.fixture(scope="module")
def twins():
    """RoBERTa of transformers, and ours with its weights."""
    from transformers.models.roberta.configuration_roberta import RobertaConfig
    from transformers.models.roberta.modeling_roberta import RobertaForSequenceClassification

    config = RobertaConfig(
        vocab_size=20,
        hidden_size=12,
        num_hidden_layers=3,
        num_attention_heads=4,
        intermediate_size=20,
        max_position_embeddings=16,  # of which the first is for padding
        type_vocab_size=1,
        pad_token_id=0,
        layer_norm_eps=1e-5,
        num_labels=3,
    )
    theirs = RobertaForSequenceClassification(config).double().eval()
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for weight in theirs.parameters():
            weight += 0.3 * torch.randn(weight.shape, generator=generator, dtype=torch.float64)
    ours = models.create("text-encoder", **SIZES).double().eval()
    copy_roberta(theirs, ours)
    return theirs, ours


def copy_roberta(theirs, ours):
    source, state = theirs.state_dict(), {}
    name = "roberta.embeddings"
    state["embeddings.words.weight"] = source[f"{name}.word_embeddings.weight"]
    types = source[f"{name}.token_type_embeddings.weight"]  # one, added to every token
    state["embeddings.positions.weight"] = source[f"{name}.position_embeddings.weight"][1:] + types
    for part in ("weight", "bias"):
        state[f"embeddings.norm.{part}"] = source[f"{name}.LayerNorm.{part}"]
        state[f"dense.{part}"] = source[f"classifier.dense.{part}"]
        state[f"classifier.{part}"] = source[f"classifier.out_proj.{part}"]
        for block in range(3):
            from_, to = f"roberta.encoder.layer.{block}", f"blocks.{block}"
            of_attention = [source[f"{from_}.attention.self.{each}.{part}"] for each in ("key", "value")]
            state[f"{to}.attention.to_keys_values.{part}"] = torch.cat(of_attention)
            state[f"{to}.attention.to_queries.{part}"] = source[f"{from_}.attention.self.query.{part}"]
            state[f"{to}.attention.to_out.{part}"] = source[f"{from_}.attention.output.dense.{part}"]
            state[f"{to}.attention_norm.{part}"] = source[f"{from_}.attention.output.LayerNorm.{part}"]
            state[f"{to}.mlp.0.{part}"] = source[f"{from_}.intermediate.dense.{part}"]
            state[f"{to}.mlp.2.{part}"] = source[f"{from_}.output.dense.{part}"]
            state[f"{to}.mlp_norm.{part}"] = source[f"{from_}.output.LayerNorm.{part}"]
    ours.load_state_dict(state)


def count(model):
    return sum(weight.numel() for weight in model.parameters())


def test_the_logits_of_roberta(twins):
    theirs, ours = twins
    ids = texts(15, 3, 8, 1)
    expected = theirs(ids, attention_mask=(ids != 0).long()).logits
    torch.testing.assert_close(ours(ids), expected, rtol=1e-10, atol=1e-10)
    assert expected.std(dim=0).min() > 0.01  # The texts are told apart.


def test_the_size_of_roberta(twins):
    theirs, ours = twins
    assert count(theirs) - count(ours) == 2 * 12  # the position of padding and the one type


def test_the_size_of_paper_1():
    """By hand; the paper's 20,428,034 with two unused positions and a type, each 256 numbers, less."""
    model = models.create("text-encoder", vocabulary=265)  # and 50,000 words more
    block = 4 * (256 * 256 + 256) + (256 * 3072 + 3072) + (3072 * 256 + 256) + 4 * 256
    expected = 50_265 * 256 + 512 * 256 + 512 + 4 * block + (256 * 256 + 256) + (256 * 2 + 2)
    assert count(model) + 50_000 * 256 == expected == 20_428_034 - 768 == 20_427_266


@pytest.mark.parametrize("attention", ["relu", "linear"])
def test_attention_changes_no_size_but_the_logits(attention):
    softmax, other = (models.create("text-encoder", **SIZES, attention=kind, seed=0) for kind in ("softmax", attention))
    assert count(softmax) == count(other)
    other.load_state_dict(softmax.state_dict())
    ids = texts(5, 3)
    assert not torch.allclose(softmax.eval()(ids), other.eval()(ids), rtol=1e-6)


def test_a_block_for_one_token_is_that_token_of_the_block():
    model = models.create("text-encoder", **SIZES, seed=0).double().eval()
    tokens = torch.randn(2, 5, 12, generator=torch.Generator().manual_seed(0))
    whole = model.blocks[0](tokens, None)
    one = model.blocks[0](tokens, None, torch.tensor([3, 0]))
    torch.testing.assert_close(one[:, 0], torch.stack([whole[0, 3], whole[1, 0]]))


def test_unknown_attention():
    with pytest.raises(UsageError, match=r"unknown attention 'sofmax'; did you mean softmax\?"):
        models.create("text-encoder", attention="sofmax")
