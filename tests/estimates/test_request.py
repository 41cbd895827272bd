"""One request from what people type to what is saved, and one rule for the default plan."""

import numpy as np
import pytest
import torch

import jostle
from jostle.base.errors import UsageError
from jostle.estimates.measure import run_request
from jostle.estimates.request import Request
from jostle.sampling import DefaultPlan, Grid, Until
from jostle.tokens import Coordinates, Inputs

BITS = torch.randint(2, (200, 9), generator=torch.Generator().manual_seed(0)) * 2.0 - 1.0


def majority(x):
    return x[:, :5].sum(dim=1)


def request(**changes):
    return Request.build(**{"tokens": "coordinates", "perturbation": "sign-flip", **changes})


def test_specs_become_objects_and_the_settings_are_their_text():
    asked = request(response="flip:sign", plan="until:relative=0.2", average="micro", level=0.9, seed=3)
    assert isinstance(asked.tokens, Coordinates)
    assert asked.plan == Until(relative=0.2)
    assert asked.settings(asked.read_inputs(BITS)).to_dict() == {
        "tokens": "coordinates",
        "perturbation": "sign-flip",
        "response": "flip:sign",
        "plan": "until:relative=0.2,max_passes=1000000",
        "target": "dataset",
        "level": 0.9,
        "seed": 3,
        "num_inputs": 200,
        "num_tokens": 9,
        "average": "micro",
    }


def test_inputs_are_read_once_for_several_models():
    """As a probe does it: the same inputs, another model at every step."""
    asked = request()
    held = asked.read_inputs(BITS)
    for model in (majority, lambda x: x.prod(dim=1)):
        found = run_request(asked, {"model": model}, held)["model"]
        assert (
            found.per_input.tolist()
            == jostle.measure(model, BITS, tokens="coordinates", perturbation="sign-flip").per_input.tolist()
        )


@pytest.mark.parametrize(
    ("default", "perturbation", "response", "inputs", "plan"),
    [
        (DefaultPlan(), "sign-flip", "flip", BITS, Grid(1)),
        (DefaultPlan(max_passes=100_000), "sign-flip", "margin", BITS, Grid(1)),
        (DefaultPlan(max_passes=2_000), "sign-flip", "flip", BITS, Until(half_width=0.01, max_passes=2_000)),
        (DefaultPlan(), "gaussian-noise:1", "flip", BITS, Until(half_width=0.01)),
        (DefaultPlan(), "gaussian-noise:1", "margin", BITS, Until(relative=0.05)),
        (DefaultPlan(0.02, 0.1), "gaussian-noise:1", "flip", BITS, Until(half_width=0.02)),
        (DefaultPlan(0.02, 0.1), "gaussian-noise:1", "margin", BITS, Until(relative=0.1)),
        (DefaultPlan(), "sign-flip", "flip", torch.ones(1_000, 10), Grid(1)),
        (DefaultPlan(), "sign-flip", "flip", torch.ones(1_001, 10), Until(half_width=0.01)),
    ],
)
def test_the_default_is_exact_where_that_is_cheap(default, perturbation, response, inputs, plan):
    asked = request(plan=default, perturbation=perturbation, response=response)
    assert asked.plan_for(Inputs(inputs, Coordinates())) == plan


def test_a_limit_of_passes_does_not_make_an_exact_answer_a_sampled_one():
    exact = jostle.measure(majority, BITS, tokens="coordinates", perturbation="sign-flip")
    limited = jostle.measure(
        majority, BITS, tokens="coordinates", perturbation="sign-flip", plan=DefaultPlan(max_passes=100_000)
    )
    assert (limited.value, limited.low, limited.high) == (exact.value, exact.value, exact.value)
    assert limited.passes == exact.passes <= 200 * 9 + 200 + 48


def test_a_grid_without_randomness_is_drawn_once():
    assert request(plan="grid:5").plan_for(Inputs(BITS, Coordinates())) == Grid(1)
    assert request(plan="grid:5", perturbation="sphere:1").plan_for(Inputs(BITS, Coordinates())) == Grid(5)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"target": "world"}, "target='world' must be dataset (the inputs given) or population"),
        ({"average": "mean"}, "average='mean' must be macro (inputs weigh the same) or micro (tokens weigh the same)"),
        ({"level": 2}, "level=2 must be a finite number above 0 and at most 0.999"),
        ({"seed": 0.5}, "seed=0.5 must be a whole number"),
        ({"batch_size": 0}, "batch_size=0 must be a whole number, at least 1"),
        ({"plan": "unti:1"}, "unknown plan 'unti'"),
    ],
)
def test_a_wrong_request_is_one_line_before_anything_is_read(changes, message):
    with pytest.raises(UsageError) as error:
        request(**changes)
    assert message in str(error.value)


@pytest.mark.parametrize("plan", [None, "until:0.1"])
def test_until_has_no_interval_for_tokens_of_a_population(plan):
    asked = request(perturbation="gaussian-noise:1", average="micro", target="population", plan=plan)
    with pytest.raises(UsageError, match=r"need plan=Grid"):
        asked.prepare({"model": majority}, BITS)
    grid = request(perturbation="gaussian-noise:1", average="micro", target="population", plan="grid:1")
    assert np.isfinite(run_request(grid, {"model": majority}, BITS)["model"].high)
