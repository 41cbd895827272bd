"""Many networks at once equal the same networks one by one."""

import pytest
import torch

from jostle.boolean import networks
from jostle.boolean.networks import ensemble as stacking
from tests.boolean.networks.test_create import NAMES, SMALL, cube_of

VARIANTS = [(name, SMALL[name]) for name in NAMES] + [
    ("transformer", {"dim": 8, "norm": "pre", "positions": "added", "attention": "relu"}),
    ("transformer", {"dim": 8, "read": "last", "positions": "none", "attention": "linear"}),
    ("lstm", {"dim": 3, "hidden": 4, "bias": True}),
    ("mixer", {"dim": 6, "read": "last"}),
]


@pytest.mark.parametrize(("name", "sizes"), VARIANTS)
@pytest.mark.parametrize("limit", [2**17, 600])  # all inputs in one piece, and in many
def test_stacked_networks_equal_single_ones(name, sizes, limit, monkeypatch):
    monkeypatch.setattr(stacking, "_VALUES_AT_ONCE", limit)
    many = [networks.create(name, n=5, seed=seed, **sizes) for seed in range(3)]
    bits = cube_of(5)
    expected = torch.stack([network(bits) for network in many]).detach()
    found = stacking.logits(many, bits)
    assert not found.requires_grad
    torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-12)
    torch.testing.assert_close(stacking.logits(many[1:2], bits), expected[1:2], rtol=1e-10, atol=1e-12)


def test_each_network_can_have_its_own_inputs():
    many = [networks.create("mlp", n=5, seed=seed) for seed in range(3)]
    inputs = torch.stack([cube_of(5)[torch.randperm(32)[:7]] for _ in many])
    expected = torch.stack([network(rows) for network, rows in zip(many, inputs, strict=True)]).detach()
    torch.testing.assert_close(stacking.logits(many, inputs), expected)
    torch.testing.assert_close(stacking.logits(many[:1], inputs[:1]), expected[:1])


def test_small_networks_are_stacked_and_large_ones_are_not():
    assert stacking.best_batch(networks.create("lstm", n=4, dim=16, hidden=16), 16, 4) > 1
    assert stacking.best_batch(networks.create("transformer"), 1024, 10) == 1
