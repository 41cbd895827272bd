"""Stacked networks against plain ones: weights, logits, losses, gradients, steps."""

import math

import pytest
import torch
from torch.nn import functional

from jostle_papers.p2403_06925.grokking import RELEASED, Addition, Division, Permutations, initial_network, split
from jostle_papers.p2403_06925.grokking.gradients import loss_and_gradient
from jostle_papers.p2403_06925.grokking.passes import Pairs, cross_entropy_, logits_of, shares_of
from jostle_papers.p2403_06925.grokking.plain import layout_of
from jostle_papers.stacked.adamw import StackedAdamW
from tests.papers.grokking import toys

DESIGNS = pytest.mark.parametrize("name", list(toys.DESIGNS))
ALL = torch.arange(25).expand(3, -1)


@DESIGNS
def test_weights_come_back(name):
    design = toys.DESIGNS[name]
    networks = toys.shaken(design)
    layout, rows, _ = toys.stacked(networks, design)
    assert layout.count == sum(weight.numel() for weight in networks[0].parameters())
    torch.manual_seed(1)
    expected = torch.rand(1)
    torch.manual_seed(1)
    for index, network in enumerate(networks):
        again = layout.unstack(rows, index).state_dict()
        assert all(torch.equal(again[key], value) for key, value in network.state_dict().items())
    assert torch.equal(torch.rand(1), expected)
    own = sum(view.square().sum() for view in layout.views(rows).values())
    assert torch.isclose(rows.square().sum(), own)  # what lies between weights is 0


@DESIGNS
@pytest.mark.parametrize("task", [Addition(5), Division(5), Permutations(3)], ids=lambda task: task.describe())
def test_logits_are_those_of_the_plain_network(name, task):
    design = toys.DESIGNS[name]
    networks = toys.shaken(design, task)
    _, _, made = toys.stacked(networks, design, task)
    chosen = torch.stack([torch.randperm(len(task.pairs()))[:11] for _ in networks])
    found = logits_of(made, Pairs.of(task, chosen, design.heads))
    for index, network in enumerate(networks):
        assert torch.allclose(found[index], network(task.pairs()[chosen[index]]), atol=1e-11)


@DESIGNS
@pytest.mark.parametrize("at_once", [32, 10**6])
def test_the_gradient_is_that_of_autograd(name, at_once, monkeypatch):
    monkeypatch.setattr("jostle_papers.p2403_06925.grokking.passes._PAIRS_AT_ONCE", at_once)
    task = Addition(11)  # 121 pairs: several parts
    design = toys.DESIGNS[name]
    networks = toys.shaken(design, task)
    layout, rows, _ = toys.stacked(networks, design, task)
    chosen = torch.stack([torch.randperm(121)[:100] for _ in networks])
    gradient = torch.full_like(rows, math.nan)
    views = layout.views(gradient)
    before = rows.clone()
    loss = loss_and_gradient(rows, Pairs.of(task, chosen, design.heads), layout, design, gradient)
    assert torch.equal(rows, before)
    for index, network in enumerate(networks):
        expected = functional.cross_entropy(network(task.pairs()[chosen[index]]), task.answers()[chosen[index]])
        expected.backward()
        assert torch.isclose(loss[index], expected, rtol=1e-12)
        for key, weight in network.named_parameters():
            assert torch.allclose(views[key][index], weight.grad, atol=1e-11), key
    if design.biases:
        assert not views["attention.in_proj_bias"][:, design.dim : 2 * design.dim].any()  # exactly 0, of the keys


def test_shares_do_not_overflow():
    scores = torch.tensor([[0.0, 0.0], [2000.0, 1999.0], [-2000.0, -3000.0]])
    expected = torch.softmax(functional.pad(scores, (0, 1)), dim=1)[:, :2]
    assert torch.allclose(shares_of(scores), expected)


def test_cross_entropy_against_torch_and_to_the_last_digits():
    generator = torch.Generator().manual_seed(0)
    logits = 5 * torch.randn(2, 50, 7, generator=generator)
    labels = torch.randint(7, (2, 50), generator=generator)
    plain = logits.clone().requires_grad_()
    expected = functional.cross_entropy(plain.flatten(0, 1), labels.flatten(), reduction="none")
    expected.sum().backward()
    losses, slope = cross_entropy_(logits.clone(), labels)
    assert torch.allclose(losses.flatten(), expected)
    assert torch.allclose(slope, plain.grad)
    sure = torch.zeros(1, 1, 114, dtype=torch.float32)
    sure[..., 5] = 25.0
    losses, slope = cross_entropy_(sure.clone(), torch.tensor([[5]]))
    exact = math.log1p(113 * math.exp(-25))  # 1.6e-9, below what float32 resolves next to 1
    assert float(losses) == pytest.approx(exact, rel=1e-6)
    assert float(slope[0, 0, 5]) == pytest.approx(-exact, rel=1e-6)
    wrong, _ = cross_entropy_(torch.tensor([[[0.0, 300.0, -300.0]]], dtype=torch.float32), torch.tensor([[2]]))
    assert float(wrong) == pytest.approx(600.0)


def test_adamw_is_that_of_torch():
    design = toys.DESIGNS["released"]
    generator = torch.Generator().manual_seed(0)
    weights = torch.randn(2, 30, generator=generator, dtype=torch.float32)
    theirs = torch.nn.Parameter(weights.clone())
    settings = {"lr": design.lr, "weight_decay": design.weight_decay, "betas": design.betas, "eps": design.eps}
    optimizer, mine = torch.optim.AdamW([theirs], foreach=False, **settings), StackedAdamW.start(weights)
    for _ in range(20):
        gradient = torch.randn(2, 30, generator=generator, dtype=torch.float32)
        theirs.grad = gradient.clone()
        optimizer.step()
        mine.step(weights, gradient, **settings)
        assert torch.equal(weights, theirs.detach())


def test_the_first_losses_are_those_stored_with_the_released_code():
    """Its notebook keeps the running means of the losses of seed 42, to six digits: 4.739575 in epoch 1."""
    task = Addition()
    layout = layout_of(task, RELEASED)
    rows = layout.stack([initial_network(task, RELEASED, 42)])
    pairs = Pairs.of(task, split(task, 0.3, 42)[0][None], RELEASED.heads)
    gradient, optimizer, losses = torch.zeros_like(rows), StackedAdamW.start(rows), []
    for _ in range(5):
        losses.append(float(loss_and_gradient(rows, pairs, layout, RELEASED, gradient)))
        optimizer.step(rows, gradient, RELEASED.lr, RELEASED.weight_decay, RELEASED.betas, RELEASED.eps)
    means = [sum(losses[: count + 1]) / (count + 1) for count in range(5)]
    assert means == pytest.approx([4.739575, 4.735073, 4.730742, 4.726283, 4.721591], abs=2e-6)
