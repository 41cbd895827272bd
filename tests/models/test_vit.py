import math

import pytest
import torch

from jostle import models
from jostle.base.errors import UsageError
from jostle.models.norms import NORMS
from jostle.models.vit import PatchAttention, cut_patches, sincos_positions
from tests.models.norm_formulas import by_formula


def test_paper_size():
    model = models.create("vit-simple")
    assert sum(weight.numel() for weight in model.parameters()) == 1_975_210


def test_patches_by_loops():
    images = torch.arange(2 * 3 * 4 * 6).reshape(2, 3, 4, 6)
    patches = cut_patches(images, 2)
    assert patches.shape == (2, 6, 12)
    for token, (row, column) in enumerate((r, c) for r in range(2) for c in range(3)):
        pixels = [
            images[1, channel, 2 * row + i, 2 * column + j].item()
            for i in range(2)
            for j in range(2)
            for channel in range(3)
        ]
        assert patches[1, token].tolist() == pixels


def test_positions_by_loops():
    positions = sincos_positions(3, 8)
    assert positions.dtype == torch.get_default_dtype()
    for row in range(3):
        for column in range(3):
            angles = [place * 10_000**-k for place in (column, row) for k in (0, 1)]
            sines, cosines = [math.sin(a) for a in angles], [math.cos(a) for a in angles]
            expected = torch.tensor(sines[:2] + cosines[:2] + sines[2:] + cosines[2:])
            torch.testing.assert_close(positions[3 * row + column], expected)


def test_positions_of_the_smallest_dim_are_finite():
    torch.testing.assert_close(sincos_positions(2, 4)[3], torch.tensor([math.sin(1), math.cos(1)] * 2))


def test_positions_are_fixed_and_not_saved():
    model = models.create("vit-simple", depth=1)
    assert "positions" not in model.state_dict()
    assert not model.positions.requires_grad


@pytest.mark.parametrize("kind", ["softmax", "relu", "linear", "uniform"])
def test_attention_by_loops(kind):
    generator = torch.Generator().manual_seed(0)
    q, k, v = torch.randn(3, 1, 2, 5, 4, generator=generator, dtype=torch.float64)  # each (batch, heads, tokens, dim)
    mixed = PatchAttention(dim=8, heads=2, dim_head=4, kind=kind).mix(q, k, v)
    for head in range(2):
        for i in range(5):
            scores = [float(q[0, head, i] @ k[0, head, j]) / 2 for j in range(5)]
            if kind == "softmax":
                total = sum(math.exp(s) for s in scores)
                weights = [math.exp(s) / total for s in scores]
            elif kind == "uniform":
                weights = [1 / 5] * 5
            else:
                weights = [(max(s, 0) if kind == "relu" else s) / 5 for s in scores]
            expected = sum(weight * v[0, head, j] for j, weight in enumerate(weights))
            torch.testing.assert_close(mixed[0, head, i], expected)


def test_attention_keeps_heads_apart():
    attention = PatchAttention(dim=6, heads=2, dim_head=3).double()
    tokens = torch.randn(1, 4, 6, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    with torch.no_grad():
        attention.to_out.weight.copy_(torch.eye(6))
        before = attention(tokens)
        attention.to_qkv.weight[3:6] = 0  # The queries of the second head.
        after = attention(tokens)
    assert torch.equal(before[..., :3], after[..., :3])
    assert not torch.allclose(before[..., 3:], after[..., 3:])


@pytest.mark.parametrize("kind", NORMS)
def test_forward_step_by_step(kind):
    """The whole network once more, from its weights and the formulas."""
    sizes = {"image_size": 8, "channels": 2, "classes": 3, "dim": 8, "depth": 2, "heads": 2, "dim_head": 3}
    model = models.create("vit-simple", **sizes, mlp_dim=5, norm=kind, seed=0).double()
    images = torch.randn(2, 2, 8, 8, generator=torch.Generator().manual_seed(0), dtype=torch.float64)

    norm = by_formula(kind)

    def linear(x, layer):
        return x @ layer.weight.T + (0 if layer.bias is None else layer.bias)

    patches_norm, project, tokens_norm = model.embed
    x = norm(linear(norm(cut_patches(images, 4), patches_norm), project), tokens_norm) + model.positions
    for block in model.blocks:
        attention_norm, attention = block.attention
        q, k, v = linear(norm(x, attention_norm), attention.to_qkv).split(6, dim=-1)  # each (batch, tokens, 6)
        heads = []
        for columns in (slice(0, 3), slice(3, 6)):
            scores = q[..., columns] @ k[..., columns].mT / math.sqrt(3)
            heads.append(scores.softmax(dim=-1) @ v[..., columns])
        x = x + linear(torch.cat(heads, dim=-1), attention.to_out)
        mlp_norm, widen, _, narrow = block.mlp
        hidden = linear(norm(x, mlp_norm), widen)
        x = x + linear(hidden * (1 + torch.erf(hidden / math.sqrt(2))) / 2, narrow)
    torch.testing.assert_close(model(images), linear(norm(x, model.norm).mean(dim=1), model.classifier))


def test_position_matters():
    model = models.create("vit-simple", image_size=8, depth=1, seed=0).double()
    images = torch.randn(1, 3, 8, 8, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    swapped = images.roll(4, dims=3)  # The same four patches in another order.
    assert not torch.allclose(model(images), model(swapped))
    model.positions.zero_()
    torch.testing.assert_close(model(images), model(swapped))


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ({"image_size": 30}, "image_size=30 must be a multiple of patch_size=4"),
        ({"dim": 66}, "dim=66 must be a multiple of 4"),
        ({"attention": "soft-max"}, r"unknown attention 'soft-max'; did you mean softmax\?"),
    ],
)
def test_sizes_that_do_not_go_together(sizes, message):
    with pytest.raises(UsageError, match=message):
        models.create("vit-simple", **sizes)


def test_printing_shows_what_shapes_do_not():
    printed = repr(models.create("vit-simple", heads=4, dim_head=8, depth=1, attention="relu"))
    assert "heads=4, dim_head=8, kind='relu'" in printed
    assert "image_size=32, patch_size=4" in printed
