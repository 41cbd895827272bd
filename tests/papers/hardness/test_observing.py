"""A trained network measured: sphere and Gaussian agree on it, and every number against the plain measure."""

import copy
import math

import numpy as np
import pytest
import torch
from torch import nn

from jostle import landscape
from jostle.base.errors import UsageError
from jostle.boolean import analyse, cube
from jostle.landscape import POSITIONS
from jostle.studies import to_plain
from jostle_papers.p2402_09963.hardness import (
    CONVERGED,
    HardnessDesign,
    HardnessPlan,
    named_task,
    observe,
    table_task,
    train,
)
from jostle_papers.p2402_09963.hardness import observation as observing
from jostle_papers.p2402_09963.hardness.observation import LARGEST, answers, draw_strings


@pytest.fixture(scope="module")
def fitted():
    """A converged network on the majority of four bits."""
    task = named_task("majority", 4)
    trained = train(
        task, HardnessDesign(dim=16), HardnessPlan(batch_size=64, lr=3e-3, steps=1500, settle=100), seeds=[0]
    )
    return trained.networks[0], task


def test_a_converged_network_is_its_function(fitted):
    network, task = fitted
    found = observe(network, task, directions=100)
    assert found.has_converged
    assert found.loss < CONVERGED
    assert found.accuracy == 1
    assert found.total_sensitivity == 1.5  # exactly that of majority
    bits = torch.from_numpy(cube.points(4)).float()
    assert found.norm == landscape.parameter_norm(network, skip=POSITIONS)
    assert found.blowup == landscape.layernorm_blowup(network, bits).value
    assert found.released_blowup == landscape.layernorm_blowup(network, bits, protocol="released").value
    assert found.mean_square_blowup >= found.blowup**2
    count = sum(parameter.numel() for parameter in network.parameters()) - network.positions.numel()
    assert found.rho == pytest.approx(0.02 * math.sqrt(count))
    assert found.low < found.sharpness < found.high
    scaled = landscape.average_direction_sharpness(network, bits, rho=found.rho)  # as if labels were -1 and 1
    assert found.sharpness == pytest.approx(4 * scaled.value)
    assert to_plain(found)["has_converged"] is True


def test_sphere_and_gaussian_agree_to_their_intervals(fitted):
    """On a network that fits, the function's change, the loss's increase, and both kinds of steps are one number."""
    network, task = fitted
    bits = torch.from_numpy(cube.points(4)).float()
    labels = torch.from_numpy(task.label(cube.points(4))).float()
    rho = observe(network, task, directions=2).rho
    common = {"directions": 400, "label_values": (0, 1)}
    sphere = landscape.average_direction_sharpness(network, bits, labels, rho=rho, **common)
    gaussian = landscape.average_direction_sharpness(network, bits, labels, protocol="released", seed=1, **common)
    assert gaussian.rho == pytest.approx(rho)
    for other in (gaussian.loss, gaussian.function, sphere.loss):
        error = math.hypot(*(mean.per_draw.std(ddof=1) / math.sqrt(400) for mean in (sphere.function, other)))
        assert abs(sphere.value - other.value) < 4 * error
        assert sphere.low < other.high
        assert other.low < sphere.high


def test_sensitivity_beyond_enumeration_is_a_sample():
    """An untrained network of 13 bits: the sampled number within 4 standard errors of the exact one."""
    network = HardnessDesign(dim=8).create(LARGEST + 1, 3)
    with torch.no_grad():
        for block in network.blocks:
            block.attention.to_out.weight *= 20  # it would lean on the last bit alone
        network.readout.bias += 0.5 - network(torch.from_numpy(cube.points(13)).float()).median()
    found = observe(network, named_task("first", 13), directions=2, strings=4, tests=64)
    signs = answers(network, 13)
    exact = analyse(signs)
    points = np.asarray(exact.sensitivity_profile) / 2**13
    variance = float(points @ (np.arange(14) - exact.total_sensitivity) ** 2)
    assert exact.total_sensitivity > 0.5
    assert variance > 0.1
    assert abs(found.total_sensitivity - exact.total_sensitivity) < 4 * math.sqrt(variance / 256)


def test_a_network_that_does_not_fit_is_flagged():
    table = np.random.default_rng(1).integers(2, size=16)
    network = HardnessDesign(dim=8).create(4, 0)
    found = observe(network, table_task(table), directions=2)
    assert not found.has_converged
    assert to_plain(found)["has_converged"] is False
    assert found.loss >= CONVERGED


@pytest.mark.parametrize("n", [4, LARGEST + 1])
def test_it_is_measured_without_dropout_and_left_in_its_mode(n):
    parts = [nn.Linear(n, 8), nn.LayerNorm(8), nn.ReLU(), nn.Dropout(0.5), nn.Linear(8, 1), nn.Flatten(0)]
    network = nn.Sequential(*parts).float()
    still, task = copy.deepcopy(network).eval(), named_task("majority", n)
    network.train()[1].eval()
    modes = [part.training for part in network.modules()]
    before = copy.deepcopy(network.state_dict())
    found = observe(network, task, directions=3, strings=16, tests=64)
    assert found == observe(still, task, directions=3, strings=16, tests=64)
    assert found.blowup > 1
    assert [part.training for part in network.modules()] == modes
    assert all(torch.equal(weight, before[name]) for name, weight in network.state_dict().items())
    bits = draw_strings(n, 64, 0)
    assert not torch.equal(network(bits), network(bits))  # dropout would have shown


def test_strings_of_other_purposes_and_seeds_have_nothing_in_common():
    """Not one of the strings of 60 bits is that of another purpose or seed, at any place."""
    purposes = ("measured", "tests", "flipped")
    found = [
        tuple(row) for seed in range(-2, 6) for each in purposes for row in draw_strings(60, 9, seed, each).tolist()
    ]
    assert len(set(found)) == len(found) == 8 * 3 * 9
    assert torch.equal(draw_strings(60, 9, 1), draw_strings(60, 9, 1, "measured"))
    assert torch.equal(draw_strings(60, 9, np.int64(1)), draw_strings(60, 9, 1))


def test_loss_sharpness_and_sensitivity_have_strings_of_their_own(monkeypatch):
    seen = []
    monkeypatch.setattr(observing, "draw_strings", lambda *given: seen.append(given) or draw_strings(*given))
    observe(
        HardnessDesign(dim=4).create(LARGEST + 1, 0),
        named_task("first", LARGEST + 1),
        directions=2,
        strings=5,
        tests=7,
        seed=3,
    )
    assert seen == [(13, 5, 3), (13, 7, 3, "tests"), (13, 256, 3, "flipped")]


def test_all_strings_are_in_table_order_if_there_are_no_more():
    assert (draw_strings(3, 8, 5).numpy() == cube.points(3)).all()
    assert draw_strings(3, 7, 5).shape == (7, 3)


@pytest.mark.parametrize(
    ("n", "choices", "message"),
    [
        (4, {"strings": -1}, "strings=-1 must be a whole number, at least 1"),
        (4, {"strings": 2.5}, "strings=2.5 must be a whole number, at least 1"),
        (13, {"tests": 0}, "tests=0 must be a whole number, at least 1"),
        (4, {"seed": "a"}, "seed='a' must be a whole number"),
        (13, {"seed": 0.5}, "seed=0.5 must be a whole number"),
        (4, {"directions": 1}, "directions=1 must be a whole number from 2 to 1000000"),
        (4, {"level": 2}, "level=2 must be a finite number above 0"),
    ],
)
def test_wrong_use_is_one_clear_line(n, choices, message):
    with pytest.raises(UsageError, match=message):
        observe(HardnessDesign(dim=4).create(n, 0), named_task("first", n), **{"directions": 2} | choices)


def test_a_column_of_numbers_is_not_taken_for_a_row():
    """(batch, 1) against labels (batch,) would be a table of differences."""
    column = nn.Linear(4, 1).float()
    with pytest.raises(UsageError, match=r"network answers with \(16, 1\); expected one number a string, \(16,\)"):
        observe(column, named_task("first", 4), directions=2)


@pytest.mark.parametrize("count", [0, -1, 2.0])
def test_no_strings_cannot_be_drawn(count):
    with pytest.raises(UsageError, match=r"count=.* must be a whole number, at least 1"):
        draw_strings(4, count, 0)


def test_long_strings_in_small_passes_are_measured_the_same(monkeypatch):
    network, task = HardnessDesign(dim=4).create(6, 0), named_task("majority", 6)
    whole = observe(network, task, directions=4, strings=64)
    monkeypatch.setattr(observing, "_SCORES", 16 * 6**2)  # as if 6 bits were many
    assert observing._at_once(6) == 16
    parts = observe(network, task, directions=4, strings=64)
    assert vars(parts) == pytest.approx(vars(whole), rel=1e-4)
