"""The decoder against transformers' GPT-2 with the same weights."""

import math

import pytest
import torch

from jostle import models
from tests.models.test_text_create import texts

SIZES = {"vocabulary": 20, "classes": 3, "dim": 12, "depth": 3, "heads": 4, "mlp_dim": 20, "max_length": 15}


@pytest.fixture(scope="module")
def twins():
    """GPT-2 of transformers, and ours with its weights."""
    from transformers.models.gpt2.configuration_gpt2 import GPT2Config
    from transformers.models.gpt2.modeling_gpt2 import GPT2ForSequenceClassification

    config = GPT2Config(
        vocab_size=20,
        n_positions=15,
        n_embd=12,
        n_layer=3,
        n_head=4,
        n_inner=20,
        num_labels=3,
        pad_token_id=0,
        bos_token_id=1,
        eos_token_id=1,
    )
    theirs = GPT2ForSequenceClassification(config).double().eval()
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for weight in theirs.parameters():
            weight += 0.3 * torch.randn(weight.shape, generator=generator, dtype=torch.float64)
    ours = models.create("text-decoder", **SIZES).double().eval()
    copy_gpt2(theirs, ours)
    return theirs, ours


def copy_gpt2(theirs, ours):
    source, state = theirs.state_dict(), {}
    state["embeddings.words.weight"] = source["transformer.wte.weight"]
    state["embeddings.positions.weight"] = source["transformer.wpe.weight"]
    state["classifier.weight"] = source["score.weight"]
    for part in ("weight", "bias"):
        state[f"norm.{part}"] = source[f"transformer.ln_f.{part}"]
        for block in range(3):
            to, prefix = f"blocks.{block}", f"transformer.h.{block}"
            # Their matrices are the other way round.
            of_block = {
                key: tensor.T if tensor.dim() == 2 else tensor for key, tensor in source.items() if prefix in key
            }
            joint = of_block[f"{prefix}.attn.c_attn.{part}"]
            state[f"{to}.attention.to_queries.{part}"] = joint[:12]
            state[f"{to}.attention.to_keys_values.{part}"] = joint[12:]
            state[f"{to}.attention.to_out.{part}"] = of_block[f"{prefix}.attn.c_proj.{part}"]
            state[f"{to}.attention_norm.{part}"] = of_block[f"{prefix}.ln_1.{part}"]
            state[f"{to}.mlp_norm.{part}"] = of_block[f"{prefix}.ln_2.{part}"]
            state[f"{to}.mlp.0.{part}"] = of_block[f"{prefix}.mlp.c_fc.{part}"]
            state[f"{to}.mlp.2.{part}"] = of_block[f"{prefix}.mlp.c_proj.{part}"]
    ours.load_state_dict(state)


def count(model):
    return sum(weight.numel() for weight in model.parameters())


def test_the_logits_of_gpt2(twins):
    theirs, ours = twins
    ids = texts(15, 3, 8, 1)
    expected = theirs(ids, attention_mask=(ids != 0).long()).logits
    torch.testing.assert_close(ours(ids), expected, rtol=1e-10, atol=1e-10)
    assert expected.std(dim=0).min() > 0.01  # The texts are told apart.


def test_the_logits_of_gpt2_with_padding_on_the_left(twins):
    theirs, ours = twins
    ids = texts(15, 3, 8, 1, side="left")
    mask = (ids != 0).long()
    places = (mask.cumsum(dim=1) - 1).clamp(min=0)
    expected = theirs(ids, attention_mask=mask, position_ids=places).logits
    torch.testing.assert_close(ours(ids), expected, rtol=1e-10, atol=1e-10)


def test_the_size_of_gpt2(twins):
    theirs, ours = twins
    assert count(theirs) == count(ours)


def test_default_size():
    block = 4 * (256 * 256 + 256) + (256 * 1024 + 1024) + (1024 * 256 + 256) + 4 * 256
    expected = 8000 * 256 + 512 * 256 + 4 * block + 512 + 512
    assert count(models.create("text-decoder")) == expected == 5_339_136


def test_weights_start_as_in_gpt2():
    model = models.create("text-decoder", vocabulary=500, dim=64, depth=2, seed=0)
    for name, weight in model.named_parameters():
        if weight.dim() == 1:
            assert torch.equal(weight, torch.ones_like(weight) if "norm.weight" in name else torch.zeros_like(weight))
            continue
        std = 0.02 / math.sqrt(4) if name.endswith(("to_out.weight", "mlp.2.weight")) else 0.02
        drawn = weight[1:] if "words" in name else weight
        # The standard error of a standard deviation of n normal numbers is std / sqrt(2 n).
        assert abs(drawn.std() / std - 1) < 4 / math.sqrt(2 * drawn.numel())
