"""Functions whose worst case is known in closed form."""

import numpy as np
import pytest
import torch
from torch import nn

import jostle
from jostle.worst import worst_case
from tests.worst.maps import Halfspace, words

FEW = {"starts": 4, "steps": 5, "draws": 4}


def token_norms(values, view):
    """Norms (N, T) of the tokens of a batch."""
    return view.grid(values).reshape(len(values), view.num_tokens(tuple(values.shape[1:])), -1).norm(dim=2)


@pytest.mark.parametrize(
    ("shape", "tokens"),
    [((5, 6), jostle.Rows()), ((1, 6, 6), jostle.Patches(3)), ((7,), jostle.Coordinates()), ((2, 4), jostle.Whole())],
)
def test_the_margin_of_a_halfspace_moves_by_radius_times_norms(shape, tokens):
    model, inputs = Halfspace(*shape), torch.randn(6, *shape)
    found = worst_case(model, inputs, tokens=tokens, radius=[0.25, 1.5], response="margin", **FEW)
    weights = token_norms(model.weight.detach()[None], tokens)
    exact = torch.tensor([0.25, 1.5])[:, None, None] * token_norms(inputs, tokens) * weights
    np.testing.assert_allclose(found.values, exact, rtol=1e-6)
    sizes = np.linalg.norm(found.changes, axis=3)
    np.testing.assert_allclose(sizes, torch.tensor([0.25, 1.5])[:, None, None] * token_norms(inputs, tokens), rtol=1e-5)


def test_absolute_radii_do_not_depend_on_the_token():
    model, inputs = Halfspace(5, 6), torch.randn(3, 5, 6)
    found = worst_case(model, inputs, tokens="rows", radius=2.0, response="margin", relative=False, **FEW)
    np.testing.assert_allclose(found.values[0], (2.0 * model.weight.detach().norm(dim=1)).expand(3, 5), rtol=1e-6)


@pytest.mark.parametrize("columns", [1, 3])
def test_a_token_is_flippable_exactly_if_the_margin_is_within_reach(columns):
    inputs = torch.randn(40, 5, 6)
    if columns == 1:
        model = Halfspace(5, 6, bias=1.0)
        reach = inputs.norm(dim=2) * model.weight.detach().norm(dim=1)
        exact = model(inputs).abs()[:, None] < 0.5 * reach
    else:
        model = nn.Sequential(nn.Flatten(), nn.Linear(30, columns)).eval()
        logits, matrix = model(inputs).detach(), model[1].weight.detach().view(columns, 5, 6)
        best = logits.argmax(dim=1)
        gaps = logits.gather(1, best[:, None]) - logits  # of each class
        turns = (matrix[best][:, None] - matrix[None]).norm(dim=3)  # (inputs, classes, tokens)
        turns = torch.stack([turns[:, k] for k in range(columns)], dim=1)
        reached = gaps[:, :, None] < 0.5 * inputs.norm(dim=2)[:, None] * turns
        exact = (reached & (torch.arange(columns)[None, :, None] != best[:, None, None])).any(dim=1)
    found = worst_case(model, inputs, tokens="rows", radius=0.5, steps=30, draws=8)
    assert 0.1 < exact.double().mean() < 0.9
    assert np.array_equal(found.values[0] > 0, exact.numpy())
    assert found.value == pytest.approx(float(exact.double().mean()))
    assert found.at(over="max").largest.value == pytest.approx(float(exact.any(dim=1).double().mean()))


def test_the_change_that_was_found_does_what_is_said():
    model, inputs = nn.Sequential(nn.Flatten(), nn.Linear(30, 3)).eval(), torch.randn(20, 5, 6)
    found = worst_case(model, inputs, tokens="rows", radius=[0.2, 0.6], steps=10, draws=8)
    for level, index, position in np.argwhere(found.values > 0):
        moved = inputs[index : index + 1].clone()
        moved[0, position] += torch.from_numpy(found.changes[level, index, position])
        assert int(model(moved).argmax()) == found.predictions[level, index, position]
        assert found.predictions[level, index, position] != found.clean_predictions[index]
        size = np.linalg.norm(found.changes[level, index, position])
        assert size <= found.radii[level] * float(inputs[index, position].norm()) * (1 + 1e-6)
    assert np.array_equal(found.clean_predictions, model(inputs).argmax(dim=1).numpy())


def test_a_linear_map_moves_by_its_top_singular_value():
    matrix, inputs = torch.randn(30, 20), torch.randn(4, 5, 6)
    found = worst_case(
        lambda x: x.flatten(1) @ matrix, inputs, tokens="rows", response="absolute-change", steps=80, draws=4
    )
    tops = torch.stack([torch.linalg.matrix_norm(part, 2) for part in matrix.view(5, 6, 20)])
    exact = (inputs.norm(dim=2) * tops).numpy()
    assert (found.values[0] <= exact * (1 + 1e-9)).all()
    np.testing.assert_allclose(found.values[0], exact, rtol=5e-3)


def test_word_sensitivity_of_the_identity_is_one_over_root_n():
    found = worst_case(
        lambda x: x.flatten(1), words(3, 16, 10), tokens="rows", response="relative-change", positions="worst", **FEW
    )
    np.testing.assert_allclose(found.values[0], 0.25, rtol=1e-7)  # every change on the sphere is the worst


def test_the_worst_of_a_curve_inside_the_ball_is_kept():
    """|sin| of one number: the largest value 1 is inside the ball, and a larger radius adds nothing."""
    found = worst_case(
        lambda x: torch.stack([x[:, 0].sin(), x[:, 0].cos()], dim=1), torch.zeros(1, 1) + 1e-9, tokens="coordinates",
        radius=[1.0, 3.5, 9.0], response="absolute-change", relative=False, steps=60, draws=4,
    )  # fmt: skip
    exact = [2 * np.sin(0.5), 2.0, 2.0]  # a chord of the unit circle
    np.testing.assert_allclose(found.values[:, 0, 0], exact, rtol=1e-3)


def test_every_way_down_is_tried():
    """Towards class 1 the margin falls by 1, towards class 2 by 4.1: but draws and gradients all point to class 1."""

    def model(x):
        along, across = (x[:, 0, 0] - 1).tanh(), x[:, 0, 1]
        return torch.stack([torch.full_like(along, 2.0), 1.9 + along, 6 * across.tanh()], dim=1)

    token = torch.nn.functional.one_hot(torch.zeros(1, 1, dtype=torch.int64), 200).double()
    for response, value in (("margin", 6 * np.tanh(4) - 1.9), ("flip", 1.0)):
        found = worst_case(model, token, tokens="rows", radius=4.0, response=response, steps=40, draws=8)
        assert found.at().max_of_draws.value < (1.1 if response == "margin" else 2)
        assert found.value == pytest.approx(value, rel=1e-2)
