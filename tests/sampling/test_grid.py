import itertools

import numpy as np
import pytest
import torch

from jostle.sampling import Grid, Trials
from jostle.tokens import Inputs, Rows

MASK = torch.tensor([[1, 1, 0, 1], [0, 0, 0, 1], [1, 1, 1, 1], [0, 1, 1, 0], [1, 0, 0, 0]], dtype=torch.bool)
MASKED = Inputs(torch.randn(5, 4, 2, dtype=torch.float64), Rows(), MASK)
PLAIN = Inputs(torch.randn(5, 4, 2, dtype=torch.float64), Rows())


def triples(trials: Trials):
    return list(zip(trials.inputs.tolist(), trials.tokens.tolist(), trials.draws.tolist(), strict=True))


def all_blocks(plan, inputs, block, seed=0):
    return list(plan.blocks(inputs, plan.order(inputs, seed), block))


@pytest.mark.parametrize("block", [1, 5, 24, 10_000])
@pytest.mark.parametrize("draws", [1, 3])
@pytest.mark.parametrize("inputs", [PLAIN, MASKED], ids=["plain", "masked"])
def test_every_unmasked_triple_is_visited_once_for_any_block_size(inputs, draws, block):
    visited = [triple for part in all_blocks(Grid(draws), inputs, block) for triple in triples(part)]
    mask = MASK if inputs is MASKED else torch.ones_like(MASK)
    expected = [(i, t, r) for i, t, r in itertools.product(range(5), range(4), range(draws)) if mask[i, t]]
    assert sorted(visited) == expected


@pytest.mark.parametrize("inputs", [PLAIN, MASKED], ids=["plain", "masked"])
def test_the_order_does_not_depend_on_the_block_size_and_blocks_hold_whole_inputs(inputs):
    small, large = (all_blocks(Grid(2), inputs, block) for block in (1, 10_000))
    assert (len(small), len(large)) == (5, 1)
    assert [triple for part in small for triple in triples(part)] == triples(large[0])
    assert [len(np.unique(part.inputs)) for part in small] == [1] * 5


def test_draws_of_a_cell_and_tokens_of_an_input_follow_each_other():
    [trials] = all_blocks(Grid(3), MASKED, 10_000)
    cells = list(dict.fromkeys((i, t) for i, t, _ in triples(trials)))
    assert triples(trials) == [(i, t, r) for i, t in cells for r in range(3)]
    for i in range(5):
        assert [t for owner, t in cells if owner == i] == MASK[i].nonzero()[:, 0].tolist()


def test_the_seed_decides_the_order_of_the_inputs():
    many = Inputs(torch.zeros(50, 1), Rows())
    first, same, other = (Grid().order(many, seed).tolist() for seed in (0, 0, 1))
    assert first == same != other
    assert sorted(first) == sorted(other) == list(range(50))
    assert first != sorted(first)


def test_trials_can_be_cut():
    [trials] = all_blocks(Grid(2), PLAIN, 10_000)
    assert len(trials) == 40
    assert triples(trials[3:7]) == triples(trials)[3:7]
    assert triples(trials[np.array([5, 1])]) == [triples(trials)[5], triples(trials)[1]]
