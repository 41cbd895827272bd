"""A trained network measured: sphere and Gaussian agree on it, and every number against the plain measure."""

import math

import numpy as np
import pytest
import torch

from jostle import landscape
from jostle.boolean import analyse, cube
from jostle.hardness import CONVERGED, Design, Plan, known, observe, tabulated, train
from jostle.hardness.observing import LARGEST, answers
from jostle.landscape import POSITIONS


@pytest.fixture(scope="module")
def fitted():
    """A converged network on the majority of four bits."""
    task = known("majority", 4)
    trained = train(task, Design(dim=16), Plan(batch_size=64, lr=3e-3, steps=1500, settle=100), seeds=[0])
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
    assert found.to_dict()["has_converged"] is True


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
    network = Design(dim=8).create(LARGEST + 1, 3)
    with torch.no_grad():
        for block in network.blocks:
            block.attention.to_out.weight *= 20  # it would lean on the last bit alone
        network.readout.bias += 0.5 - network(torch.from_numpy(cube.points(13)).float()).median()
    found = observe(network, known("first", 13), directions=2, strings=4, tests=64)
    signs = answers(network, 13)
    exact = analyse(signs)
    points = np.asarray(exact.sensitivity_profile) / 2**13
    variance = float(points @ (np.arange(14) - exact.total_sensitivity) ** 2)
    assert exact.total_sensitivity > 0.5
    assert variance > 0.1
    assert abs(found.total_sensitivity - exact.total_sensitivity) < 4 * math.sqrt(variance / 256)


def test_a_network_that_does_not_fit_is_flagged():
    table = np.random.default_rng(1).integers(2, size=16)
    network = Design(dim=8).create(4, 0)
    found = observe(network, tabulated(table), directions=2)
    assert not found.has_converged
    assert found.to_dict()["has_converged"] is False
    assert found.loss >= CONVERGED
