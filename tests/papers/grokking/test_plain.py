import math

import pytest
import torch
from torch import nn

from jostle.base.errors import UsageError
from jostle_papers.p2403_06925.grokking import DESIGNS, NANDA, RELEASED, Addition, GrokkingDesign, initial_network
from jostle_papers.p2403_06925.grokking.designs import as_design
from tests.papers.grokking import toys

PAIRS = toys.TASK.pairs()


def test_the_weights_of_a_seed_are_those_of_the_released_code():
    """Its order of drawing, written out: embedding, output projection, query-key-value, inner, outer, unembedding."""
    network = initial_network(Addition(), RELEASED, seed=42)
    with torch.random.fork_rng():
        torch.manual_seed(42)
        embedding = torch.randn(114, 128, dtype=torch.float32)
        output, bias = torch.empty(128, 128, dtype=torch.float32), torch.empty(128, dtype=torch.float32)
        nn.init.kaiming_uniform_(output, a=math.sqrt(5))
        bias.uniform_(-(128**-0.5), 128**-0.5)  # drawn, and then set to 0
        all_three = nn.init.xavier_uniform_(torch.empty(384, 128, dtype=torch.float32))
        inner = nn.Linear(128, 512, dtype=torch.float32)
        outer = nn.Linear(512, 128, dtype=torch.float32)
        unembedding = nn.Linear(128, 114, dtype=torch.float32)
    assert torch.equal(network.embedding.weight, embedding)
    assert torch.equal(network.attention.out_proj.weight, output)
    assert torch.equal(network.attention.in_proj_weight, all_three)
    for mine, theirs in ((network.inner, inner), (network.outer, outer), (network.unembedding, unembedding)):
        assert torch.equal(mine.weight, theirs.weight)
        assert torch.equal(mine.bias, theirs.bias)
    for zero in (network.positions, network.attention.in_proj_bias, network.attention.out_proj.bias):
        assert not zero.any()


def test_first_weights_of_nanda_have_their_spread():
    network = initial_network(Addition(), NANDA, seed=0)
    for name, weight in network.state_dict().items():
        if weight.ndim == 1:
            assert not weight.any()
        else:
            exact = (114 if name == "unembedding.weight" else 128) ** -0.5
            assert abs(float(weight.std()) - exact) <= 4 * exact / math.sqrt(2 * weight.numel())


def test_making_a_network_leaves_the_global_generator_alone():
    torch.manual_seed(7)
    expected = torch.rand(3)
    torch.manual_seed(7)
    initial_network(toys.TASK, toys.DESIGNS["nanda"], seed=1)
    assert torch.equal(torch.rand(3), expected)


@pytest.mark.parametrize("name", DESIGNS.names())
def test_logits_by_hand(name):
    """One head at a time, one pair at a time, from the formula in the docstring of GrokkingDesign."""
    design = toys.DESIGNS[name]
    [network] = toys.shaken(design, seeds=(3,))
    found = network(PAIRS)
    size = design.dim // design.heads
    attention = network.attention
    query, key, value = attention.in_proj_weight.chunk(3)
    zeros = torch.zeros(design.dim)
    biases = attention.in_proj_bias.chunk(3) if design.biases else (zeros, zeros, zeros)
    for row, (a, b) in enumerate(PAIRS.tolist()):
        tokens = [a, b, toys.TASK.numbers]
        x = torch.stack([network.embedding.weight[token] + network.positions[i] for i, token in enumerate(tokens)])
        heads = []
        for head in range(design.heads):
            part = slice(head * size, (head + 1) * size)
            q = query[part] @ x[2] + biases[0][part]
            scores = torch.stack([q @ (key[part] @ x[i] + biases[1][part]) / math.sqrt(size) for i in range(3)])
            values = torch.stack([value[part] @ x[i] + biases[2][part] for i in range(3)])
            heads.append(torch.softmax(scores, dim=0) @ values)
        mixed = attention.out_proj(torch.cat(heads)) + (x[2] if design.residual else 0)
        output = network.outer(torch.relu(network.inner(mixed))) + (mixed if design.residual else 0)
        assert torch.allclose(found[row], network.unembedding(output), atol=1e-12)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: GrokkingDesign(dim=10, heads=4), "dim=10 must be a multiple of heads=4"),
        (lambda: GrokkingDesign(initial="torhc"), "unknown initial 'torhc'; did you mean torch"),
        (lambda: GrokkingDesign(weight_decay=2000), "weight_decay=2000 times lr=0.001 must be from 0"),
        (lambda: GrokkingDesign(betas=(0.9, 1.0)), "betas=.* must be two numbers from 0 to below 1"),
        (lambda: GrokkingDesign(hidden=0), "hidden=.* must be a whole number"),
        (lambda: as_design("nandda"), "unknown design 'nandda'; did you mean nanda"),
        (lambda: as_design(3), "design=3 must be a GrokkingDesign or one of mlp, nanda, released"),
    ],
)
def test_wrong_use_is_one_clear_line(make, message):
    with pytest.raises(UsageError, match=message):
        make()
