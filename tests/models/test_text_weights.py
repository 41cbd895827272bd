import math

import torch
from torch import nn

from jostle.models.text_model import STD, draw_weights


def test_narrow_weights_no_biases_and_nothing_for_padding():
    net = nn.ModuleList(
        [nn.Linear(60, 50), nn.Linear(60, 50, bias=False), nn.Embedding(70, 50, padding_idx=0), nn.Embedding(70, 50)]
    )
    net.append(nn.LayerNorm(5))
    draw_weights(net)
    assert not net[0].bias.any()
    assert not net[2].weight[0].any()
    assert net[3].weight[0].any()
    assert torch.equal(net[4].weight, torch.ones(5))
    for weight in (net[0].weight, net[1].weight, net[2].weight[1:], net[3].weight):
        # Standard errors of the standard deviation and of the mean of normal numbers.
        assert abs(weight.std() / STD - 1) < 4 / math.sqrt(2 * weight.numel())
        assert abs(weight.mean()) < 4 * STD / math.sqrt(weight.numel())
