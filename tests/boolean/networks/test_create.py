"""What every network on bits must do, parametrised over the registry."""

import pytest
import torch

from jostle.base.errors import UsageError
from jostle.boolean import networks

SMALL = {
    "lstm": {"dim": 6, "hidden": 5},
    "mixer": {"dim": 6, "position_dim": 5, "mlp_dim": 7},
    "mlp": {"width": 6},
    "state-space": {"dim": 6, "state": 3},
    "transformer": {"dim": 8},
}
NAMES = networks.names()
# A bias of the keys adds the same to all scores of a query, which softmax ignores; the last bias of the mixing of
# positions adds the same to all channels of a position, which LayerNorm ignores.
WITHOUT_EFFECT = ("to_key.bias", "position_mlp.2.bias")


def cube_of(n, dtype=torch.float64):
    return (((torch.arange(2**n)[:, None] >> torch.arange(n)) & 1) * 2 - 1).to(dtype)


def test_the_names():
    assert sorted(SMALL) == NAMES


@pytest.mark.parametrize("name", NAMES)
class TestEveryNetwork:
    def test_bits_of_any_type_become_one_logit_each(self, name):
        network = networks.create(name, n=4, **SMALL[name])
        expected = network(cube_of(4))
        assert expected.shape == (16,)
        assert expected.unique().numel() > 8
        for dtype in (torch.float32, torch.bfloat16, torch.int8):
            assert torch.equal(network(cube_of(4, dtype)), expected)

    def test_a_logit_does_not_depend_on_the_rest_of_the_batch(self, name):
        network, bits = networks.create(name, n=4, **SMALL[name]), cube_of(4)
        torch.testing.assert_close(torch.cat([network(row[None]) for row in bits]), network(bits))

    def test_every_bit_matters(self, name):
        network, bits = networks.create(name, n=4, **SMALL[name]), cube_of(4)
        for position in range(4):
            flipped = bits.clone()
            flipped[:, position] *= -1
            assert (network(flipped) - network(bits)).abs().max() > 1e-6

    def test_the_gradient_reaches_every_parameter_and_a_step_lowers_the_loss(self, name):
        network, bits = networks.create(name, n=4, **SMALL[name]), cube_of(4)
        target = (bits.sum(dim=1) > 0).double()

        def loss():
            return torch.nn.functional.binary_cross_entropy_with_logits(network(bits), target)

        before = loss()
        before.backward()
        for label, parameter in network.named_parameters():
            assert parameter.grad is not None, label
            assert label.endswith(WITHOUT_EFFECT) or parameter.grad.abs().max() > 1e-12, label
        with torch.no_grad():
            for parameter in network.parameters():
                parameter -= 1e-3 * parameter.grad
        assert loss() < before

    def test_the_seed_decides_and_torch_keeps_its_own_state(self, name):
        state = torch.get_rng_state()
        first, same, other = (networks.create(name, n=4, seed=seed, **SMALL[name]) for seed in (3, 3, 4))
        assert torch.equal(torch.get_rng_state(), state)
        bits = cube_of(4)
        assert torch.equal(first(bits), same(bits))
        assert not torch.equal(first(bits), other(bits))

    def test_depth_adds_parameters_in_equal_steps(self, name):
        def count(depth):
            sizes = SMALL[name] | ({"dim": 5} if name == "lstm" else {})  # the first layer takes dim, others hidden
            network = networks.create(name, n=4, depth=depth, **sizes)
            return sum(parameter.numel() for parameter in network.parameters())

        assert count(3) - count(2) == count(4) - count(3) > 0

    def test_wrong_shapes_and_sizes_are_refused(self, name):
        network = networks.create(name, n=4, **SMALL[name])
        with pytest.raises(UsageError, match=r"built for a batch of 4 bits, \(batch, 4\), got shape \(2, 5\)"):
            network(torch.ones(2, 5))
        with pytest.raises(UsageError, match=r"got shape \(4,\)"):
            network(torch.ones(4))
        with pytest.raises(UsageError, match="n=0 must be a whole number, at least 1"):
            networks.create(name, n=0)
        with pytest.raises(UsageError, match=f"unknown {name} argument 'dept'; did you mean depth"):
            networks.create(name, dept=1)


def test_unknown_networks_answer_with_near_matches():
    with pytest.raises(UsageError, match="unknown network 'transformr'; did you mean transformer"):
        networks.create("transformr")


@pytest.mark.parametrize(
    ("name", "choice"),
    [
        ("transformer", {"norm": "prae"}),
        ("transformer", {"positions": "ad"}),
        ("transformer", {"read": "ende"}),
        ("transformer", {"attention": "sofmax"}),
        ("mlp", {"activation": "rel"}),
        ("mixer", {"read": "maen"}),
        ("mixer", {"activation": "gel"}),
    ],
)
def test_unknown_choices_answer_with_near_matches(name, choice):
    [(argument, value)] = choice.items()
    with pytest.raises(UsageError, match=f"unknown {argument} '{value}'; did you mean"):
        networks.create(name, **choice)
