import json

import numpy as np
import pytest
import torch
from torch import nn

from jostle.base.errors import UsageError
from jostle.boolean import analyse
from jostle.intervals import fixed
from jostle.studies import to_plain
from jostle_papers.p2403_06925.parity import DESIGNS, ParityObserver, SparseParity, enumerate_measures

TASK = SparseParity(9, (1, 4, 8))


class Of(nn.Module):
    """A network that is a given function of bits."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, bits):
        return self.function(bits)


def shaken(name="mlp", task=TASK, seed=0, factor=3.0):
    """A random network whose output is far from constant."""
    network = DESIGNS.get(name).create(task, seed).double()
    with torch.no_grad():
        for parameter in network.parameters():
            parameter *= factor
    return network.eval()


@pytest.mark.parametrize("task", [TASK, SparseParity(12, (0, 11)), SparseParity(5, (0, 1, 2, 3, 4))])
def test_the_monomial_itself(task):
    network = Of(lambda bits: 2.5 * task.monomial(bits))
    exact, seen = enumerate_measures(network, task), ParityObserver(task, tests=500, points=50).look(network)
    for found in (exact, seen.values):
        assert found["test_accuracy"] == found["sign_coefficient"] == found["relevant_sensitivity"] == 1
        assert found["sensitivity"] == pytest.approx(task.degree / task.num_bits, abs=1e-15)
        assert found["irrelevant_sensitivity"] == 0
        assert found["output_coefficient"] == 2.5
        assert found["output_correlation"] == pytest.approx(1, abs=1e-15)
        assert found["test_loss"] == pytest.approx(np.log1p(np.exp(-2.5)))
    assert exact["output_sensitivity"] == pytest.approx(task.degree / task.num_bits, abs=1e-15)
    assert seen.values["output_sensitivity"] == pytest.approx(task.degree / task.num_bits, rel=0.02)
    assert seen.influences == tuple(float(bit in task.coordinates) for bit in range(task.num_bits))
    assert seen.flips == tuple(50 * (count == task.degree) for count in range(task.num_bits + 1))


def test_known_functions():
    constant = enumerate_measures(Of(lambda bits: 0.1 + 0 * bits[:, 0]), TASK)
    assert constant["sensitivity"] == constant["output_sensitivity"] == constant["sign_coefficient"] == 0
    assert constant["test_accuracy"] == 0.5
    dictator = enumerate_measures(Of(lambda bits: bits[:, 1] + 0.5), TASK)
    assert dictator["sensitivity"] == pytest.approx(1 / 9)
    assert dictator["relevant_sensitivity"] == pytest.approx(1 / 3)
    assert dictator["output_sensitivity"] == pytest.approx(1 / 9)  # degree 1, whatever the shift
    opposite = enumerate_measures(Of(lambda bits: -TASK.monomial(bits)), TASK)
    assert opposite["test_accuracy"] == 0
    assert opposite["sign_coefficient"] == opposite["output_correlation"] == -1
    zero = Of(lambda bits: 0 * bits[:, 0])
    for found in (enumerate_measures(zero, TASK), ParityObserver(TASK, tests=50, points=9).look(zero).values):
        assert found["output_correlation"] == found["output_sensitivity"] == 0


def test_enumeration_against_the_analysis_of_the_cube():
    network = shaken()
    exact = enumerate_measures(network, TASK)
    signs, values = (
        analyse(lambda bits: network(bits)[:, 0], 9, output=kind, tensors=True) for kind in ("sign", "values")
    )
    row = sum(1 << (8 - bit) for bit in TASK.coordinates)
    assert exact["sensitivity"] == pytest.approx(signs.sensitivity)
    assert exact["sign_coefficient"] == pytest.approx(signs.coefficients[row])
    assert exact["output_coefficient"] == pytest.approx(values.coefficients[row])
    weights = np.asarray(values.fourier_weight)
    degree = (np.arange(10) * weights).sum() / weights[1:].sum()  # the mean degree of the output without its mean
    assert exact["output_sensitivity"] == pytest.approx(degree / 9)


@pytest.mark.parametrize("name", ["transformer-50k", "mlp", "lstm", "state-space"])
def test_sampled_against_exact_within_four_standard_errors(name):
    network = shaken(name)
    exact, seen = enumerate_measures(network, TASK), ParityObserver(TASK, tests=1000, points=100, seed=5).look(network)
    assert set(seen.values) == set(exact)
    for key in exact:
        estimate = seen.estimates[key]
        if np.isfinite(estimate.low):
            error = max(estimate.high - estimate.low, 1e-9) / 2 / 1.96
            assert abs(estimate.value - exact[key]) < 4 * error, key
        else:
            assert estimate.value == pytest.approx(exact[key], abs=0.15), key


def test_flips_against_a_plain_loop_and_the_public_measure():
    import jostle

    network, observer = shaken(), ParityObserver(TASK, tests=40, points=15, seed=2)
    seen = observer.look(network)
    points = TASK.sample(40, seed=2, split="test").inputs[:15]
    flips = np.zeros((15, 9))
    for row, bit in np.ndindex(15, 9):
        other = points[row].clone()
        other[bit] *= -1
        flips[row, bit] = (network(points[row][None]) > 0) != (network(other[None]) > 0)
    assert seen.influences == tuple(flips.mean(axis=0))
    assert seen.values["sensitivity"] == pytest.approx(flips.mean(), abs=1e-15)
    assert seen.flips == tuple(np.bincount(flips.sum(axis=1).astype(int), minlength=10))
    m = jostle.measure(
        network,
        points,
        tokens=jostle.Coordinates(),
        perturbation="sign-flip",
        plan=jostle.Grid(draws=1),
        target="population",
        progress=False,
    )
    assert m.value == pytest.approx(seen.values["sensitivity"], abs=1e-15)
    assert [m.low, m.high] == pytest.approx([seen.estimates["sensitivity"].low, seen.estimates["sensitivity"].high])


def test_sensitivity_is_the_mean_of_relevant_and_irrelevant_bits():
    found = ParityObserver(TASK, tests=100, points=60).look(shaken()).values
    parts = 3 * found["relevant_sensitivity"] + 6 * found["irrelevant_sensitivity"]
    assert found["sensitivity"] == pytest.approx(parts / 9)
    assert found["sign_coefficient"] == pytest.approx(2 * found["test_accuracy"] - 1)


@pytest.mark.slow
def test_intervals_cover():
    """400 samples of points; the share of intervals that miss may exceed 5 % by four standard errors."""
    network = shaken(factor=2.0)
    exact = enumerate_measures(network, TASK)
    missed = dict.fromkeys(("sensitivity", "relevant_sensitivity", "test_accuracy", "output_coefficient"), 0)
    for seed in range(400):
        seen = ParityObserver(TASK, tests=60, points=30, seed=seed).look(network).estimates
        for name in missed:
            missed[name] += not seen[name].low <= exact[name] <= seen[name].high
    assert max(missed.values()) <= 400 * (0.05 + 4 * (0.05 * 0.95 / 400) ** 0.5)


def test_the_level_is_that_of_the_intervals():
    network = shaken()
    seen = ParityObserver(TASK, tests=200, points=50, level=0.5).look(network).estimates["test_accuracy"]
    low, high = fixed.clopper_pearson(round(seen.value * 200), 200, 0.5)
    assert (seen.low, seen.high) == (low, high)


def test_a_look_becomes_json_and_leaves_the_network_as_it_was():
    network = shaken().train()
    record = to_plain(ParityObserver(TASK, tests=20, points=5).look(network).record())
    assert json.loads(json.dumps(record)) == record
    assert set(record["estimates"]["output_sensitivity"]) == {"value"}
    assert set(record["estimates"]["sensitivity"]) == {"value", "low", "high"}
    assert network.training


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ParityObserver(TASK, tests=10, points=11), "points=11 must be at most tests=10"),
        (lambda: ParityObserver(TASK, level=95), "level=95 must be a finite number above 0"),
        (lambda: ParityObserver(TASK, points=0), "points=.* must be a whole number"),
        (lambda: enumerate_measures(shaken(), SparseParity(17, (0,))), "num_bits=17 is too many to try all inputs"),
    ],
)
def test_wrong_use_is_one_clear_line(call, message):
    with pytest.raises(UsageError, match=message):
        call()
