"""Measured values against exact ones: 4 standard errors where the quantity is sampled, equality where it is not."""

import math

import numpy as np
import pytest
import torch
from torch import nn

import jostle
from jostle.base.randomness import Stream
from jostle.perturbations import normals
from tests import oracles

WEIGHTS = torch.tensor([0.5, -2.0, 1.0, 0.1, 3.0, 0.0], dtype=torch.float64)


def halfspace(x):
    return x @ WEIGHTS


@pytest.mark.parametrize(
    ("name", "f", "expected"),
    [
        ("parity", lambda x: x.prod(dim=1), 1.0),
        ("dictator", lambda x: x[:, 2], 1 / 7),
        ("majority", lambda x: x.sum(dim=1), oracles.majority_sensitivity(7)),
        ("sparse parity", lambda x: x[:, [0, 3, 5]].prod(dim=1), 3 / 7),
        ("and", lambda x: (x > 0).all(dim=1).double() * 2 - 1, 2 / 2**7),
        ("constant", lambda x: torch.ones(len(x)), 0.0),
        ("sum, with ties", lambda x: x[:, :6].sum(dim=1), None),
    ],
)
def test_boolean_functions_under_sign_flips_are_exact(bits, name, f, expected):
    m = jostle.measure(f, bits, tokens="coordinates", perturbation="sign-flip", plan=jostle.Grid(3))
    brute = oracles.sensitivity_by_enumeration(lambda x: float(f(torch.tensor([x], dtype=torch.float64))[0]), 7)
    assert m.value == pytest.approx(brute, abs=1e-15)
    assert (m.low, m.high) == (m.value, m.value)
    assert m.trials == 7 * 2**7
    if expected is not None:
        assert m.value == pytest.approx(expected, abs=1e-15)


def test_uniform_bits_give_parity_one_half(bits):
    parity = lambda x: x.prod(dim=1)  # noqa: E731
    m = jostle.measure(parity, bits, tokens="coordinates", perturbation="uniform-token:-1/1", plan=jostle.Grid(20))
    assert abs(m.value - 0.5) < 4 * math.sqrt(0.25 / m.trials)
    assert 0.5 in m.dataset


@pytest.mark.parametrize("std", [0.3, 1.0, 4.0])
def test_a_halfspace_under_gaussian_noise_on_given_inputs(std, stream):
    number = np.arange(300)
    inputs = normals(stream.uniforms(number, number, number, 6), torch.zeros(1))
    cells = oracles.halfspace_sensitivity_given_inputs(WEIGHTS, inputs, std)
    m = jostle.measure(
        halfspace, inputs, tokens="coordinates", perturbation=jostle.GaussianNoise(std), plan=jostle.Grid(40)
    )
    error = float((cells * (1 - cells) / 40).sum().sqrt()) / cells.numel()
    assert abs(m.value - float(cells.mean())) < 4 * error
    assert float(cells.mean()) in m.dataset
    by_position = cells.mean(dim=0).numpy()
    position_error = (cells * (1 - cells) / 40).sum(dim=0).sqrt().numpy() / len(inputs)
    assert (np.abs(m.profile.values - by_position) <= 4 * position_error + 1e-12).all()
    by_input = cells.mean(dim=1).numpy()
    input_error = (cells * (1 - cells) / 40).sum(dim=1).sqrt().numpy() / 6
    usual = 240 * by_input > 5  # where a flip rate of 240 trials is near normal
    assert usual.sum() > 50
    assert (np.abs(m.per_input - by_input) <= 5 * input_error)[usual].all()


def test_a_halfspace_on_gaussian_inputs_by_until(stream):
    number = np.arange(20_000)
    inputs = normals(stream.uniforms(number, number, number, 6), torch.zeros(1))
    expected = oracles.halfspace_sensitivity(WEIGHTS, 1.0)
    m = jostle.measure(
        halfspace, inputs, tokens="coordinates", perturbation="gaussian-noise:1", plan=jostle.Until(half_width=0.01)
    )
    assert m.stopped == "precision"
    assert m.high - m.low <= 0.02
    assert abs(m.value - expected) < 4 * math.sqrt(expected / m.trials)
    assert expected in m.population


@pytest.mark.parametrize("plan", [jostle.Grid(3), jostle.Until(half_width=0.05)])
@pytest.mark.parametrize("perturbation", [jostle.GaussianNoise(0), jostle.Sphere(0)])
def test_no_noise_gives_exactly_zero(plan, perturbation):
    model = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 3)).eval()
    for response in ("flip", "margin", "logit-change", "relative-change", "angle"):
        inputs = torch.randn(50, 8)
        m = jostle.measure(model, inputs, tokens="coordinates", perturbation=perturbation, plan=plan, response=response)
        assert m.value == 0.0
        assert m.low == 0.0


def test_real_responses_have_closed_forms(stream):
    """For f = w x and noise on coordinate i: E|change| = std |w_i| sqrt(2 / pi)."""
    inputs = torch.randn(400, 6)
    expected = float(WEIGHTS.abs().mean()) * math.sqrt(2 / math.pi)
    for plan in (jostle.Grid(20), jostle.Until(relative=0.03)):
        for response in ("margin", "logit-change", "absolute-change"):
            m = jostle.measure(
                halfspace, inputs, tokens="coordinates", perturbation="gaussian-noise:1", plan=plan, response=response
            )
            assert abs(m.value - expected) < 4 * 1.2 / math.sqrt(m.trials)
            assert m.low < expected < m.high


def test_whole_input_noise_is_one_token(stream):
    """All coordinates at once: P[flip] = arctan(std) / pi for x ~ N(0, I)."""
    number = np.arange(4000)
    inputs = normals(stream.uniforms(number, number, number, 6), torch.zeros(1))
    m = jostle.measure(halfspace, inputs, tokens=jostle.Whole(), perturbation="gaussian-noise:1", plan=jostle.Grid(4))
    assert m.settings.num_tokens == 1
    assert 0.25 in m.population
    assert abs(m.value - 0.25) < 4 * 0.5 / math.sqrt(4000)


def test_grid_equals_a_slow_obvious_loop():
    model = nn.Sequential(nn.Flatten(), nn.Linear(2 * 4 * 6, 4)).eval()
    inputs, draws, std = torch.randn(12, 2, 4, 6), 3, 2.0
    m = jostle.measure(
        model, inputs, tokens=jostle.Patches(2), perturbation=jostle.GaussianNoise(std), plan=jostle.Grid(draws), seed=5
    )
    flat = torch.arange(48).reshape(2, 4, 6)
    positions = [flat[:, r : r + 2, c : c + 2].flatten().tolist() for r in (0, 2) for c in (0, 2, 4)]
    noise = Stream(5, "noise")

    def added(i: int, t: int, r: int) -> torch.Tensor:
        return std * normals(noise.uniforms([i], [t], [r], 8), torch.zeros(1))[0]

    with torch.no_grad():
        flips = torch.tensor(oracles.loop_over_grid(model, inputs, positions, added, draws)).double()
    assert 0 < flips.mean() < 1
    assert m.value == pytest.approx(float(flips.mean()), abs=1e-15)
    assert m.per_input.tolist() == pytest.approx(flips.mean(dim=(1, 2)).tolist(), abs=1e-15)
    assert m.profile.values.tolist() == pytest.approx(flips.mean(dim=(0, 2)).tolist(), abs=1e-15)
    assert m.profile.image().shape == (2, 3)
    assert m.passes == 12 * 6 * 3 + 12 + 36  # trials, clean passes, steadiness check
