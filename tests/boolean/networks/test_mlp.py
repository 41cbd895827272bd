"""The multi-layer perceptron by hand."""

import torch

from jostle.boolean import networks
from tests.boolean.networks.test_create import cube_of


def test_it_is_products_and_activations():
    network, bits = networks.create("mlp", n=3, depth=2, width=4, activation="tanh"), cube_of(3)
    first, _, second, _ = network.layers
    hidden = torch.tanh(bits @ first.weight.T + first.bias)
    hidden = torch.tanh(hidden @ second.weight.T + second.bias)
    torch.testing.assert_close(network(bits), (hidden @ network.readout.weight.T + network.readout.bias)[:, 0])


def test_the_order_of_the_bits_is_a_matter_of_its_first_weights():
    network, bits, order = networks.create("mlp", n=5), cube_of(5), torch.tensor([3, 0, 4, 1, 2])
    expected = network(bits)
    with torch.no_grad():
        network.layers[0].weight.copy_(network.layers[0].weight[:, order])
    torch.testing.assert_close(network(bits[:, order]), expected)
    assert not torch.allclose(network(bits), expected)


def test_without_biases_and_with_tanh_it_is_odd():
    network, bits = networks.create("mlp", n=5, activation="tanh"), cube_of(5)
    assert not torch.allclose(network(-bits), -network(bits))
    with torch.no_grad():
        for name, parameter in network.named_parameters():
            if name.endswith("bias"):
                parameter.zero_()
    torch.testing.assert_close(network(-bits), -network(bits))
