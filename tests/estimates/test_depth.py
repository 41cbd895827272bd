"""Noise inside a model, layer by layer: names and patterns of sites, exactness, and heads."""

import numpy as np
import pytest
import torch
from scipy import special

import jostle
from jostle import Embeddings, GaussianNoise, Inside, UsageError
from jostle.tokens.sites import find_sites
from tests.integrations.families import CAUSAL, ENCODER_DECODER, TEXTS, TOKEN_CLASSIFIERS, network

IMAGES = torch.randn(6, 1, 8, 8, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


def vit(name="vit-simple"):
    return jostle.models.create(name, image_size=8, channels=1, classes=3, patch_size=4, depth=3, seed=0).double()


class Chain(torch.nn.Module):
    """Three layers that add one; the answer is the sign of the sum of all numbers."""

    def __init__(self):
        super().__init__()
        self.blocks = torch.nn.ModuleList(torch.nn.Identity() for _ in range(3))

    def forward(self, x):
        for block in self.blocks:
            x = block(x) + 1
        return x.sum(dim=(1, 2)) - 3.0 * x[0].numel()


def test_every_layer_of_a_chain_has_the_sensitivity_of_its_halfspace():
    """Noise of std s on one of the vectors, of d numbers, flips sum(x) with probability Phi(-|sum| / (s sqrt d))."""
    x = torch.randn(40, 5, 4)
    exact = special.ndtr(-x.sum(dim=(1, 2)).abs().numpy() / (2.0 * np.sqrt(4))).mean()
    found = jostle.depth(Chain(), x, site="blocks.*", std=2.0, relative=False, plan="until:half_width=0.02")
    assert [m.name for m in found] == ["blocks.0", "blocks.1", "blocks.2"]
    for m in found:
        assert m.low <= exact <= m.high
        assert m.settings.num_tokens == 5


@pytest.mark.parametrize("site", ["residual", "attention", "mlp", "*.mlp"])
def test_no_noise_changes_nothing_at_any_site_of_the_zoo_and_of_transformers(site):
    pytest.importorskip("transformers")
    cases = [(vit(), IMAGES), (network("gpt2"), TEXTS), (network("llama"), TEXTS)]
    for model, inputs in cases:
        still = jostle.depth(model, inputs, site=site, std=0.0)
        assert [m.value for m in still] == [0.0] * len(still)
        moved = jostle.depth(model, inputs, site=site, std=3.0, response="logit-change", plan="grid:2")
        assert all(m.value > 0 for m in moved)
        assert len(moved) + len(moved.skipped) == len(find_sites(model, site))


@pytest.mark.parametrize("kind", [*CAUSAL, *ENCODER_DECODER, *TOKEN_CLASSIFIERS])
def test_every_family_of_transformers_has_its_sites(kind):
    pytest.importorskip("transformers")
    model = network(kind)
    response = "label-flip" if kind in TOKEN_CLASSIFIERS else "kl"
    for site in ("residual", "attention", "mlp", "head"):
        if (kind, site) == ("rwkv", "head"):  # its mixing of time has no heads
            continue
        head = 1 if site == "head" else None
        options = {"site": site, "head": head, "response": response, "plan": "grid:1"}
        still, moved = (jostle.depth(model, TEXTS[:1], std=std, **options) for std in (0.0, 20.0))
        assert [m.value for m in still] == [0.0, 0.0]
        assert len(moved) == 2
        assert response == "label-flip" or all(m.value > 0 for m in moved)


@pytest.mark.parametrize("name", jostle.models.names())
def test_every_network_of_the_zoo_has_its_sites(name):
    patches = {"patch_size": 8, "dim": 16, "depth": 2}
    heads = {"heads": 2, "dim_head": 8, "mlp_dim": 16}
    small = {
        "vit-small": {**patches, **heads}, "vit-simple": {**patches, **heads}, "vision-ssm": patches,
        "mlp-mixer": patches, "convmixer": {"dim": 8, "depth": 2}, "resnet-18": {"width": 4}, "cnn": {"width": 4},
        "convnext": {"widths": (4, 8), "depths": (1, 1)}, "densenet-121": {"growth": 4, "blocks": (2, 2)},
    }  # fmt: skip
    model = jostle.models.create(name, image_size=32, channels=1, classes=3, seed=0, **small.get(name, {}))
    images = torch.randn(2, 1, 32, 32, generator=torch.Generator().manual_seed(0))
    paths = find_sites(model, "residual")
    assert len(paths) > 1
    for path in (paths[0], paths[-1]):
        options = {"site": path, "response": "logit-change", "plan": "until:half_width=100,max_passes=40"}
        assert [m.value for m in jostle.depth(model, images, std=0.0, **options)] == [0.0]
        assert [m.value > 0 for m in jostle.depth(model, images, std=3.0, **options)] == [True]


def test_a_map_has_a_vector_for_each_pixel_and_a_layer_has_one():
    """Noise of std s in one pixel of c channels moves the sum by N(0, c s^2); in a layer of d numbers, d s^2."""

    class Maps(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.map, self.layer = torch.nn.Identity(), torch.nn.Identity()

        def forward(self, x):
            return self.layer(self.map(x).flatten(1)).sum(dim=1)

    x = torch.randn(60, 2, 4, 3, generator=torch.Generator().manual_seed(0))
    for path, count, size in (("map", 12, 2), ("layer", 1, 24)):
        (found,) = jostle.depth(Maps(), x, site=path, std=1.5, relative=False, plan="until:half_width=0.02")
        exact = special.ndtr(-x.sum(dim=(1, 2, 3)).abs().numpy() / (1.5 * np.sqrt(size))).mean()
        assert found.settings.num_tokens == count
        assert found.low <= exact <= found.high


def test_sites_by_name_and_pattern():
    pytest.importorskip("transformers")
    model = network("llama")
    assert find_sites(model, "residual") == ["model.layers.0", "model.layers.1"]
    assert find_sites(model, "attention") == ["model.layers.0.self_attn", "model.layers.1.self_attn"]
    assert find_sites(model, "mlp") == find_sites(model, "model.layers.*.mlp")
    assert find_sites(model, "head") == ["model.layers.0.self_attn.o_proj", "model.layers.1.self_attn.o_proj"]
    assert find_sites(network("gpt2"), "head") == ["transformer.h.0.attn.c_proj", "transformer.h.1.attn.c_proj"]
    assert find_sites(vit(), "head") == [f"blocks.{number}.attention.1.to_out" for number in range(3)]
    assert len(jostle.depth(vit(), IMAGES, site="head", head=1, response="logit-change", plan="grid:1")) == 3
    with pytest.raises(UsageError, match=r"site='nothing.\*' is no module of LlamaForCausalLM"):
        find_sites(model, "nothing.*")


def test_a_head_is_a_part_of_what_enters_the_output_projection():
    pytest.importorskip("transformers")
    model = network("llama")
    path, seen = "model.layers.0.self_attn.o_proj", {}

    def ask(head):
        def watch(module, given, output):
            seen.setdefault(head, []).append(given[0].detach().clone())

        handle = dict(model.named_modules())[path].register_forward_hook(watch)
        view = Embeddings(module=path, head=head)
        found = jostle.measure(
            model, [TEXTS[0]], tokens=view, perturbation=GaussianNoise(1.0), response="kl", plan="grid:1"
        )
        handle.remove()
        return found.value

    first, second = ask(0), ask(1)
    assert first != second
    for head in (0, 1):
        clean, last = seen[head][0], seen[head][-1]
        changed = ((last - clean[:1]).abs() > 1e-9).any(dim=0).any(dim=0)  # which numbers of the 16 were moved
        assert changed[8 * head : 8 * head + 8].all()
        assert not changed[8 * (1 - head) : 8 * (1 - head) + 8].any()
    found = jostle.depth(model, TEXTS, site="head", head=1, response="kl", plan="grid:2")
    assert len(found) == 2
    with pytest.raises(UsageError, match=r"head=7 of model: .* has 2 heads"):
        jostle.measure(
            model, TEXTS, tokens=Embeddings(module=path, head=7), perturbation=GaussianNoise(1.0), response="kl"
        )
    with pytest.raises(UsageError, match="give head= with site='head'"):
        jostle.depth(model, TEXTS, site="head")


def test_noise_in_units_of_what_is_there():
    found = jostle.depth(Chain(), torch.ones(4, 3, 2), site="blocks.*", std=0.5, plan="grid:1")
    stds = [float(m.settings.perturbation.split("=")[1]) for m in found]
    assert stds == [0.5, 1.0, 1.5]  # of ones, twos and threes


def test_sites_that_give_no_vector_for_each_token_are_named():
    model = jostle.models.create("text-decoder", vocabulary=20, dim=8, depth=2, heads=2, mlp_dim=8, seed=0).double()
    ids = torch.randint(1, 20, (5, 6))
    found = jostle.depth(model, ids, site="mlp", response="logit-change", plan="grid:1")
    assert [m.name for m in found] == ["blocks.0.mlp"]
    assert found.skipped == ["blocks.1.mlp"]  # the last block computes the last token only
    assert "without a vector for each token: blocks.1.mlp" in str(found)


def test_it_travels_and_draws(tmp_path):
    found = jostle.depth(Chain(), torch.randn(4, 3, 2), site="blocks.*", plan="grid:3")
    found.save(tmp_path / "d.json")
    loaded = jostle.load(tmp_path / "d.json")
    assert str(loaded) == str(found)
    axes = found.plot().axes[0]
    assert "blocks.*" in axes.get_xlabel()
    assert Inside("a.b", count=3, part="input").describe() == "inside:a.b,count=3,part=input"
    with pytest.raises(UsageError, match="say how many vectors"):
        jostle.measure(Chain(), torch.randn(4, 3, 2), tokens=Inside("blocks.0"), perturbation=GaussianNoise(1.0))
