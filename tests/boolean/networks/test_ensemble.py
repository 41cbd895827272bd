"""Random weights: which parameters, from which distribution and seed; and many networks at once as one by one."""

import math

import pytest
import torch

from jostle.base.errors import UsageError
from jostle.boolean import networks
from jostle.boolean.networks import ensemble
from jostle.boolean.networks.ensemble import INITS, redraw, seed_of
from tests.boolean.networks.test_create import NAMES, SMALL, cube_of

SD = {  # of a matrix of 64 x 64 at scale 0.5
    "uniform": 0.5 / math.sqrt(3),
    "gaussian": 0.5,
    "xavier-uniform": 0.5 / math.sqrt(64),
    "xavier-normal": 0.5 / math.sqrt(64),
}


@pytest.mark.parametrize("init", INITS)
def test_weights_have_the_standard_deviation_they_should(init):
    network = networks.create("mlp", n=4, width=64)
    redraw(network, init, 0.5, seed=1)
    weight = network.layers[2].weight.detach()
    assert float(weight.std()) == pytest.approx(SD[init], rel=4 / math.sqrt(2 * weight.numel()))
    assert abs(float(weight.mean())) < 4 * SD[init] / math.sqrt(weight.numel())
    if init.endswith("uniform"):
        assert weight.abs().max() <= SD[init] * math.sqrt(3) + 1e-12


@pytest.mark.parametrize("name", networks.names())
def test_biases_become_0_and_normalisations_stay(name):
    network = networks.create(name, n=4)
    before = {label: parameter.clone() for label, parameter in network.named_parameters()}
    redraw(network, "gaussian", 2.0, seed=1)
    kept = ("norm.", "gain", "log_decay", "skip", "step_offset")
    for label, parameter in network.named_parameters():
        if any(part in label for part in kept):
            assert torch.equal(parameter, before[label]), label
        elif label.endswith("bias"):
            assert not parameter.any(), label
        else:
            assert not (parameter == before[label]).any(), label
            assert float(parameter.detach().std()) == pytest.approx(2.0, rel=0.5), label


def test_default_changes_nothing_and_the_seed_decides():
    network = networks.create("mlp", n=4)
    before = network.layers[0].weight.clone()
    redraw(network, "default", seed=1)
    assert torch.equal(network.layers[0].weight, before)
    drawn = []
    for seed in (1, 1, 2):
        redraw(network, "uniform", seed=seed)
        drawn.append(network.layers[0].weight.clone())
    assert torch.equal(drawn[0], drawn[1])
    assert not torch.equal(drawn[0], drawn[2])


def test_any_whole_number_is_a_seed():
    network = networks.create("mlp", n=4, seed=10**30)
    redraw(network, "uniform", seed=-(2**70))


def test_seeds_differ_between_indices_purposes_and_runs():
    seeds = {seed_of(seed, what, index) for seed in (0, 1, 10) for what in ("a", "b") for index in range(12)}
    assert len(seeds) == 72
    assert all(0 <= seed < 2**63 for seed in seeds)


def test_wrong_use_is_refused():
    network = networks.create("mlp", n=4)
    with pytest.raises(UsageError, match="unknown init 'gausian'; did you mean gaussian"):
        redraw(network, "gausian", seed=0)
    for scale in (0, -1.0, math.inf, math.nan, 101, True, "1"):
        with pytest.raises(UsageError, match=r"scale=.* must be a finite number above 0 and at most 100"):
            redraw(network, "gaussian", scale, seed=0)
    with pytest.raises(UsageError, match="scale=10 has no meaning with init='default'"):
        redraw(network, "default", 10, seed=0)


VARIANTS = [(name, SMALL[name]) for name in NAMES] + [
    ("transformer", {"dim": 8, "norm": "pre", "positions": "added", "attention": "relu"}),
    ("transformer", {"dim": 8, "read": "last", "positions": "none", "attention": "linear"}),
    ("lstm", {"dim": 3, "hidden": 4, "bias": True}),
    ("mixer", {"dim": 6, "read": "last"}),
]


@pytest.mark.parametrize(("name", "sizes"), VARIANTS)
@pytest.mark.parametrize("limit", [2**17, 600])  # all inputs in one piece, and in many
def test_stacked_networks_equal_single_ones(name, sizes, limit, monkeypatch):
    monkeypatch.setattr(ensemble, "_VALUES_AT_ONCE", limit)
    many = [networks.create(name, n=5, seed=seed, **sizes) for seed in range(3)]
    bits = cube_of(5)
    expected = torch.stack([network(bits) for network in many]).detach()
    found = ensemble.all_logits(many, bits)
    assert not found.requires_grad
    torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-12)
    torch.testing.assert_close(ensemble.all_logits(many[1:2], bits), expected[1:2], rtol=1e-10, atol=1e-12)


def test_each_network_can_have_its_own_inputs():
    many = [networks.create("mlp", n=5, seed=seed) for seed in range(3)]
    inputs = torch.stack([cube_of(5)[torch.randperm(32)[:7]] for _ in many])
    expected = torch.stack([network(rows) for network, rows in zip(many, inputs, strict=True)]).detach()
    torch.testing.assert_close(ensemble.all_logits(many, inputs), expected)
    torch.testing.assert_close(ensemble.all_logits(many[:1], inputs[:1]), expected[:1])


def test_small_networks_are_stacked_and_large_ones_are_not():
    assert ensemble.best_batch(networks.create("lstm", n=4, dim=16, hidden=16), 16, 4) > 1
    assert ensemble.best_batch(networks.create("transformer"), 1024, 10) == 1
