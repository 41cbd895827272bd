"""The transformer against torch's own encoder, and what it can and cannot tell apart."""

import math

import pytest
import torch
from torch import nn

from jostle.base.errors import UsageError
from jostle.boolean import networks
from tests.boolean.networks.test_create import cube_of


def create(**sizes):
    network = networks.create("transformer", **sizes)
    with torch.no_grad():  # biases and norms away from 0 and 1, so that a wrong place of theirs shows
        for parameter in network.parameters():
            if parameter.ndim == 1:
                parameter += 0.3 * torch.randn_like(parameter)
    return network


def encoder_with_the_weights_of(network, heads, is_pre):
    """torch's encoder layers, an independent implementation, as a function of the tokens."""
    layers = []
    for block in network.blocks:
        dim, width = block.mlp[0].in_features, block.mlp[0].out_features
        layer = nn.TransformerEncoderLayer(dim, heads, width, dropout=0.0, norm_first=is_pre, batch_first=True)
        parts = [block.attention.to_query, block.attention.to_key, block.attention.to_value]
        with torch.no_grad():
            layer.self_attn.in_proj_weight.copy_(torch.cat([part.weight for part in parts]))
            layer.self_attn.in_proj_bias.copy_(torch.cat([part.bias for part in parts]))
        for ours, theirs in [
            (block.attention.to_out, layer.self_attn.out_proj),
            (block.mlp[0], layer.linear1),
            (block.mlp[2], layer.linear2),
            (block.attention_norm, layer.norm1),
            (block.mlp_norm, layer.norm2),
        ]:
            theirs.load_state_dict(ours.state_dict())
        layers.append(layer)
    return nn.Sequential(*layers)


@pytest.mark.parametrize("norm", ["post", "pre"])
@pytest.mark.parametrize("read", ["end", "last"])
@pytest.mark.parametrize("positions", ["concatenated", "added", "none"])
def test_it_is_the_encoder_of_torch(norm, read, positions):
    network = create(n=4, dim=12, heads=3, mlp_dim=10, norm=norm, read=read, positions=positions)
    encoder = encoder_with_the_weights_of(network, 3, norm == "pre")
    bits = cube_of(4)
    symbols = network.symbols[((bits + 1) / 2).long()]  # a look-up
    if read == "end":
        symbols = torch.cat([symbols, network.symbols[2].repeat(16, 1, 1)], dim=1)
    tokens = {
        "concatenated": lambda: torch.cat([symbols, network.positions.repeat(16, 1, 1)], dim=2),
        "added": lambda: symbols + network.positions,
        "none": lambda: symbols,
    }[positions]()
    expected = network.readout(network.norm(encoder(tokens)[:, -1]))[:, 0]
    torch.testing.assert_close(network(bits), expected)


@pytest.mark.parametrize(("dim", "parameters"), [(128, 199_425), (64, 50_561), (32, 12_993), (4, 281)])
def test_the_number_of_parameters_of_paper_2(dim, parameters):
    """Of the model of paper 2's code, without the table of positions."""
    network = networks.create("transformer", dim=dim, read="last")
    assert sum(p.numel() for name, p in network.named_parameters() if name != "positions") == parameters


def test_the_default_weights_are_spread_as_documented():
    dim = 64
    network = networks.create("transformer", dim=dim, depth=1, mlp_dim=128)
    block, attention = network.blocks[0], network.blocks[0].attention
    for weight, reach in [
        (attention.to_query.weight, math.sqrt(3 / (2 * dim))),
        (attention.to_key.weight, math.sqrt(3 / (2 * dim))),
        (attention.to_value.weight, math.sqrt(3 / (2 * dim))),
        (attention.to_out.weight, dim**-0.5),
        (block.mlp[0].weight, dim**-0.5),
        (block.mlp[2].weight, 128**-0.5),
    ]:
        assert 0.99 * reach < weight.abs().max() <= reach
    for layer in (attention.to_query, attention.to_key, attention.to_value, attention.to_out):
        assert not layer.bias.any()
    positions = network.positions.detach()
    assert float(positions.std()) == pytest.approx(1, abs=4 / math.sqrt(2 * positions.numel()))


def test_without_positions_the_end_symbol_sees_a_set():
    network, bits = create(n=5, dim=8, positions="none"), cube_of(5)
    torch.testing.assert_close(network(bits[:, torch.randperm(5)]), network(bits))
    with_positions = create(n=5, dim=8)
    assert (with_positions(bits.flip(1)) - with_positions(bits)).abs().max() > 1e-3


def test_without_positions_only_the_bit_that_is_read_stands_out():
    network, bits = create(n=5, dim=8, positions="none", read="last"), cube_of(5)
    torch.testing.assert_close(network(bits[:, [3, 1, 0, 2, 4]]), network(bits))
    assert (network(bits[:, [4, 1, 2, 3, 0]]) - network(bits)).abs().max() > 1e-3


@pytest.mark.parametrize("kind", ["softmax", "relu", "linear"])
@torch.no_grad()
def test_attention_written_as_loops(kind):
    network = create(n=3, dim=8, heads=2, attention=kind)
    attention = network.blocks[0].attention
    tokens = torch.randn(2, 4, 8)
    found = attention(tokens, 3)
    assert found.shape == (2, 3, 8)
    for row in range(2):
        query, key, value = (layer(tokens[row]) for layer in (attention.to_query, attention.to_key, attention.to_value))
        for place in range(3):
            gathered = torch.zeros(8)
            for head in (slice(0, 4), slice(4, 8)):
                scores = [float(query[place + 1, head] @ key[other, head]) / 2 for other in range(4)]
                weights = {
                    "softmax": [math.exp(s) / sum(map(math.exp, scores)) for s in scores],
                    "relu": [max(s, 0) / 4 for s in scores],
                    "linear": [s / 4 for s in scores],
                }[kind]
                for other in range(4):
                    gathered[head] += weights[other] * value[other, head]
            torch.testing.assert_close(found[row, place], attention.to_out(gathered))


def test_a_layer_norm_without_epsilon_and_its_effect():
    bits = cube_of(4)
    outputs = [networks.create("transformer", n=4, dim=8, norm_eps=eps)(bits) for eps in (0, 1e-5, 1.0)]
    torch.testing.assert_close(outputs[0], outputs[1], rtol=1e-3, atol=1e-3)
    assert (outputs[2] - outputs[1]).abs().max() > 0.01


def test_sizes_that_do_not_fit_are_refused():
    with pytest.raises(UsageError, match="dim=7 must be even"):
        networks.create("transformer", dim=7, heads=7)
    with pytest.raises(UsageError, match="dim=8 must be a multiple of heads=3"):
        networks.create("transformer", dim=8, heads=3)
    networks.create("transformer", dim=7, heads=7, positions="added")
