import math

import pytest
import torch

from jostle import models
from jostle.base.errors import UsageError
from jostle.models.vit import cut_patches
from jostle.models.vit_small import LocalityAttention, with_shifts


def normal(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def test_paper_size():
    model = models.create("vit-small")
    assert sum(weight.numel() for weight in model.parameters()) == 4_482_482


def test_shifts_by_loops():
    images = normal(2, 3, 5, 6)
    shifted = with_shifts(images, 2)
    assert shifted.shape == (2, 15, 5, 6)
    moves = [(0, 0), (0, 2), (0, -2), (2, 0), (-2, 0)]  # How far a pixel moves down and to the right.
    for copy, (down, right) in enumerate(moves):
        for row in range(5):
            for column in range(6):
                is_inside = 0 <= row - down < 5 and 0 <= column - right < 6
                expected = images[:, :, row - down, column - right] if is_inside else torch.zeros(2, 3)
                assert torch.equal(shifted[:, 3 * copy : 3 * copy + 3, row, column], expected)


def test_shifts_beyond_the_image_are_empty():
    assert with_shifts(torch.ones(1, 1, 2, 2), 3)[0, 1:].abs().sum() == 0


def weights_by_loops(kind, scores):
    """The attention weights of token i from its scores, with the score of i itself struck out by ``None``."""
    others = [score for score in scores if score is not None]
    if kind == "softmax":
        total = sum(math.exp(score) for score in others)
        return [0.0 if score is None else math.exp(score) / total for score in scores]
    shape = (lambda score: max(score, 0.0)) if kind == "relu" else (lambda score: score)
    return [0.0 if score is None else shape(score) / len(others) for score in scores]


@pytest.mark.parametrize("kind", ["softmax", "relu", "linear"])
def test_attention_by_loops(kind):
    q, k, v = normal(3, 2, 2, 5, 4)  # each (batch, heads, tokens, dim_head)
    attention = LocalityAttention(dim=8, heads=2, dim_head=4, dropout=0.1, kind=kind).double().eval()
    with torch.no_grad():
        attention.log_temperature.fill_(math.log(0.7))
    mixed = attention.mix(q, k, v)
    for example in range(2):
        for head in range(2):
            for i in range(5):
                products = [0.7 * float(q[example, head, i] @ k[example, head, j]) for j in range(5)]
                weights = weights_by_loops(kind, [s if j != i else None for j, s in enumerate(products)])
                expected = sum(weight * v[example, head, j] for j, weight in enumerate(weights))
                torch.testing.assert_close(mixed[example, head, i], expected)


@pytest.mark.parametrize("kind", ["softmax", "relu", "linear"])
def test_no_token_uses_its_own_value(kind):
    q, k, v = normal(3, 1, 2, 5, 4)
    attention = LocalityAttention(dim=8, heads=2, dim_head=4, dropout=0.0, kind=kind).double()
    changed = v.clone()
    changed[..., 3, :] += 100
    before, after = attention.mix(q, k, v), attention.mix(q, k, changed)
    assert torch.equal(before[..., 3, :], after[..., 3, :])
    rows = [0, 1, 2, 4]
    if kind == "softmax":
        assert (before[..., rows, :] != after[..., rows, :]).all()
    assert (before[..., rows, :] != after[..., rows, :]).any()


@pytest.mark.parametrize("kind", ["softmax", "relu", "linear"])
def test_gradients_equal_those_of_the_formula(kind):
    """The temperature's too, which reaches the fused kernel only through the queries."""
    q, k, v = (part.requires_grad_() for part in normal(3, 2, 3, 6, 4).unbind(0))
    attention = LocalityAttention(dim=12, heads=3, dim_head=4, dropout=0.0, kind=kind).double()
    leaves = [q, k, v, attention.log_temperature]
    scores = q @ k.mT * attention.log_temperature.exp()
    itself = torch.eye(6, dtype=torch.bool)
    if kind == "softmax":
        weights = scores.masked_fill(itself, -torch.inf).softmax(dim=-1)
    else:
        weights = (scores.clamp(min=0) if kind == "relu" else scores) * (~itself) / 5
    expected = torch.autograd.grad((weights @ v).sin().sum(), leaves)
    found = torch.autograd.grad(attention.mix(q, k, v).sin().sum(), leaves)
    torch.testing.assert_close(found, expected)


def test_fused_kernel_in_single_precision_at_the_papers_shape():
    q, k, v = normal(3, 2, 32, 65, 64).unbind(0)
    attention = LocalityAttention(dim=64, heads=32, dim_head=64, dropout=0.1).eval()
    scores = (q @ k.mT / 8).masked_fill(torch.eye(65, dtype=torch.bool), -torch.inf)
    found = attention.float().mix(q.float(), k.float(), v.float())
    torch.testing.assert_close(found.double(), scores.softmax(dim=-1) @ v, rtol=0, atol=2e-5)


def test_temperature_starts_at_the_usual_scale():
    attention = LocalityAttention(dim=8, heads=2, dim_head=16, dropout=0.0)
    assert attention.log_temperature.exp().item() == pytest.approx(0.25)


@pytest.mark.parametrize("kind", ["softmax", "relu", "linear"])
def test_attention_dropout_acts_in_training_only_and_keeps_the_mean(kind):
    """With 4000 copies of one example, the mean over the copies lies within 4 standard errors."""
    q, k, v = (part.expand(4000, -1, -1, -1) for part in normal(3, 1, 1, 4, 2).unbind(0))
    attention = LocalityAttention(dim=2, heads=1, dim_head=2, dropout=0.25, kind=kind).double()
    torch.manual_seed(0)
    dropped, exact = attention.mix(q, k, v), attention.eval().mix(q, k, v)
    errors = dropped.std(dim=0) / math.sqrt(4000)
    assert (errors > 0).any()
    assert ((dropped.mean(dim=0) - exact[0]).abs() <= 4 * errors).all()


def test_forward_step_by_step():
    """The whole network once more, from its weights and the formulas."""
    sizes = {"image_size": 8, "channels": 2, "classes": 3, "dim": 6, "depth": 2, "heads": 2, "dim_head": 3}
    model = models.create("vit-small", **sizes, mlp_dim=5, seed=0).double().eval()
    images = normal(2, 2, 8, 8)

    def norm(x, layer):
        centred = x - x.mean(dim=-1, keepdim=True)
        return centred / (centred.square().mean(dim=-1, keepdim=True) + 1e-5).sqrt() * layer.weight + layer.bias

    def linear(x, layer):
        return x @ layer.weight.T + (0 if layer.bias is None else layer.bias)

    copies = torch.stack([images, *(torch.zeros_like(images) for _ in range(4))], dim=1)
    copies[:, 1, :, :, 1:], copies[:, 2, :, :, :-1] = images[..., :-1], images[..., 1:]
    copies[:, 3, :, 1:], copies[:, 4, :, :-1] = images[..., :-1, :], images[..., 1:, :]
    patches_norm, project = model.embed
    patches = linear(norm(cut_patches(copies.flatten(1, 2), 4), patches_norm), project)
    x = torch.cat([model.class_token.repeat(2, 1, 1), patches], dim=1) + model.positions
    for block in model.blocks:
        attention_norm, attention = block.attention
        q, k, v = linear(norm(x, attention_norm), attention.to_qkv).split(6, dim=-1)  # each (batch, tokens, 6)
        heads = []
        for columns in (slice(0, 3), slice(3, 6)):
            scores = q[..., columns] @ k[..., columns].mT * attention.log_temperature.exp()
            exponentials = scores.exp() * (1 - torch.eye(5))
            heads.append(exponentials / exponentials.sum(dim=-1, keepdim=True) @ v[..., columns])
        x = x + linear(torch.cat(heads, dim=-1), attention.to_out[0])
        mlp_norm, widen, _, _, narrow, _ = block.mlp
        hidden = linear(norm(x, mlp_norm), widen)
        x = x + linear(hidden * (1 + torch.erf(hidden / math.sqrt(2))) / 2, narrow)
    torch.testing.assert_close(model(images), linear(norm(x[:, 0], model.norm), model.classifier))


def test_a_change_of_one_patch_reaches_five_tokens():
    model = models.create("vit-small", image_size=20, channels=1, patch_size=4, depth=1, heads=1, seed=0).double()
    images = normal(1, 1, 20, 20)
    changed = images.clone()
    changed[..., 8:12, 8:12] += 1  # The patch in the middle, token 12.
    tokens = [model.embed(cut_patches(with_shifts(each, 1), 4)) for each in (images, changed)]
    moved = (tokens[0] != tokens[1]).any(dim=-1)[0].nonzero().flatten().tolist()
    assert moved == [7, 11, 12, 13, 17]


def test_dropout_is_random_in_training_and_absent_at_zero():
    sizes = {"image_size": 8, "channels": 1, "depth": 1, "heads": 1, "dim": 8}
    images = normal(1, 1, 8, 8)
    for dropped in ("dropout", "embedding_dropout"):
        shares = {"dropout": 0.0, "embedding_dropout": 0.0, dropped: 0.5}
        model = models.create("vit-small", **sizes, **shares, seed=0).double()
        assert not torch.equal(model(images), model(images))
    model = models.create("vit-small", **sizes, dropout=0.0, embedding_dropout=0, seed=0).double()
    assert torch.equal(model(images), model(images))
    torch.testing.assert_close(model(images), model.eval()(images), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ({"image_size": 30}, "image_size=30 must be a multiple of patch_size=4"),
        ({"dropout": 1.0}, "dropout=1.0 must be a finite number from 0 to below 1"),
        ({"embedding_dropout": "0.1"}, "embedding_dropout='0.1' must be a finite number from 0 to below 1"),
        ({"attention": "soft-max"}, r"unknown attention 'soft-max'; did you mean softmax\?"),
    ],
)
def test_sizes_that_do_not_go_together(sizes, message):
    with pytest.raises(UsageError, match=message):
        models.create("vit-small", **sizes)


def test_printing_shows_what_shapes_do_not():
    printed = repr(models.create("vit-small", heads=4, dim_head=8, depth=1, attention="relu"))
    assert "heads=4, dim_head=8, kind='relu', dropout=0.1" in printed
    assert "image_size=32, patch_size=4, shift=1" in printed


@pytest.mark.parametrize("depth", [1, 3])
@pytest.mark.parametrize("kind", ["softmax", "relu", "linear"])
def test_reading_one_token_of_the_last_block_gives_what_all_tokens_give(kind, depth):
    sizes = {"image_size": 8, "channels": 1, "dim": 8, "heads": 2, "dim_head": 3, "mlp_dim": 8, "depth": depth}
    model = models.create("vit-small", attention=kind, seed=0, **sizes).double().eval()
    images, seen = normal(5, 1, 8, 8), []
    read = model(images)
    read_gradients = torch.autograd.grad(read.square().sum(), list(model.parameters()))
    handle = model.blocks[-1].register_forward_hook(lambda *given: seen.append(given[2].shape[1]))
    whole = model(images)
    whole_gradients = torch.autograd.grad(whole.square().sum(), list(model.parameters()))
    handle.remove()
    assert seen == [5]  # the hook saw all tokens
    torch.testing.assert_close(read, whole, rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(read_gradients, whole_gradients, rtol=1e-9, atol=1e-11)
    assert read.std(dim=0).min() > 1e-3


@pytest.mark.parametrize("kind", ["softmax", "relu"])
def test_dropout_of_the_last_block_is_the_same_where_one_token_is_read(kind):
    sizes = {"image_size": 8, "channels": 1, "dim": 8, "heads": 2, "dim_head": 3, "mlp_dim": 8, "depth": 1}
    rates = {"dropout": 0.3, "embedding_dropout": 0.0}
    model = models.create("vit-small", attention=kind, classes=3, seed=0, **rates, **sizes).double()
    images = normal(1, 1, 8, 8).expand(20_000, -1, -1, -1)
    with torch.no_grad():
        read = model(images)
        handle = model.blocks[-1].register_forward_hook(lambda *given: None)
        whole = model(images)
        handle.remove()
    errors = (read.var(dim=0) / len(read) + whole.var(dim=0) / len(whole)).sqrt()
    assert ((read.mean(dim=0) - whole.mean(dim=0)).abs() < 5 * errors).all()
    torch.testing.assert_close(read.std(dim=0), whole.std(dim=0), rtol=0.04, atol=0.0)
