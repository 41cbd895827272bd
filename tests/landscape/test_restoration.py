"""A model comes back bit for bit as it was, whatever happens."""

import pytest
import torch
from torch import nn

from jostle import landscape
from jostle.base.errors import FailureError
from jostle.landscape import network
from jostle.landscape.weights import preserve
from tests.landscape.toys import Counting, state

X = torch.randn(6, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
Y = torch.tensor([0, 1, 2, 3, 0, 1])

MEASURES = {
    "sharpness": lambda model: landscape.sharpness(model, X, batch_size=2),
    "looped": lambda model: landscape.sharpness(model, X, batch_size=2, draws_at_once=1),
    "released": lambda model: landscape.sharpness(model, X, batch_size=2, protocol="released"),
    "directions": lambda model: landscape.average_direction_sharpness(model, X, Y, "cross-entropy", rho=1.0),
    "curvature": lambda model: landscape.curvature(model, X, Y),
    "sampled curvature": lambda model: landscape.curvature(model, X, Y, probes=2),
    "blow-up": lambda model: landscape.layernorm_blowup(model, X, batch_size=2),
    "released blow-up": lambda model: landscape.layernorm_blowup(model, X, protocol="released"),
}


@pytest.mark.parametrize("measure", MEASURES)
def test_after_success(measure):
    model = Counting()
    model.norm.eval()
    before = state(model)
    MEASURES[measure](model)
    assert model.seen > 0
    assert state(model) == before


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
@pytest.mark.parametrize(("measure", "at"), [("looped", 5), ("released", 5), ("blow-up", 2)])
def test_after_an_error_in_the_model(measure, at, error):
    model = Counting(error, at)  # 5: three batches of the clean pass, then the second batch of the first draw
    model.norm.eval()
    before, rng = state(model), torch.get_rng_state()
    with pytest.raises(FailureError if error is ValueError else error):
        MEASURES[measure](model)
    assert model.seen == at
    assert state(model) == before
    assert torch.equal(torch.get_rng_state(), rng)


def test_after_an_interrupt_while_weights_are_lent(monkeypatch):
    """Ctrl-C can come between two of the tensors that torch swaps."""

    def half_swapped(model, tensors, *_):
        model.layer._parameters["weight"] = tensors["layer.weight"]
        model.norm._buffers["running_mean"] = tensors["norm.running_mean"]
        raise KeyboardInterrupt

    model = Counting()
    before = state(model)
    monkeypatch.setattr(network, "functional_call", half_swapped)
    with pytest.raises(KeyboardInterrupt):
        landscape.sharpness(model, X)
    assert state(model) == before


def test_gradients_are_possible_afterwards():
    model = Counting()
    landscape.sharpness(model, X)
    model(X).sum().backward()
    assert all(parameter.grad is not None for parameter in model.parameters())


def test_kept_sets_one_mode_and_restores_each():
    model = nn.Sequential(nn.Dropout(), nn.BatchNorm1d(3))
    model[1].eval()
    with preserve(model):
        assert [module.training for module in model.modules()] == [False] * 3
        assert not torch.is_grad_enabled()
    with preserve(model, training=True):
        assert [module.training for module in model.modules()] == [True] * 3
    assert [module.training for module in model.modules()] == [True, True, False]
    assert torch.is_grad_enabled()
