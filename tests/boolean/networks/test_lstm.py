"""The LSTM against torch's own."""

import pytest
import torch
from torch import nn

from jostle.boolean import networks
from tests.boolean.networks.test_create import cube_of


@pytest.mark.parametrize("bias", [True, False])
def test_it_is_the_lstm_of_torch(bias):
    network = networks.create("lstm", n=5, depth=2, dim=3, hidden=4, bias=bias)
    reference = nn.LSTM(3, 4, num_layers=2, bias=bias, batch_first=True)
    with torch.no_grad():
        for level, layer in enumerate(network.layers):
            getattr(reference, f"weight_ih_l{level}").copy_(layer.input_weight)
            getattr(reference, f"weight_hh_l{level}").copy_(layer.state_weight)
            if bias:
                getattr(reference, f"bias_ih_l{level}").copy_(layer.bias)
                getattr(reference, f"bias_hh_l{level}").zero_()
    bits = cube_of(5)
    states, _ = reference(network.symbols[((bits + 1) / 2).long()])
    torch.testing.assert_close(network(bits), network.readout(states[:, -1])[:, 0])


def test_with_weights_of_zero_it_is_constant():
    network, bits = networks.create("lstm", n=5, dim=3, hidden=4), cube_of(5)
    assert network(bits).unique().numel() > 16
    with torch.no_grad():
        for layer in network.layers:
            layer.input_weight.zero_()
    assert torch.equal(network(bits), network.readout.bias.expand(32))


def test_the_default_weights_are_spread_as_documented():
    network = networks.create("lstm", depth=1, bias=True)
    for weight in network.layers[0].parameters():
        assert 0.95 / 8 < weight.abs().max() <= 1 / 8
