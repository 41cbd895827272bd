"""Norms by their formulas, where networks have them, and that the defaults are what they always were."""

import pytest
import torch
from torch import nn

from jostle import models
from jostle.base.errors import UsageError
from jostle.models.norms import NORMS, DynamicTanh, make_norm
from tests.models.norm_formulas import by_formula

IMAGES = {
    "vit-simple": {"image_size": 8, "dim": 8, "depth": 2, "heads": 2, "dim_head": 4, "mlp_dim": 8},
    "mlp-mixer": {"image_size": 8, "dim": 8, "depth": 2, "tokens_dim": 4, "mlp_dim": 8},
    "vision-ssm": {"image_size": 8, "dim": 8, "depth": 2, "state": 2, "expand": 1},
}
TEXTS = {
    "text-encoder": {"vocabulary": 9, "dim": 8, "depth": 2, "heads": 2, "mlp_dim": 8, "max_length": 4},
    "text-ssm": {"vocabulary": 9, "dim": 8, "depth": 2, "state": 2, "expand": 1, "max_length": 4},
}
SIZES = IMAGES | TEXTS
DEFAULTS = {
    "vit-simple": "everywhere", "mlp-mixer": "blocks", "vision-ssm": "blocks",
    "text-encoder": "everywhere", "text-ssm": "everywhere",
}  # fmt: skip


def norms_of(model):
    kinds = (nn.LayerNorm, nn.RMSNorm, DynamicTanh)
    return {name: type(module) for name, module in model.named_modules() if isinstance(module, kinds)}


@pytest.mark.parametrize("kind", NORMS)
def test_each_norm_is_its_formula(kind):
    norm = make_norm(kind, 5).double()
    generator = torch.Generator().manual_seed(0)
    for weight in norm.parameters():
        weight.data = torch.randn(weight.shape, generator=generator, dtype=torch.float64)
    x = torch.randn(3, 5, generator=generator, dtype=torch.float64)
    torch.testing.assert_close(norm(x), by_formula(kind)(x, norm))


def test_dynamic_tanh_starts_as_in_its_paper_and_bounds_each_number_alone():
    norm = DynamicTanh(3)
    assert norm.alpha.item() == 0.5
    x = torch.tensor([[1.0, -2.0, 1e6]])
    torch.testing.assert_close(norm(x), torch.tanh(0.5 * x))
    assert torch.equal(norm(x)[0, :2], norm(x * torch.tensor([1.0, 1.0, 0.0]))[0, :2])


@pytest.mark.parametrize("name", SIZES)
def test_the_places_divide_the_norms_among_them(name):
    everywhere, tokens, blocks = (
        norms_of(models.create(name, **SIZES[name], norm_place=place)) for place in ("everywhere", "tokens", "blocks")
    )
    assert tokens
    assert blocks
    assert not set(tokens) & set(blocks)
    assert tokens | blocks == everywhere
    assert all("blocks" not in place and place != "norm" for place in tokens)
    assert not norms_of(models.create(name, **SIZES[name], norm="none"))


@pytest.mark.parametrize("name", SIZES)
def test_networks_differ_in_their_norms_and_in_nothing_else(name):
    def rest(**options):
        model = models.create(name, **SIZES[name], seed=0, **options)
        norms = norms_of(model)
        return {key: weight for key, weight in model.named_parameters() if key.rpartition(".")[0] not in norms}

    usual = rest()
    for options in ({"norm": "rms"}, {"norm": "dyt"}, {"norm": "none"}, {"norm_place": "tokens"}):
        other = rest(**options)
        assert list(other) == list(usual)
        assert all(torch.equal(other[key], usual[key]) for key in usual), options


@pytest.mark.parametrize("name", SIZES)
def test_the_default_is_layer_norm_where_the_papers_have_it(name):
    usual = models.create(name, **SIZES[name], seed=0).state_dict()
    said = models.create(name, **SIZES[name], seed=0, norm="layer", norm_place=DEFAULTS[name]).state_dict()
    assert list(usual) == list(said)
    assert all(torch.equal(usual[key], said[key]) for key in usual)


@pytest.mark.parametrize("name", IMAGES)
def test_a_norm_on_tokens_bounds_what_strong_noise_in_a_patch_can_do(name):
    """With RMSNorm on patches the length of a patch is lost: a hundred times the patch gives the same logits."""
    model = models.create(name, **SIZES[name], norm="rms", norm_place="tokens", seed=0).double().eval()
    bare = models.create(name, **SIZES[name], norm="none", seed=0).double().eval()
    images = torch.randn(2, 3, 8, 8, generator=torch.Generator().manual_seed(0), dtype=torch.float64) * 100
    longer = images.clone()
    longer[..., :4, :4] *= 100
    torch.testing.assert_close(model(images), model(longer), rtol=1e-6, atol=1e-6)
    assert not torch.allclose(bare(images), bare(longer), rtol=1e-2)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"norm": "layernorm"}, "unknown norm 'layernorm'"),
        ({"norm_place": "block"}, r"unknown norm_place 'block'; did you mean blocks\?"),
    ],
)
def test_unknown_choices_are_said(options, message):
    with pytest.raises(UsageError, match=message):
        models.create("vit-simple", **options)
