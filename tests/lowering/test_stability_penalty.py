"""The stability penalty against closed forms, and in a training loop."""

import math

import pytest
import torch
from torch import nn

import jostle
from jostle.base.errors import UsageError
from jostle.lowering import StabilityPenalty
from tests.estimates.test_stability import Bag, cube, texts


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize("rho", [0.0, 0.5, 0.9])
def test_a_linear_function_of_gaussian_inputs_loses_one_minus_rho(rho):
    x = torch.randn(20000, 4, generator=generator(), dtype=torch.float64)
    weights = torch.tensor([1.0, -2.0, 0.5, 0.1], dtype=torch.float64)
    term = StabilityPenalty(rho=rho, strength=0.5)(lambda x: x @ weights, x, generator=generator(1))
    assert float(term) == pytest.approx(0.5 * (1 - rho), abs=0.015)


def test_a_relu_unit_has_the_arc_cosine_kernel():
    x, angle = torch.randn(40000, 3, generator=generator(), dtype=torch.float64), math.acos(0.6)
    lost = 1 - (math.sin(angle) + (math.pi - angle) * 0.6) / math.pi
    term = StabilityPenalty(rho=0.6).change(lambda x: torch.relu(x[:, 0]), x, generator=generator(1))
    assert float(term) == pytest.approx(lost, abs=0.015)


def test_parity_of_bits_loses_one_minus_rho_to_the_n():
    bits = cube(4).repeat(500, 1)
    term = StabilityPenalty(rho=0.8, vocabulary=(-1, 1)).change(lambda x: x.prod(dim=1), bits, generator=generator(1))
    assert float(term) == pytest.approx(1 - 0.8**4, abs=0.04)


def test_the_size_of_the_logits_and_a_constant_over_classes_do_not_matter():
    x, model = torch.randn(30, 5), nn.Linear(5, 4)
    penalty = StabilityPenalty(rho=0.7)
    plain = penalty.change(model, x, generator=generator())
    for other in (lambda x: 100 * model(x), lambda x: model(x) + 7.0):
        assert penalty.change(other, x, generator=generator()).item() == pytest.approx(plain.item(), rel=1e-3)
    assert 0 <= plain.item() <= 2


def test_nothing_moves_at_rho_one_or_strength_zero():
    x, model = torch.randn(30, 5), nn.Linear(5, 4)
    for penalty in (StabilityPenalty(rho=1.0), StabilityPenalty(strength=0)):
        before = torch.random.get_rng_state()
        assert float(penalty(model, x)) == 0.0
        assert penalty.passes == 0
        assert torch.equal(torch.random.get_rng_state(), before)


def test_constant_zero_logits_give_zero_and_no_nan():
    model = nn.Linear(5, 4)
    nn.init.zeros_(model.weight), nn.init.zeros_(model.bias)
    term = StabilityPenalty(rho=0.5)(model, torch.randn(3, 5))
    term.backward()
    assert term.item() == 0.0
    assert model.weight.grad.isfinite().all()


@pytest.mark.parametrize("tokens", ["words", "embeddings:before"])
def test_texts_move_as_a_whole_and_padding_stays(tokens):
    model, ids, sums = Bag(), [], []
    model.words.register_forward_pre_hook(lambda module, given: ids.append(given[0]))
    model.head.register_forward_pre_hook(lambda module, given: sums.append(given[0]))
    vocabulary = range(1, 12) if tokens == "words" else None
    penalty = StabilityPenalty(rho=0.2, tokens=tokens, vocabulary=vocabulary)
    penalty(model, texts()).backward()
    real = texts()["attention_mask"].bool()
    assert penalty.passes == 60 * 6
    assert torch.equal(ids[1] == 0, ~real)
    assert float((ids[1] != ids[0])[real].double().mean()) > 0.6 or tokens != "words"
    assert (sums[0] != sums[1]).any(dim=1).double().mean() > 0.9
    assert model.words.weight.grad.abs().sum() > 0


def test_it_makes_a_network_more_stable_in_training():
    torch.manual_seed(0)
    x = torch.randn(256, 8)
    labels = (x[:, 0] * x[:, 1] > 0).long()

    def trained(strength):
        torch.manual_seed(1)
        model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 2))
        optimizer, penalty = torch.optim.Adam(model.parameters(), lr=0.01), StabilityPenalty(rho=0.8, strength=strength)
        for _ in range(150):
            logits = model(x)
            loss = nn.functional.cross_entropy(logits, labels) + penalty(model, x, clean=logits)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        return model.eval()

    plain, stable = (
        jostle.stability(trained(strength), x, rho=0.8, response="correlation", plan="grid:20", centre=0.0, std=1.0)
        for strength in (0.0, 3.0)
    )
    assert stable.low > plain.high + 0.05


def test_it_is_described_and_mixes_like_the_other_penalty():
    penalty = StabilityPenalty(rho=0.5, strength=0.25, mix=True)
    assert penalty.describe() == "stability-penalty(tokens=whole, perturbation=correlated:rho=0.5, strength=0.25, mix)"
    assert penalty.loss_share == 0.75
    loss, model, x = torch.tensor(2.0), nn.Linear(5, 4), torch.randn(3, 5)
    expected = 1.5 + penalty(model, x, generator=generator()).item()
    assert penalty.combine(loss, model, x, generator=generator()).item() == pytest.approx(expected)
    with pytest.raises(UsageError, match="of StabilityPenalty leaves the loss"):
        StabilityPenalty(strength=2.0, mix=True)
    with pytest.raises(UsageError, match="rho=3 must be"):
        StabilityPenalty(rho=3)
