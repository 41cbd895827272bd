"""The contract of all text models: ids to logits, padding without influence, one clear line for what cannot be read."""

import pytest
import torch

from jostle import models
from jostle.base.errors import UsageError

TEXT_EXAMPLES = {  # sizes small enough for a test, besides vocabulary 20, dim 8, depth 2 and max_length 12
    "text-bag": [{}],
    "text-decoder": [{"heads": 2, "mlp_dim": 12}],
    "text-encoder": [
        {"heads": 2, "mlp_dim": 12},
        {"heads": 2, "mlp_dim": 12, "attention": "relu"},
        {"heads": 2, "mlp_dim": 12, "attention": "relu", "normalise": True},
        {"heads": 2, "mlp_dim": 12, "attention": "linear"},
    ],
    "text-gru": [{}],
    "text-lstm": [{}],
    "text-ssm": [{"state": 3, "kernel_size": 3}],
}
CASES = [(name, sizes) for name, each in TEXT_EXAMPLES.items() for sizes in each]
every_case = pytest.mark.parametrize(
    ("name", "sizes"), CASES, ids=[f"{name}-{'-'.join(map(str, sizes.values()))}" for name, sizes in CASES]
)
every_name = pytest.mark.parametrize("name", TEXT_EXAMPLES)


def small(name, **sizes):
    """A small network of that name whose weights are wide enough for every token to matter."""
    model = models.create(
        name, **{"vocabulary": 20, "classes": 3, "dim": 8, "depth": 2, "max_length": 12, "seed": 0, **sizes}
    ).double()
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for weight in model.parameters():
            weight += 0.3 * torch.randn(weight.shape, generator=generator, dtype=weight.dtype)
    return model.eval()


def texts(*lengths, width=None, side="right"):
    """Ids of texts with those lengths, (batch, width), padded on that side."""
    generator = torch.Generator().manual_seed(2)
    ids = torch.zeros(len(lengths), width or max(lengths), dtype=torch.int64)
    for row, length in zip(ids, lengths, strict=True):
        start = 0 if side == "right" else len(row) - length
        row[start : start + length] = torch.randint(1, 20, (length,), generator=generator)
    return ids


def test_every_text_model_has_a_contract():
    assert models.names("text") == sorted(TEXT_EXAMPLES)


def test_text_models_are_apart_from_image_models():
    assert models.names() == models.names("image") == models.MODELS.names()
    assert not set(models.names()) & set(models.names("text"))
    with pytest.raises(UsageError, match=r"unknown kind of model 'texts'; did you mean text\?"):
        models.names("texts")


def test_near_misses_among_both_kinds():
    with pytest.raises(UsageError, match="unknown model 'text-encodr'; did you mean text-encoder"):
        models.create("text-encodr")
    with pytest.raises(UsageError, match="unknown model 'restnet-18'; did you mean resnet-18"):
        models.create("restnet-18")
    with pytest.raises(UsageError, match=r"unknown text-lstm argument 'vocabulry'; did you mean vocabulary\?"):
        models.create("text-lstm", vocabulry=3)


@pytest.mark.parametrize("classes", [1, 2, 5])
@every_case
def test_ids_to_logits_through_features(name, sizes, classes):
    model, ids = small(name, classes=classes, **sizes), texts(7, 4, 7)
    logits = model(ids)
    assert logits.shape == (3, classes)
    assert torch.equal(logits, model.classifier(model.features(ids)))
    assert torch.equal(logits, model(ids, ids != 0))
    assert torch.equal(logits, model(input_ids=ids, attention_mask=(ids != 0).long()))
    assert torch.equal(logits, model(ids.int()))
    assert not torch.allclose(logits[0], logits[2])
    assert model.pad == 0


@every_case
def test_padding_has_no_influence(name, sizes):
    model, lengths = small(name, **sizes), (7, 2, 12, 1, 5)
    plain = model(texts(*lengths))
    for side in ("left", "right"):
        torch.testing.assert_close(model(texts(*lengths, width=12, side=side)), plain, rtol=1e-10, atol=1e-12)
        torch.testing.assert_close(model(texts(*lengths, width=40, side=side)), plain, rtol=1e-10, atol=1e-12)
    both = torch.nn.functional.pad(texts(*lengths), (3, 4))
    torch.testing.assert_close(model(both), plain, rtol=1e-10, atol=1e-12)


@every_case
def test_one_text_at_a_time_gives_the_same_logits(name, sizes):
    model, ids = small(name, **sizes), texts(7, 2, 12, 1, 5)
    apart = torch.cat([model(ids[row : row + 1]) for row in range(5)])
    torch.testing.assert_close(apart, model(ids), rtol=1e-10, atol=1e-12)
    bare = torch.cat([model(row[row != 0][None]) for row in ids])
    torch.testing.assert_close(bare, model(ids), rtol=1e-10, atol=1e-12)


@every_case
def test_the_mask_and_not_the_id_decides_what_is_padding(name, sizes):
    model, ids = small(name, **sizes), texts(7, 7)
    mask = torch.tensor([[1, 1, 1, 1, 1, 1, 1], [0, 1, 1, 0, 1, 0, 0]])
    closed_up = model(ids[1:, [1, 2, 4]])
    torch.testing.assert_close(model(ids, mask)[1:], closed_up, rtol=1e-10, atol=1e-12)
    torch.testing.assert_close(model(ids, mask.double())[1:], closed_up, rtol=1e-10, atol=1e-12)
    torch.testing.assert_close(model(ids, mask > 0)[1:], closed_up, rtol=1e-10, atol=1e-12)
    other = ids.clone()
    other[1, [0, 3, 5, 6]] = 0  # What is masked may as well be padding.
    torch.testing.assert_close(model(other, mask)[1:], closed_up, rtol=1e-10, atol=1e-12)


@every_case
def test_every_real_token_matters_and_order_does_except_in_a_bag(name, sizes):
    model, ids = small(name, **sizes), texts(6, 9)
    before = model(ids)
    for position in range(6):
        changed = ids.clone()
        changed[0, position] = changed[0, position] % 19 + 1
        after = model(changed)
        assert not torch.allclose(after[0], before[0], rtol=1e-6)
        torch.testing.assert_close(after[1], before[1], rtol=1e-10, atol=1e-12)
    swapped = ids[:, [1, 0, *range(2, 9)]]
    assert torch.allclose(model(swapped), before) == (name == "text-bag")


@every_case
def test_every_parameter_gets_a_gradient(name, sizes):
    model = small(name, **sizes).train()
    model(texts(7, 4)).square().sum().backward()
    assert [name for name, weight in model.named_parameters() if not weight.grad.abs().max() > 1e-6] == []


@every_case
def test_dropout_is_for_training_only(name, sizes):
    model, ids = small(name, dropout=0.5, **sizes), texts(7, 4)
    assert torch.equal(model(ids), model(ids))
    without = small(name, dropout=0, **sizes)
    assert torch.equal(model(ids), without(ids))
    model.train()
    assert not torch.equal(model(ids), model(ids))
    torch.testing.assert_close(without.train()(ids), model.eval()(ids), rtol=1e-10, atol=1e-12)


@every_case
def test_seed_decides_the_weights_and_spares_the_global_generator(name, sizes):
    before = torch.random.get_rng_state()
    first, same, other = (
        models.create(name, vocabulary=20, dim=8, depth=2, **sizes, seed=seed).state_dict() for seed in (0, 0, 1)
    )
    assert torch.equal(torch.random.get_rng_state(), before)
    assert all(torch.equal(first[key], same[key]) for key in first)
    assert any(not torch.equal(first[key], other[key]) for key in first)
    assert not first["embeddings.words.weight"][0].any()


@every_case
def test_what_replaces_the_embeddings_decides_the_logits(name, sizes):
    """A hook on ``embeddings`` sees the columns of the ids, and past it nothing looks at the ids."""
    model, ids, other = small(name, **sizes), texts(7, 4, width=9, side="left"), texts(7, 4, width=9, side="left")
    other[other > 0] = 5
    expected, given = model(ids), model.embeddings(ids)
    assert given.shape == (2, 9, 8)
    assert not torch.allclose(model(other), expected)
    handle = model.embeddings.register_forward_hook(lambda *_: given)
    assert torch.equal(model(other), expected)
    handle.remove()
    words = model.get_input_embeddings()
    assert isinstance(words, torch.nn.Embedding)
    vectors = words(ids)
    handle = words.register_forward_hook(lambda *_: vectors)
    assert torch.equal(model(other), expected)
    handle.remove()
    assert not torch.allclose(model(other), expected)


@every_case
def test_columns_without_a_real_token_are_not_computed(name, sizes, monkeypatch):
    model, seen = small(name, **sizes), []
    encode = model.encode
    monkeypatch.setattr(
        model, "encode", lambda embedded, mask: (seen.append(embedded.shape), encode(embedded, mask))[1]
    )
    model(torch.nn.functional.pad(texts(7, 4), (3, 20)))
    assert seen == [(2, 7, 8)]


@every_name
@pytest.mark.parametrize("depth", [1, 3])
def test_depth_and_dim_mean_the_same_everywhere(name, depth):
    """A single layer, for which torch's recurrent layers warn of dropout, and a deeper network."""
    model = models.create(name, vocabulary=20, dim=16, depth=depth, seed=0)
    assert model.features(texts(4, 2)).shape == (2, 16)
    layers = getattr(model, "blocks", None) or model.layers
    count = layers.num_layers if hasattr(layers, "num_layers") else len(layers)
    assert count == depth * (3 if name == "text-bag" else 1)


@every_name
@pytest.mark.parametrize(
    ("ids", "message"),
    [
        (texts(12, 13), "row 1 of input_ids has 13 tokens, but the model was built for max_length=12; cut the text"),
        (texts(3, 0, 2), r"row 1 of input_ids is all padding \(id 0, or 0 in attention_mask\)"),
        (texts(3) + 20, "input_ids holds 3[0-9], but the model was built for vocabulary=20: ids from 0 to 19"),
        (torch.tensor([[3, -1]]), "input_ids holds -1, but the model was built for vocabulary=20"),
        (torch.tensor([[3, 20]]), "input_ids holds 20, but the model was built for vocabulary=20"),
        (texts(3)[0], r"input_ids must have the shape \(batch, length\), neither of them 0, got \(3,\)"),
        (texts(3)[:0], r"input_ids must have the shape \(batch, length\), neither of them 0, got \(0, 3\)"),
        (texts(3)[:, :0], r"input_ids must have the shape \(batch, length\), neither of them 0, got \(1, 0\)"),
        (
            torch.ones(2, 3, dtype=torch.float64),
            "input_ids must be whole numbers of type int64, got torch.float64; pass ids",
        ),
        ([[1, 2]], r"input_ids must be a tensor of ids \(batch, length\), got list"),
    ],
)
def test_ids_that_cannot_be_read(name, ids, message):
    with pytest.raises(UsageError, match=message):
        small(name, **TEXT_EXAMPLES[name][0])(ids)


@every_name
@pytest.mark.parametrize(
    ("mask", "message"),
    [
        (torch.ones(2, 4), r"attention_mask must have the shape of input_ids, \(2, 5\), got \(2, 4\)"),
        (torch.tensor([[1] * 5, [0] * 5]), "row 1 of input_ids is all padding"),
        (torch.zeros(2, 5).fill_(-1e9), "attention_mask must hold 1 for real tokens and 0 for padding"),
        ([[1] * 5] * 2, r"attention_mask must be a tensor \(batch, length\), got list"),
    ],
)
def test_masks_that_cannot_be_read(name, mask, message):
    with pytest.raises(UsageError, match=message):
        small(name, **TEXT_EXAMPLES[name][0])(texts(5, 3), mask)


@every_name
def test_a_text_as_long_as_allowed_in_a_wider_batch(name):
    model = small(name, **TEXT_EXAMPLES[name][0])
    assert model(texts(12, 3, width=50)).isfinite().all()
