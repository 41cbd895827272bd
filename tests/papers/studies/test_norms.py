"""Norms, not attention: what a norm leaves of a token, verdicts on made-up records, and what the networks differ in."""

import runpy
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from jostle import models, studies
from jostle.models.vit import cut_patches
from jostle.studies import Records, Verdict, decide
from jostle_papers.own import norms as own
from jostle_papers.own.norms import LAYER, NONE, NORMS, SOFTMAX, UNIFORM, VARIANCES, displacement, named
from tests.papers.studies.made_up import sensitivity, trained_record

IMAGES, TEXTS = "jostle/norms", "jostle/norms-texts"


def flat(variance):
    """The law of the prediction, for tokens of variance 1 / 5."""
    return displacement(torch.tensor([0.2], dtype=torch.float64), variance).item()


def made_up(levels=None, growths=None, short=(), name=IMAGES, seeds=10):
    """Runs at 0.02 with norms and 0.2 without, unless ``levels`` says else; flat with norms unless ``growths`` says."""
    study, rng = studies.get(name), np.random.default_rng(3)
    settings = study.scales["small"]
    cells, found = study.cells(settings, range(seeds)), {}
    for cell in cells:
        level = (levels or {}).get(cell.network, 0.2 if cell.network.endswith(NONE) else 0.02)
        power = (growths or {}).get(cell.network, 0.5 if cell.network.endswith(NONE) else None)
        own_level = level * np.exp(0.05 * rng.normal())
        final = {}
        for variance in VARIANCES:
            at = study.at
            shape = flat(variance) / flat(at) if power is None else (variance / at) ** power
            value = own_level * shape * np.exp(0.02 * rng.normal())
            final[f"variance {variance:g}"] = replace(sensitivity(value), passes=100_000)
        moved = {f"variance {variance:g}": 1.0 if variance < 125 else 3.0 for variance in VARIANCES}
        predicted = {f"variance {variance:g}": flat(variance) for variance in VARIANCES}
        accuracy = 0.9 if cell.key in short else 1.0
        found[cell.key] = trained_record(
            own.NormsRecord,
            final=final,
            predicted=predicted,
            train_accuracy=accuracy,
            sensitivity=own_level,
            moved={} if cell.network.endswith(NONE) else moved,
        )
    return Records(cells, found, settings, "small")


def findings(records, name=IMAGES):
    return {finding.statement: finding for finding in decide(studies.get(name).expectations(records), scale="small")}


@pytest.mark.parametrize("variance", [0.0, 0.01, 0.3, 4.0])
@pytest.mark.parametrize("noise", [0.001, 0.2, 5.0, 125.0])
def test_the_displacement_is_what_a_layer_norm_does(variance, noise):
    """A wide token of this variance, with many draws of noise, through torch's LayerNorm."""
    generator = torch.Generator().manual_seed(0)
    token = torch.randn(1, 20_000, generator=generator, dtype=torch.float64)
    token = (token - token.mean()) / token.std(correction=0) * variance**0.5
    noisy = token + noise**0.5 * torch.randn(20, 20_000, generator=generator, dtype=torch.float64)
    norm = nn.LayerNorm(20_000).double()
    moved = (norm(noisy) - norm(token)).square().mean(dim=1).sqrt().mean().item()
    exact = displacement(torch.tensor([variance], dtype=torch.float64), noise).item()
    assert moved == pytest.approx(exact, rel=0.02)
    if variance >= 0.3 and noise >= 0.2:
        cosine = 1 / (1 + noise / variance) ** 0.5
        assert exact == pytest.approx((2 - 2 * cosine) ** 0.5, rel=0.01)


def test_what_is_predicted_for_networks_is_what_their_first_norm_does():
    settings = studies.get(IMAGES).scales["smoke"]
    generator = torch.Generator().manual_seed(0)
    images = torch.randn(40, 1, 28, 28, generator=generator)
    for mixing in own.IMAGE_MIXINGS:
        network = settings.networks[named(mixing, LAYER)]
        model = models.create(network.model, seed=0, **network.sizes)
        tokens, units = own.tokens_of(model, images, settings.patch)
        assert torch.equal(tokens, cut_patches(images, settings.patch).flatten(0, 1))
        norm = own.first_norm(model)
        noise = torch.randn(tokens.shape, generator=generator)
        moved = (norm(tokens + units[:, None] * noise) - norm(tokens)).square().mean(dim=1).sqrt().mean().item()
        expected = displacement(tokens.double().var(dim=1, correction=0), 1.0).mean().item()
        assert moved == pytest.approx(expected, rel=0.02)
        bare = settings.networks[named(mixing, NONE)]
        assert isinstance(own.first_norm(models.create(bare.model, **bare.sizes)), nn.Identity)


def test_tokens_of_a_text_are_its_words_and_positions_without_padding():
    network = studies.get(TEXTS).scales["smoke"].networks[named(SOFTMAX, LAYER)]
    model = models.create(network.model, seed=0, **network.sizes)
    ids = torch.tensor([[5, 6, 0, 0], [7, 8, 9, 0]])
    tokens, units = own.tokens_of(model, ids, 4)
    assert tokens.shape == (5, 8)
    torch.testing.assert_close(model.embeddings.norm(tokens[2:]), model.embeddings(ids)[1, :3])
    torch.testing.assert_close(units[0], model.embeddings.words.weight[5].square().mean().sqrt())


@pytest.mark.parametrize("name", [IMAGES, TEXTS])
def test_norms_and_not_attention(name):
    records = made_up(name=name)
    found = findings(records, name)
    said = [finding for finding in found.values() if not finding.is_beyond]
    assert len(said) == 3 + len(studies.get(name).claimed)
    assert {finding.verdict for finding in said} == {Verdict.AGREES}
    start = f"{studies.get(name).start:g}"
    bare = [each for statement, each in found.items() if "that a LayerNorm lets" in statement and NONE in statement]
    assert len(bare) == 2
    assert all(f"variance {start} to 125" in finding.statement for finding in bare)
    assert {finding.verdict for finding in bare} == {Verdict.DISAGREES}
    assert {drawing.stem for drawing in studies.get(name).figures(records)} == {
        "by-norms", "by-network", "saturation", "by-growth"
    }  # fmt: skip


def test_attention_where_a_plain_mean_is_more_sensitive():
    found = findings(made_up({named(UNIFORM, LAYER): 0.06}))
    statement = f"sensitivity of {named(SOFTMAX, LAYER)} / of {named(UNIFORM, LAYER)}, variance 5"
    assert found[statement].verdict == Verdict.DISAGREES
    assert found[statement].value == pytest.approx(1 / 3, rel=0.15)


def test_no_effect_of_norms_where_networks_without_are_as_sensitive():
    found = findings(made_up({named("mlp-mixer", NONE): 0.02}))
    statement = f"sensitivity of {named('mlp-mixer', LAYER)} / of {named('mlp-mixer', NONE)}, variance 5"
    assert found[statement].verdict == Verdict.DISAGREES


def test_the_mechanism_is_refuted_where_sensitivity_goes_on_growing():
    found = findings(made_up(growths={named(SOFTMAX, LAYER): 0.5}))
    grown = [each for each in found if each.startswith("growth") and each.endswith(named(SOFTMAX, LAYER))]
    assert [found[each].verdict for each in grown] == [Verdict.DISAGREES]
    assert not found[grown[0]].is_beyond
    assert found[grown[0]].value == pytest.approx(125**0.5 / (flat(125) / flat(1)), rel=0.1)


def test_growth_against_the_distance_behind_the_own_norm():
    """Made-up networks without norms grow as the noise does; those with DyT as a LayerNorm lets through."""
    found = findings(made_up())
    own_tokens = {each: finding for each, finding in found.items() if "its own tokens move" in each}
    assert len(own_tokens) == 3
    bare = next(finding for each, finding in own_tokens.items() if each.endswith(NONE))
    assert bare.verdict == Verdict.AGREES
    assert bare.value == pytest.approx(1.0, rel=0.05)
    others = [finding for each, finding in own_tokens.items() if not each.endswith(NONE)]
    assert all(finding.value == pytest.approx(flat(125) / flat(1) / 3, rel=0.1) for finding in others)
    assert {finding.verdict for finding in others} == {Verdict.DISAGREES}


def test_a_network_that_did_not_learn_is_left_out_and_counted():
    short = [f"{named(SOFTMAX, LAYER)}/seed=1"]
    found = findings(made_up(short=short))
    statement = f"sensitivity of {named(SOFTMAX, LAYER)} / of {named(SOFTMAX, NONE)}, variance 5"
    assert found[statement].verdict == Verdict.AGREES
    assert "9 and 3 seeds" in found[statement].reason
    assert next(finding for each, finding in found.items() if each.startswith("every network")).value == 1


@pytest.mark.parametrize("name", [IMAGES, TEXTS])
@pytest.mark.parametrize("scale", ["smoke", "small", "paper"])
def test_every_mixing_has_every_kind_of_norms(name, scale):
    study = studies.get(name)
    networks = study.scales[scale].networks
    assert list(networks) == [named(mixing, norms) for mixing in study.mixings for norms in NORMS]
    for mixing in study.mixings:
        kinds = [networks[named(mixing, norms)] for norms in NORMS]
        alike = [(one.model, one.lr, {**one.sizes, "norm": "", "norm_place": ""}) for one in kinds]
        assert all(one == alike[0] for one in alike)
    kinds = [networks[named(mixing, LAYER)].sizes for mixing in (SOFTMAX, UNIFORM)]
    assert kinds[0] | {"attention": ""} == kinds[1] | {"attention": ""}


@pytest.mark.parametrize("name", [IMAGES, TEXTS])
@pytest.mark.parametrize("scale", ["smoke", "small", "paper"])
def test_the_seed_chooses_the_inputs(name, scale):
    assert studies.get(name).scales[scale].data_by_seed


def test_the_numbers_of_the_page_are_what_the_records_say():
    tool = runpy.run_path(str(Path(__file__).parents[3] / "tools" / "norms.py"))
    blocks = tool["MARKED"].findall(tool["PAGE"].read_text(encoding="utf-8"))
    assert [name for _, name, _ in blocks] == [IMAGES, TEXTS, "jostle/published-networks"]
    for before, name, after in blocks:
        assert before + tool["block"](name) + after in tool["PAGE"].read_text(encoding="utf-8")


def test_only_the_two_networks_of_the_likeness_have_more_seeds_than_three():
    study = studies.get(IMAGES)
    cells = study.cells(study.scales["small"], range(5))
    assert {cell.network for cell in cells if cell.seed >= 3} == {named(SOFTMAX, LAYER), named(UNIFORM, LAYER)}
    assert len({cell.network for cell in cells if cell.seed < 3}) == len(study.scales["small"].networks)
    assert len(cells) == 3 * len(study.scales["small"].networks) + 4
