"""The interval over directions and inputs: by hand, and its coverage on a model whose sharpness is known."""

import math

import numpy as np
import pytest
import torch
from scipy.special import stdtrit
from torch import nn

from jostle.landscape import average_direction_sharpness
from jostle.landscape.averages import crossed_interval
from tests.landscape.toys import linear

LEVEL = 0.9


def test_it_adds_both_variances():
    draws, inputs = np.array([1.0, 2.0, 4.0, 5.0]), np.array([0.0, 3.0, 6.0])
    found = crossed_interval(draws, inputs, 0.95)
    parts = draws.var(ddof=1) / 4, inputs.var(ddof=1) / 3
    freedom = sum(parts) ** 2 / (parts[0] ** 2 / 3 + parts[1] ** 2 / 2)
    assert 2 < freedom < 5
    quantile = float(stdtrit(freedom, 0.975))
    middle, half = (found.low + found.high) / 2, (found.high - found.low) / 2
    assert middle == pytest.approx(3.0)
    assert half / math.sqrt(sum(parts)) == pytest.approx(quantile, rel=1e-12)
    assert found.target == "population"


def test_ends_that_nothing_is_known_of_are_open():
    same = np.ones(5)
    assert crossed_interval(same, same, 0.95).high == math.inf
    assert crossed_interval(np.arange(5.0), np.ones(1), 0.95, least=0.0).low == 0
    assert crossed_interval(same, same, 0.95, is_exact=True).low == 1
    assert crossed_interval(np.array([0.1, 0.2]), np.array([0.0, 9.0]), 0.95, least=0.0).low == 0


def covering(seed, of_population):
    """Whether an interval holds rho^2 = 1, the sharpness of a linear model of 6 weights for x ~ N(0, I)."""
    x = torch.randn(12, 6, generator=torch.Generator().manual_seed(seed))
    found = average_direction_sharpness(
        linear([[1.0, -1.0, 0.5, 2.0, 0.0, 1.0]]), x, rho=1.0, directions=40, seed=seed, level=LEVEL
    )
    assert found.per_input.mean() == pytest.approx(found.value)
    interval = found.population if of_population else found.function.interval
    return interval.low <= 1.0 <= interval.high


def test_it_covers_where_inputs_are_drawn_too():
    runs = 150
    error = math.sqrt(LEVEL * (1 - LEVEL) / runs)
    assert sum(covering(seed, True) for seed in range(runs)) / runs > LEVEL - 4 * error
    # The interval for exactly these inputs does not, as it should not.
    assert sum(covering(seed, False) for seed in range(runs)) / runs < LEVEL - 4 * error


def test_per_input_is_what_each_protocol_measures():
    x, labels = torch.randn(5, 3), torch.randn(5)
    model = linear([[1.0, -1.0, 2.0]])
    for options in ({"rho": 0.5}, {"protocol": "released", "std": 0.1}):
        found = average_direction_sharpness(
            model, x, labels, label_values=(0, 1), directions=6, batch_size=2, **options
        )
        assert found.per_input.shape == (5,)
        assert found.per_input.mean() == pytest.approx(found.value, rel=1e-12)
        record = found.to_dict()
        assert record["per_input"] == found.per_input.tolist()
        assert record["population"]["low"] == found.population.low
    still = average_direction_sharpness(model, x, rho=0.0, directions=3)
    assert (still.population.low, still.population.high) == (0, 0)


def test_a_loss_that_is_a_mean_over_inputs_leaves_it_open():
    """Every input has the mean of its batch then, which says nothing of how much inputs differ."""
    x, labels, model = torch.randn(5, 3), torch.randn(5, 1), linear([[1.0, -1.0, 2.0]])
    common = {"protocol": "released", "std": 0.1, "directions": 6}
    each = average_direction_sharpness(model, x, labels, "mse", **common)
    for batch_size in (2, 128):
        mean = average_direction_sharpness(model, x, labels, nn.MSELoss(), batch_size=batch_size, **common)
        assert mean.value == pytest.approx(each.value)
        assert (mean.low, mean.high) == (pytest.approx(each.low), pytest.approx(each.high))
        assert (mean.population.low, mean.population.high) == (-math.inf, math.inf)
        assert mean.population.method == "open: the loss is a mean over inputs"
        assert mean.to_dict()["population"]["method"] == "open: the loss is a mean over inputs"
    one_by_one = average_direction_sharpness(model, x, labels, nn.MSELoss(), batch_size=1, **common)
    assert math.isfinite(each.population.low)
    assert one_by_one.population.low == pytest.approx(each.population.low)
    assert one_by_one.population.high == pytest.approx(each.population.high)
    of_function = average_direction_sharpness(model, x, labels, nn.MSELoss(), rho=0.5, directions=6)
    assert of_function.population.method == "Satterthwaite's t over 6 draws and 5 inputs, asymptotic"
    still = average_direction_sharpness(model, x, labels, nn.MSELoss(), protocol="released", std=0.0, directions=3)
    assert (still.population.low, still.population.high) == (0, 0)
