"""Weights of several networks in one tensor come back as they were; parameters can share a row."""

import pytest
import torch
from torch import nn

from jostle_papers.stacked.adamw import StackedAdamW
from jostle_papers.stacked.layout import Layout
from tests.papers.hardness.tied import Tied


def networks(count, dtype=torch.float64):
    torch.manual_seed(1)
    return [nn.Sequential(nn.Linear(5, 3), nn.LayerNorm(3), nn.Linear(3, 2)).to(dtype) for _ in range(count)]


def test_weights_begin_at_a_line_of_the_cache_and_gaps_stay_zero():
    made = networks(2)
    layout = Layout(made[0])
    rows = layout.stack(made)
    assert layout.count == sum(weight.numel() for weight in made[0].parameters())
    views = layout.views(rows)
    assert all(view.storage_offset() % 16 == 0 for view in views.values())
    for view in views.values():
        view.zero_()
    assert not rows.any()


@pytest.mark.parametrize("dtype", [None, torch.float32])
def test_stacked_networks_come_back_as_they_were(dtype):
    made = networks(3)
    layout = Layout(made[0])
    rows = layout.stack(made, dtype)
    for row, network in enumerate(made):
        found = layout.unstack(rows, row)
        assert not found.training
        for name, weight in network.state_dict().items():
            assert torch.equal(found.state_dict()[name], weight.to(rows.dtype))


def test_tied_weights_have_one_place_and_buffers_none():
    first, second = Tied(4, 6), Tied(4, 6)
    layout = Layout(first)
    assert layout.count == sum(weight.numel() for weight in first.parameters())
    found = layout.unstack(layout.stack([first, second]), 1)
    assert found.second.weight is found.first.weight
    assert torch.equal(found.first.weight, second.first.weight)
    assert torch.equal(found.gains, first.gains)
    assert "gains" not in layout.shapes


def test_a_bound_network_takes_the_steps_of_its_row():
    made = networks(2)
    layout = Layout(made[0])
    rows = layout.stack(made)
    layout.bind(made[1], rows, 1)
    rows += 1
    for name, weight in made[1].named_parameters():
        assert torch.equal(weight, layout.views(rows)[name][1])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("decay", [0.0, 0.1])
def test_a_step_has_the_bits_of_torch(dtype, decay):
    """The foreach loop of torch's AdamW and, without decay, of its Adam."""
    made = networks(2, dtype)
    layout = Layout(made[0])
    rows = layout.stack(made)
    optimizer, gradient = StackedAdamW.start(rows), torch.zeros_like(rows)
    kind = torch.optim.AdamW if decay else torch.optim.Adam
    theirs = [kind(each.parameters(), lr=1e-2, weight_decay=decay, foreach=True) for each in made]
    generator = torch.Generator().manual_seed(0)
    for _ in range(20):
        for row, network in enumerate(made):
            for name, weight in network.named_parameters():
                weight.grad = torch.randn(weight.shape, generator=generator, dtype=dtype)
                layout.views(gradient)[name][row] = weight.grad
            theirs[row].step()
        optimizer.step(rows, gradient, 1e-2, decay)
    for row, network in enumerate(made):
        for name, weight in network.named_parameters():
            assert torch.equal(layout.views(rows)[name][row], weight)


def test_a_network_with_learning_rate_zero_stays_as_it_is():
    rows = torch.randn(2, 5)
    before, optimizer = rows.clone(), StackedAdamW.start(rows)
    optimizer.step(rows, torch.ones(2, 5), torch.tensor([[0.0], [0.1]]), 0.1)
    assert torch.equal(rows[0], before[0])
    assert not torch.equal(rows[1], before[1])
