"""The fast passes against the plain module, in outputs and gradients; and the optimiser against torch's."""

import pytest
import torch

from jostle_papers.p2402_09963.hardness import HardnessDesign
from jostle_papers.p2402_09963.hardness.passes import outputs
from jostle_papers.stacked.adamw import StackedAdamW
from jostle_papers.stacked.layout import Layout

DESIGN = HardnessDesign(dim=12, depth=3, heads=3)


def shaken(count, n=7, design=DESIGN, factor=1.0):
    """Networks whose blocks, biases and gains differ."""
    torch.manual_seed(3)
    networks = [design.create(n, seed).double() for seed in range(count)]
    with torch.no_grad():
        for network in networks:
            for parameter in network.parameters():
                parameter += 0.3 * torch.randn_like(parameter)
            network.blocks[0].attention.to_query.weight *= factor
    return networks


@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize("depth", [2, 3])
def test_outputs_and_gradients_are_those_of_the_module(bits, count, depth):
    design = HardnessDesign(dim=12, depth=depth, heads=3)
    networks, layout = shaken(count, design=design), Layout(design.create(7, 0))
    strings = torch.stack([bits.roll(place, dims=0) for place in range(count)])  # each network has its own
    rows = layout.stack(networks).requires_grad_()
    found = outputs(layout.views(rows), strings, design.heads)
    (gradient,) = torch.autograd.grad(found.square().sum(), rows)
    for place, network in enumerate(networks):
        plain = network(strings[place])
        assert torch.allclose(found[place], plain, rtol=0, atol=1e-12)
        plain.square().sum().backward()
        for name, parameter in network.named_parameters():
            view = layout.views(gradient)[name][place]
            assert torch.allclose(view, parameter.grad, rtol=1e-8, atol=1e-9), name


@pytest.mark.parametrize("count", [1, 2])
def test_long_strings_of_narrow_tokens_too(count):
    design, n = HardnessDesign(dim=4), 40  # gathered by sums
    networks, layout = shaken(count, n=n, design=design), Layout(design.create(n, 0))
    strings = torch.randint(2, (count, 5, n), generator=torch.Generator().manual_seed(1)).double() * 2 - 1
    rows = layout.stack(networks).requires_grad_()
    found = outputs(layout.views(rows), strings, design.heads)
    (gradient,) = torch.autograd.grad(found.square().sum(), rows)
    for place, network in enumerate(networks):
        plain = network(strings[place])
        assert torch.allclose(found[place], plain, rtol=0, atol=1e-12)
        plain.square().sum().backward()
        for name, parameter in network.named_parameters():
            view = layout.views(gradient)[name][place]
            assert torch.allclose(view, parameter.grad, rtol=1e-8, atol=1e-9), name


def test_shorter_strings_are_read_at_their_own_end(bits):
    (network,), layout = shaken(1), Layout(DESIGN.create(7, 0))
    rows = layout.stack([network])
    found = outputs(layout.views(rows), bits[None, :, :4], DESIGN.heads)
    assert torch.allclose(found[0], network(bits[:, :4]), rtol=0, atol=1e-12)


def test_sharp_attention_keeps_its_digits_in_float32(bits):
    (network,), layout = shaken(1, factor=30.0), Layout(DESIGN.create(7, 0))
    exact = network(bits).detach()
    found = outputs(layout.views(layout.stack([network]).float()), bits[None].float(), DESIGN.heads)[0]
    own = (network.float()(bits.float()) - exact).abs().max().detach()
    assert (found - exact).abs().max() < 10 * own + 1e-5


def test_stacked_weights_come_back_as_they_were():
    networks, layout = shaken(2), Layout(DESIGN.create(7, 0))
    again = layout.unstack(layout.stack(networks), 1)
    assert all(torch.equal(weight, again.state_dict()[name]) for name, weight in networks[1].state_dict().items())
    assert not again.training


def test_adamw_is_that_of_torch_with_a_rate_for_each_network():
    torch.manual_seed(0)
    weights, rates = torch.randn(3, 50), torch.tensor([[0.01], [0.003], [0.0]])
    started = weights.clone()
    theirs = [torch.nn.Parameter(row.clone()) for row in weights]
    optimizers = [
        torch.optim.AdamW([row], lr=float(rate), weight_decay=0.1) for row, rate in zip(theirs, rates, strict=True)
    ]
    ours = StackedAdamW.start(weights)
    for _ in range(5):
        gradient = torch.randn(3, 50)
        ours.step(weights, gradient, rates, 0.1)
        for row, optimizer, part in zip(theirs, optimizers, gradient, strict=True):
            row.grad = part.clone()
            optimizer.step()
    assert torch.allclose(weights, torch.stack([row.detach() for row in theirs]), rtol=1e-12, atol=1e-14)
    assert torch.equal(weights[2], started[2])  # a rate of 0 leaves it alone
