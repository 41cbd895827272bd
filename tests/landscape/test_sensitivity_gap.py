import itertools

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from jostle.base.errors import UsageError
from jostle.boolean import cube, fourier, functions
from jostle.landscape import sensitivity_gap
from jostle.landscape.weights import WeightNoise
from jostle.models.bit_encoder import BitEncoder


def by_loops(f):
    """as_n by a loop over strings and bits."""
    n = len(f).bit_length() - 1
    place = {string: row for row, string in enumerate(itertools.product((-1, 1), repeat=n))}
    total = 0.0
    for string, row in place.items():
        for bit in range(n):
            neighbour = (*string[:bit], -string[bit], *string[bit + 1 :])
            total += (f[row] - f[place[neighbour]]) ** 2 / 4
    return total / len(f)


def test_enumeration_is_the_fourier_formula_is_the_loop():
    rng = np.random.default_rng(0)
    for n in (1, 3, 6):
        f, g = rng.normal(size=(2, 2**n))
        found = sensitivity_gap(f, g)
        assert found.first == pytest.approx(by_loops(f), rel=1e-12)
        assert found.first == pytest.approx(float(cube.degrees(n) @ fourier.coefficients(f) ** 2), rel=1e-12)
        assert found.second == pytest.approx(float(cube.degrees(n) @ fourier.coefficients(g) ** 2), rel=1e-12)
        assert found.distance == pytest.approx(np.square(f - g).mean())


@pytest.mark.parametrize("name", ["parity", "majority", "first", "mean"])
def test_known_functions(name):
    known = functions.create(name, 6)
    found = sensitivity_gap(known.table(), np.zeros(64))
    assert found.first == pytest.approx(known.exact.total_sensitivity)
    assert found.holds
    if name == "parity":
        assert found.slack == pytest.approx(0)  # the bound is reached: all weight is on all bits


values = st.lists(st.floats(-5, 5), min_size=16, max_size=16)


@settings(max_examples=200, deadline=None)
@given(values, values)
def test_the_inequality_holds_for_all_real_functions(f, g):
    found = sensitivity_gap(f, g)
    assert found.holds
    assert found.distance >= found.bound - 1e-9 * max(found.first, found.second, 1)


def test_it_holds_for_networks_and_their_perturbed_copies():
    torch.manual_seed(0)
    network, bits = BitEncoder(max_length=5, dim=8), torch.from_numpy(cube.points(5)).double()
    noise = WeightNoise(dict(network.named_parameters()), "sphere", 2.0, 0)
    before = network(bits).detach().numpy()
    for draw in range(20):
        after = torch.func.functional_call(network, noise.moved(draw), (bits,)).detach().numpy()
        found = sensitivity_gap(before, after)
        assert found.holds
        assert found.bound > 0
        assert found.to_dict()["holds"]


def test_a_violation_would_be_seen():
    found = sensitivity_gap([1, -1, -1, 1], [0, 0, 0, 0])
    assert not type(found)(2, 0.4, found.first, found.second).holds


@pytest.mark.parametrize(
    ("tables", "message"),
    [
        (([1, 0, 1], [1, 0, 1]), r"must both have 2\^n numbers"),
        (([1, 0], [1, 0, 1, 1]), r"must both have 2\^n numbers"),
        (([1, float("nan")], [1, 0]), "NaN or infinity"),
    ],
)
def test_wrong_use_is_one_clear_line(tables, message):
    with pytest.raises(UsageError, match=message):
        sensitivity_gap(*tables)
