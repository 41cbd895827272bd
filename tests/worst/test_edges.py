"""Models without gradients, tokens without size, and what must be left as it was."""

import random

import numpy as np
import pytest
import torch
from torch import nn

import jostle
from jostle.base.errors import FailureError, UsageError
from jostle.estimates import JostleWarning
from jostle.responses import RESPONSES, Flip
from jostle.worst import WorstCase, worst_case
from jostle.worst.ascent import unit_vectors
from tests.worst.maps import Halfspace, small_network, words

FEW = {"tokens": "rows", "starts": 3, "steps": 4, "draws": 4}
INPUTS = words(3, 4, 6)


def in_numpy(x):
    return torch.from_numpy(x.numpy().sum(axis=(1, 2)))


def in_silence(x):
    with torch.no_grad():
        return x.sum(dim=(1, 2))


def detached(x):
    return x.detach().sum(dim=(1, 2))


@pytest.mark.parametrize("model", [in_numpy, in_silence, detached])
def test_without_gradients_the_largest_of_draws_and_deletion_is_found(model):
    with pytest.warns(JostleWarning, match="gives no gradients"):
        found = worst_case(model, INPUTS, response="margin", radius=1.0, **FEW)
    assert not found.has_gradient
    deleted = INPUTS.sum(dim=2).abs().numpy()
    np.testing.assert_allclose(found.values[0], np.maximum(found.max_of[-1, 0], deleted), rtol=1e-12)
    assert "no gradients: the largest of 4 draws and deletion" in str(found)


def test_classes_instead_of_logits_have_no_gradient():
    with pytest.warns(JostleWarning, match="gives no gradients"):
        found = worst_case(lambda x: (x.sum(dim=(1, 2)) > 0).long(), INPUTS, radius=2.0, **FEW)
    assert ((found.predictions[0] != found.clean_predictions[:, None]) == (found.values[0] > 0)).all()


def test_a_model_that_rounds_says_so_and_keeps_the_largest_draw():
    with pytest.warns(JostleWarning, match="a gradient of exactly 0"):
        found = worst_case(lambda x: x.flatten(1).round(), INPUTS, response="absolute-change", **FEW)
    assert (found.values >= found.max_of[-1]).all()
    assert found.values.min() > 0


def test_gradients_that_are_not_finite_end_an_ascent_and_are_counted():
    class Broken(torch.autograd.Function):
        @staticmethod
        def forward(context, x):
            return x.sum(dim=(1, 2))

        @staticmethod
        def backward(context, gradient):
            return torch.full((len(gradient), 4, 6), torch.nan)

    with pytest.warns(JostleWarning, match="gradient of NaN or infinity"):
        found = worst_case(Broken.apply, INPUTS, response="margin", **FEW)
    assert np.isfinite(found.values).all()
    assert (found.values >= found.max_of[-1]).all()


def test_outputs_that_are_not_finite_are_left_out():
    def model(x):
        total = x.sum(dim=(1, 2))
        return torch.where(x[:, 0, 0] > INPUTS[:, 0, 0].max(), torch.nan, total)

    with pytest.warns(JostleWarning, match="random changes have no finite response"):
        found = worst_case(model, INPUTS, response="margin", **FEW)
    assert np.isfinite(found.values).all()
    assert (found.values >= found.max_of[-1]).all()


def test_a_response_that_is_nowhere_defined_is_an_error():
    with pytest.raises(FailureError, match="no change has a finite response"):
        worst_case(lambda x: (x * 0).flatten(1), INPUTS, response="relative-change", **FEW)


def test_clean_outputs_must_be_finite():
    with pytest.raises(UsageError, match="unperturbed inputs with NaN"):
        worst_case(lambda x: x.sum(dim=(1, 2)) * torch.nan, INPUTS, **FEW)


def test_tokens_that_are_zero_stay_where_they_are_and_are_counted():
    inputs = INPUTS.clone()
    inputs[1, 2] = 0
    model = Halfspace(4, 6)
    with pytest.warns(JostleWarning, match="1 of 12 tokens are zero"):
        found = worst_case(model, inputs, response="margin", **FEW)
    assert found.values[0, 1, 2] == 0
    assert not found.changes[0, 1, 2].any()
    assert (np.delete(found.values.ravel(), 6) > 0).all()
    absolute = worst_case(model, inputs, response="margin", relative=False, **FEW)
    assert absolute.values[0, 1, 2] == pytest.approx(float(model.weight[2].detach().norm()))


def test_a_radius_of_zero_is_exactly_nothing_and_costs_nothing():
    found = worst_case(small_network(), INPUTS, radius=0, response="margin", **FEW)
    assert not found.values.any()
    assert (found.value, found.at().mean.value, found.at().max_of_draws.value) == (0, 0, 0)
    assert found.passes < 30  # the steadiness check, the clean passes, and a look for gradients
    assert np.isnan(found.at().gap)


class Noisy(nn.Module):
    """In train mode it would drop out; it always uses up random numbers of three kinds."""

    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Flatten(), nn.Linear(24, 8), nn.BatchNorm1d(8), nn.Dropout(0.5), nn.Linear(8, 3))

    def forward(self, x):
        torch.rand(1), np.random.rand(1), random.random()  # noqa: NPY002
        return self.layers(x)


def test_the_model_and_its_random_numbers_are_left_as_they_were():
    model = Noisy()
    model.train()
    model.layers[1].eval()
    model.layers[4].weight.requires_grad_(False)
    model(INPUTS).sum().backward()
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    gradients = {name: p.grad for name, p in model.named_parameters()}
    copies = {name: None if grad is None else grad.clone() for name, grad in gradients.items()}
    wants = {name: p.requires_grad for name, p in model.named_parameters()}
    modes = [module.training for module in model.modules()]
    states = torch.get_rng_state(), np.random.get_state()[1].tolist(), random.getstate()  # noqa: NPY002
    found = worst_case(model, INPUTS, **FEW)
    assert found.notes == ["model was in train mode; it was measured in eval mode and put back"]
    assert found.warnings == []
    assert str(found).endswith(f"  note: {found.notes[0]}")
    assert WorstCase.from_dict(found.to_dict()).notes == found.notes
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())
    for name, parameter in model.named_parameters():
        assert parameter.grad is gradients[name]
        assert parameter.grad is None or torch.equal(parameter.grad, copies[name])
    assert {name: p.requires_grad for name, p in model.named_parameters()} == wants
    assert [module.training for module in model.modules()] == modes
    assert torch.equal(torch.get_rng_state(), states[0])
    assert np.random.get_state()[1].tolist() == states[1]  # noqa: NPY002
    assert random.getstate() == states[2]


def test_they_are_left_as_they_were_after_an_error_too():
    model = small_network().train()

    def fails(x):
        raise ValueError("no")

    model[2].forward = fails
    with pytest.raises(FailureError, match="no"):
        worst_case(model, INPUTS, **FEW)
    assert all(module.training for module in model.modules())
    assert all(parameter.requires_grad for parameter in model.parameters())


def test_it_works_where_gradients_are_off_and_for_a_model_made_there():
    model = small_network()
    expected = worst_case(model, INPUTS, response="margin", **FEW)
    with torch.inference_mode():
        found = worst_case(model, INPUTS, response="margin", **FEW)
        made = small_network()
        inputs = INPUTS.clone()
    assert np.array_equal(found.values, expected.values)
    with pytest.warns(JostleWarning, match="gives no gradients"):
        inside = worst_case(made, inputs, response="margin", **FEW)
    assert np.isfinite(inside.values).all()


def test_single_precision_and_half_precision_work():
    for kind, tolerance in ((torch.float32, 1e-4), (torch.bfloat16, 0.1)):
        model = Halfspace(4, 6).to(kind)
        found = worst_case(model, INPUTS.to(kind), response="margin", radius=0.5, **FEW)
        exact = 0.5 * INPUTS.norm(dim=2) * model.weight.double().norm(dim=1)
        np.testing.assert_allclose(found.values[0], exact.detach(), rtol=tolerance)


def test_a_single_logit_of_exactly_zero_flips_at_any_change():
    found = worst_case(lambda x: (x - 1.0).sum(dim=(1, 2)) * 0.01, torch.ones(1, 2, 3), radius=0.1, **FEW)
    assert found.clean_predictions.tolist() == [0]
    assert found.value == 1.0


def test_binary_responses_of_others_are_drawn_only():
    class Turns(Flip):
        pass

    class Sign(RESPONSES.get("margin")):
        is_binary = True

        def change(self, reference, outputs):
            return (super().change(reference, outputs) > 0.1).double()

        def describe(self):
            return "sign"

    assert worst_case(Halfspace(4, 6), INPUTS, response=Turns(), **FEW).has_gradient
    with pytest.warns(JostleWarning, match="response sign has nothing to ascend"):
        worst_case(Halfspace(4, 6), INPUTS, response=Sign(), **FEW)


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ({"radius": -1}, "radius=-1 must be a finite number"),
        ({"radius": [0.1, float("inf")]}, "radius="),
        ({"radius": "1"}, "radius='1'"),
        ({"radius": []}, "radius="),
        ({"positions": "best"}, "positions='best' must be each, worst"),
        ({"positions": [-1]}, "positions="),
        ({"positions": [9]}, "positions=9 names no token"),
        ({"starts": 0}, "starts=0"),
        ({"steps": 0}, "steps=0"),
        ({"draws": 0}, "draws=0"),
        ({"draws": 10**12}, "draws=1000000000000 must be a whole number, at most 1000000"),
        ({"starts": 10**12}, "starts=1000000000000 must be a whole number from 1 to 10000"),
        ({"steps": 10**12}, "steps=1000000000000 must be a whole number from 1 to 1000000"),
        ({"level": 1.5}, "level=1.5"),
        ({"response": "flop"}, "flop"),
        ({"directions": lambda inputs, positions: torch.zeros(3)}, "directions"),
    ],
)
def test_wrong_use_is_one_line(choices, message):
    with pytest.raises(UsageError, match=message.replace("[", r"\[")) as error:
        worst_case(Halfspace(4, 6), INPUTS, **{**FEW, **choices})
    assert "\n" not in str(error.value)


def test_token_ids_cannot_be_moved_a_little():
    with pytest.raises(UsageError, match="needs real-valued tokens"):
        worst_case(lambda x: x.double().sum(dim=1), torch.ones(3, 4, dtype=torch.int64), tokens="rows")
    with pytest.raises(UsageError, match="needs real-valued tokens"):
        worst_case(small_network(), torch.ones(3, 4, dtype=torch.int64), tokens=jostle.Words())


def test_unit_vectors_of_gradients_of_any_size():
    vectors = torch.tensor([[3e-200, 4e-200], [3e200, 4e200], [0.0, 0.0], [torch.nan, 1.0], [torch.inf, 1.0]])
    found, usable = unit_vectors(vectors)
    assert usable.tolist() == [True, True, False, False, False]
    np.testing.assert_allclose(found, [[0.6, 0.8], [0.6, 0.8], [0, 0], [0, 0], [0, 0]], rtol=1e-12)
