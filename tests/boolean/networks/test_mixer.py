"""The mixer by loops over positions and channels."""

import torch

from jostle.boolean import networks
from tests.boolean.networks.test_create import cube_of


def create(**sizes):
    return networks.create("mixer", n=4, dim=6, position_dim=5, mlp_dim=7, **sizes)


def test_positions_are_mixed_within_a_channel_and_channels_within_a_position():
    block, tokens = create().blocks[0], torch.randn(2, 4, 6)
    expected, normed = tokens.clone(), block.position_norm(tokens)
    for row in range(2):
        for channel in range(6):
            expected[row, :, channel] += block.position_mlp(normed[row, :, channel])
    normed = block.channel_norm(expected)
    for row in range(2):
        for position in range(4):
            expected[row, position] = expected[row, position] + block.channel_mlp(normed[row, position])
    torch.testing.assert_close(block(tokens), expected)


def test_the_order_of_the_bits_is_a_matter_of_the_mixing_weights():
    network, bits, order = create(), cube_of(4), torch.tensor([2, 0, 3, 1])
    expected = network(bits)
    with torch.no_grad():
        for block in network.blocks:
            enter, _, leave = block.position_mlp
            enter.weight.copy_(enter.weight[:, order])
            leave.weight.copy_(leave.weight[order])
            leave.bias.copy_(leave.bias[order])
    torch.testing.assert_close(network(bits[:, order]), expected)
    assert not torch.allclose(network(bits), expected)


def test_the_mean_or_the_last_position_is_read():
    mean, last, bits = create(read="mean"), create(read="last"), cube_of(4)
    tokens = mean.norm(mean.blocks(mean.symbols[((bits + 1) / 2).long()]))
    torch.testing.assert_close(mean(bits), mean.readout(tokens.mean(dim=1))[:, 0])
    torch.testing.assert_close(last(bits), mean.readout(tokens[:, 3])[:, 0])
