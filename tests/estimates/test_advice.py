"""Advice about wide intervals, against what following it gives."""

import numpy as np
import pytest
import torch

import jostle
from jostle.estimates.advice import advice, draws_for, rounded


def model(threshold):
    """Flips with a probability that grows as the threshold falls."""
    return lambda x: torch.stack([x.sum(dim=1) - threshold, torch.zeros(len(x))], dim=1)


def points(count=500):
    return torch.randn(count, 4, generator=torch.Generator().manual_seed(1), dtype=torch.float64)


def measured(threshold=0.0, **options):
    usual = {"tokens": "coordinates", "perturbation": "gaussian-noise:std=1"}
    return jostle.measure(model(threshold), points(), **usual | options)


@pytest.mark.parametrize(("threshold", "half_width"), [(0.0, 0.01), (3.0, 0.004)])
def test_what_it_says_is_what_it_takes(threshold, half_width):
    short = measured(threshold, plan=jostle.Until(half_width=half_width, max_passes=1200))
    assert short.stopped == "max_passes"
    (text,) = advice(short)
    more = float(text.split("about ")[1].split(" more")[0].replace(",", ""))
    assert text == f"the interval is wide: about {rounded(more)} more passes for ±{half_width:.2g}"
    followed = measured(threshold, plan=jostle.Until(half_width=half_width, adaptive=False))
    assert short.trials + more == pytest.approx(followed.trials, rel=0.3)


def test_draws_are_those_of_runs_over_rates_and_widths():
    """The price of 1.27 in the mean over seeds."""
    ratios = []
    for seed in range(8):
        done = measured(1.0, plan=jostle.Until(half_width=0.02, adaptive=False), seed=seed)
        ratios.append(done.trials / draws_for(done.value, 0.02, 0.95))
    assert np.mean(ratios) == pytest.approx(1.0, abs=0.1)


def test_a_population_needs_inputs():
    m = measured(plan=jostle.Until(half_width=0.005, adaptive=False), target="population")
    assert m.stopped == "all-inputs-visited"
    (text,) = advice(m)
    more = float(text.split("about ")[1].split(" more inputs")[0].replace(",", ""))
    assert more == pytest.approx(draws_for(m.value, 0.005, 0.95) - 500, rel=0.05)


def test_a_wide_grid_says_what_half_of_it_takes():
    m = measured(plan=jostle.Grid(1), target="population")
    half_width = m.interval.half_width
    assert half_width > 0.1 * m.value
    assert advice(m) == [f"the interval is wide: about 1,500 more inputs for ±{half_width / 2:.2g}"]


@pytest.mark.parametrize("count", [1, 2, 12])
@pytest.mark.parametrize("value", [0.0, 1.0])
def test_where_all_trials_agree_the_advice_is_what_half_of_it_takes(count, value):
    """The interval of n trials that agree is 1 - (alpha / 2)^(1 / n) wide: few take more than twice as many."""

    def flipping(x):  # the clean inputs are whole numbers
        moved = (x != x.round()).any(dim=1) * value
        return torch.stack([moved, torch.full((len(x),), 0.5)], dim=1)

    def wide(inputs):
        grid, noise = jostle.Grid(1), "gaussian-noise:std=1"
        return jostle.measure(flipping, torch.ones(inputs, 1), tokens="whole", perturbation=noise, plan=grid)

    m = wide(count)
    assert m.value == value
    (text,) = advice(m)
    more = float(text.split("about ")[1].split(" more passes")[0].replace(",", ""))
    followed = wide(count + max(round(more * m.trials / m.passes), 1))
    assert followed.interval.half_width == pytest.approx(m.interval.half_width / 2, rel=0.12)


def test_nothing_is_said_of_a_narrow_interval():
    assert advice(measured(plan=jostle.Until(half_width=0.02))) == []
    assert advice(measured(perturbation="replace-by:0", plan=jostle.Grid(1))) == []


def test_two_models_that_are_not_told_apart():
    close = {"a": model(0.0), "b": model(0.05)}
    c = jostle.compare(close, points(), tokens="coordinates", perturbation="gaussian-noise:std=1",
                       plan=jostle.Until(half_width=0.05))  # fmt: skip
    (d,) = c.differences
    assert d.direction == 0
    (text,) = advice(c)
    assert text.startswith(f"a and b are not told apart: if they differ by {abs(d.value):.2g}, as it seems, about ")
