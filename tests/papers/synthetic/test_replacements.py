"""Exact sensitivity: all replacements by loops, by batches, and for attention by changing one key at a time."""

import pytest
import torch

from jostle.base.errors import FailureError, UsageError
from jostle_papers.p2403_06925.synthetic import SelfAttention, SparseFrequent, attention_flips, exact_sensitivity, flips

TASK = SparseFrequent(sparse=1, frequent=3, difference=1, kinds=2, vocabulary=8, num_tokens=6)
INPUTS = TASK.sample(12, seed=0).inputs


def by_loops(function, inputs, vocabulary):
    """One replaced sequence at a time."""
    found = torch.zeros(*inputs.shape, vocabulary, dtype=torch.bool)
    for n, tokens in enumerate(inputs):
        for position in range(len(tokens)):
            for new in range(vocabulary):
                other = tokens.clone()
                other[position] = new
                before, after = (function(row[None])[0] for row in (tokens, other))
                found[n, position, new] = bool((before.sign() != after.sign()).any())
    return found


@pytest.mark.parametrize("scale", [0.3, 1.0, 2.0])
@pytest.mark.parametrize("seed", [0, 1])
def test_the_quick_way_for_attention_is_the_slow_one(scale, seed):
    network = SelfAttention(vocabulary=8, num_tokens=6, scale=scale, seed=seed)
    with torch.no_grad():
        slow = by_loops(network, INPUTS[:3], 8)
    assert torch.equal(flips(network, INPUTS[:3], 8), slow)
    assert torch.equal(attention_flips(network, INPUTS[:3]), slow)
    every = flips(network, INPUTS, 8)
    assert torch.equal(attention_flips(network, INPUTS), every)
    assert 0 < exact_sensitivity(network, INPUTS) == every.double().mean()


def test_it_takes_more_sequences_than_are_done_at_once():
    network = SelfAttention(vocabulary=8, num_tokens=6, scale=1.0)
    many = TASK.sample(120, seed=1).inputs
    assert torch.equal(attention_flips(network, many), flips(network, many, 8))


def test_the_remainder_is_not_lost_where_one_token_has_all_attention():
    """Token 0 has e^30 times the attention of any other; without it the small rest decides."""
    network = SelfAttention(vocabulary=3, num_tokens=4, dim=3, scale=1.0)
    with torch.no_grad():
        network.query.copy_(torch.ones(3, 3))
        network.key.copy_(torch.diag(torch.tensor([38.0, 0.0, 0.0])))
        network.output.copy_(torch.ones(4, 3))
        network.value.copy_(torch.diag(torch.tensor([1.0, -1.0, 0.5])))
    tokens = torch.tensor([[0, 1, 2, 1]])
    found = attention_flips(network, tokens)
    assert torch.equal(found, flips(network, tokens, 3))
    assert found[0, 0].tolist() == [False, True, True]  # (-1 + 0.5 - 1 + ...) / 4 < 0 without token 0
    assert not found[0, 1:].any()


def test_several_logits_are_compared_by_the_largest_and_zero_is_a_sign():
    tokens = torch.tensor([[0, 1]])
    by_class = flips(
        lambda rows: torch.stack([rows[:, 0], rows[:, 1]], dim=1).double() + torch.tensor([0.5, 0]), tokens, 3
    )
    assert by_class.int().tolist() == [[[0, 1, 1], [1, 0, 0]]]
    single = flips(lambda rows: rows.sum(dim=1).double() - 1, tokens, 3)  # 0 before
    assert single.int().tolist() == [[[0, 1, 1], [1, 0, 1]]]


def test_wrong_use_is_one_line():
    network = SelfAttention(vocabulary=8, num_tokens=6)
    with pytest.raises(UsageError, match="vocabulary=9 is not that of the network, 8"):
        exact_sensitivity(network, INPUTS, 9)
    with pytest.raises(UsageError, match="vocabulary=None"):
        exact_sensitivity(lambda tokens: tokens.double(), INPUTS)
    with pytest.raises(UsageError, match="tokens must be whole numbers"):
        flips(network, INPUTS.double(), 8)
    with pytest.raises(UsageError, match="at least one sequence"):
        attention_flips(network, INPUTS[:0])
    with pytest.raises(UsageError, match=r"vocabulary=.* must be a whole number"):
        flips(network, INPUTS, 0)


def test_underflow_is_said():
    network = SelfAttention(vocabulary=3, num_tokens=2, dim=3)
    with torch.no_grad():
        network.query.copy_(torch.ones(3, 3))
        network.key.copy_(torch.diag(torch.tensor([2000.0, 0.0, 0.0])))
    with pytest.raises(FailureError, match="use flips instead"):
        attention_flips(network, torch.tensor([[1, 2]]))
    assert flips(network, torch.tensor([[1, 2]]), 3).shape == (1, 2, 3)
