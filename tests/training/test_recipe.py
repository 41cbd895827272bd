import json
import math

import pytest
import torch
from torch import nn

from jostle.base.errors import UsageError
from jostle.data import Dataset
from jostle.training import Constant, Cosine, Step
from jostle.training.recipe import Recipe, check_same
from tests.training.toys import network, random_points, same_weights

GOOD = {
    "optimizer": "sgd",
    "lr": 0.1,
    "schedule": Constant(),
    "momentum": 0.9,
    "weight_decay": 0.01,
    "clip": None,
    "batch_size": 10,
    "precision": "float32",
    "seed": 0,
}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"optimizer": "adamm"}, "unknown optimizer 'adamm'; did you mean adam"),
        ({"lr": 0.0}, "lr=0.0 must be a finite number above 0"),
        ({"lr": math.nan}, "lr=nan must be a finite number above 0"),
        ({"lr": math.inf}, "lr=inf must be a finite number above 0"),
        ({"momentum": 1.0}, "momentum=1.0 must be a finite number from 0 to below 1"),
        ({"optimizer": "adam"}, "momentum=0.9 is for optimizer='sgd'"),
        ({"weight_decay": -0.1}, "weight_decay=-0.1 must be a finite number, at least 0"),
        ({"clip": 0.0}, "clip=0.0 must be a finite number above 0; None for no clipping"),
        ({"precision": "bfloat61"}, "unknown precision 'bfloat61'; did you mean bfloat16"),
        ({"batch_size": 0}, "batch_size=0 must be a whole number, at least 1"),
        ({"seed": 0.5}, "seed=0.5 must be a whole number"),
    ],
)
def test_settings_that_cannot_be(change, message):
    with pytest.raises(UsageError, match=message):
        Recipe(**(GOOD | change))


@pytest.mark.parametrize(
    ("optimizer", "expected"), [("adam", torch.optim.Adam), ("adamw", torch.optim.AdamW), ("sgd", torch.optim.SGD)]
)
def test_optimizer_gets_the_settings(optimizer, expected):
    momentum = 0.9 if optimizer == "sgd" else 0.0
    built = Recipe(**(GOOD | {"optimizer": optimizer, "momentum": momentum})).build_optimizer(network())
    group = built.param_groups[0]
    assert type(built) is expected
    assert (group["lr"], group["weight_decay"], group.get("momentum", 0.0)) == (0.1, 0.01, momentum)


@pytest.mark.parametrize("optimizer", ["adam", "adamw", "sgd"])
def test_the_way_torch_loops_over_the_parameters_does_not_matter(optimizer):
    """What the choice of foreach rests on: the same weights, bit for bit, as one parameter after the other."""
    momentum = 0.9 if optimizer == "sgd" else 0.0
    model, other = network(), network()
    recipe = Recipe(**(GOOD | {"optimizer": optimizer, "momentum": momentum}))
    built, plain = recipe.build_optimizer(model), recipe.build_optimizer(other)
    plain.param_groups[0]["foreach"] = False
    generator = torch.Generator().manual_seed(1)
    for _ in range(20):
        for mine, its in zip(model.parameters(), other.parameters(), strict=True):
            mine.grad = torch.randn(mine.shape, generator=generator, dtype=torch.float32)
            its.grad = mine.grad.clone()
        built.step()
        plain.step()
    assert built.param_groups[0]["foreach"] is True
    assert same_weights(model, other)


def test_learning_rates_and_their_end():
    halving = Recipe(**(GOOD | {"lr": 0.002, "schedule": Step(8, 0.5)}))
    assert [halving.lr_of(epoch) for epoch in (1, 8, 9, 16, 17)] == [0.002, 0.002, 0.001, 0.001, 0.0005]
    wave = Recipe(**(GOOD | {"schedule": Cosine(4)}))
    wave.check_length(4)
    with pytest.raises(
        UsageError, match=r"max_epochs=5 is past the end of schedule='cosine:epochs=4,final=0,warmup=0'"
    ):
        wave.check_length(5)


def test_nothing_to_train():
    with pytest.raises(UsageError, match="Flatten has no parameters"):
        Recipe(**GOOD).build_optimizer(nn.Flatten())


def test_describe_is_the_same_for_the_same_run():
    recipe = Recipe(**GOOD)
    again = recipe.describe(network(seed=1), random_points())  # Initial weights are no setting.
    assert recipe.describe(network(), random_points()) == again
    assert json.loads(json.dumps(again)) == again  # As a file holds it.
    assert again["schedule"] == "constant:warmup=0"


def changed_inputs() -> Dataset:
    dataset = random_points()
    return Dataset(dataset.name, dataset.inputs + 1, dataset.labels, dataset.classes)


@pytest.mark.parametrize(
    ("model", "dataset", "differing"),
    [
        (network(dropout=0.3), random_points(), "model architecture"),
        (network().double(), random_points(), "model dtype"),
        (network(), random_points(name="other"), "dataset"),
        (network(), changed_inputs(), "dataset contents"),
    ],
)
def test_describe_tells_runs_apart(model, dataset, differing):
    recipe = Recipe(**GOOD)
    usual, other = recipe.describe(network(), random_points()), recipe.describe(model, dataset)
    assert [name for name in usual if usual[name] != other[name]] == [differing]


def test_describe_ignores_addresses():
    class Odd(nn.Linear):
        def extra_repr(self):
            return repr(self.marker)

    recipe = Recipe(**GOOD)
    first, second = Odd(5, 3), Odd(5, 3)
    first.marker, second.marker = object(), object()
    assert repr(first) != repr(second)
    assert recipe.describe(first, random_points()) == recipe.describe(second, random_points())


def test_check_same_names_all_that_differs():
    check_same(GOOD, GOOD, "run.safetensors")
    with pytest.raises(
        UsageError, match=r"^run.safetensors is from another run: lr was 0.1, is 0.2; seed was 0, is 3;"
    ):
        check_same(GOOD, GOOD | {"lr": 0.2, "seed": 3}, "run.safetensors")
    with pytest.raises(UsageError, match="warmup was 5, is None"):
        check_same(GOOD | {"warmup": 5}, GOOD, "run.safetensors")
