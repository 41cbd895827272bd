"""Random Boolean functions given by their tables: measured, counted bit by bit, and by their Fourier weights."""

import itertools

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import jostle
from tests import oracles
from tests.properties.checked import MODEST


@st.composite
def truth_tables(draw, values=(-1, 0, 1)):
    """(n, table): the value of f at each of the 2^n inputs in the order of ``oracles.cube``."""
    n = draw(st.integers(1, 5))
    return n, draw(st.lists(st.sampled_from(values), min_size=2**n, max_size=2**n))


def as_model(n, table):
    values, powers = torch.tensor(table, dtype=torch.float64), 2 ** torch.arange(n).flip(0)
    return lambda x: values[((x + 1) / 2).long() @ powers]


def measure(n, table, **options):
    inputs = torch.tensor(oracles.cube(n), dtype=torch.float64)
    return jostle.measure(
        as_model(n, table), inputs, tokens="coordinates", perturbation="sign-flip", plan=jostle.Grid(1), **options
    )


def as_function(n, table):
    return dict(zip(oracles.cube(n), table, strict=True)).__getitem__


@MODEST
@given(truth_tables(), st.integers(1, 9))
def test_the_grid_equals_enumeration_exactly(case, batch_size):
    n, table = case
    m = measure(n, table, batch_size=batch_size)
    f, cube = as_function(n, table), oracles.cube(n)
    flips = [[f(x) != f((*x[:i], -x[i], *x[i + 1 :])) for i in range(n)] for x in cube]
    assert m.per_input.tolist() == [sum(row) / n for row in flips]
    assert m.profile.values.tolist() == [sum(column) / 2**n for column in zip(*flips, strict=True)]
    assert m.trials == n * 2**n
    # The mean of means of thirds and fifths may end one rounding away from the one division of the oracle.
    assert m.value == pytest.approx(oracles.sensitivity_by_enumeration(f, n), rel=1e-14, abs=0)
    assert m.low == m.value == m.high


@MODEST
@given(truth_tables(values=(-1, 1)))
def test_sensitivity_is_the_mean_degree_of_the_fourier_weights(case):
    """n S = sum over U of |U| fhat(U)^2, fhat(U) = mean of f(x) prod_{i in U} x_i."""
    n, table = case
    cube, total = np.array(oracles.cube(n)), 0.0
    for chosen in itertools.product((False, True), repeat=n):
        total += sum(chosen) * np.mean(np.array(table) * cube[:, list(chosen)].prod(axis=1)) ** 2
    assert measure(n, table).value * n == pytest.approx(total, abs=1e-12)


@MODEST
@given(truth_tables(values=(-1, 1)))
def test_a_uniform_bit_moves_half_of_what_a_flip_moves(case):
    """The present bit returns in half of the draws: within 4 standard errors of half the sensitivity."""
    n, table = case
    inputs, draws = torch.tensor(oracles.cube(n), dtype=torch.float64), 400
    m = jostle.measure(
        as_model(n, table), inputs, tokens="coordinates", perturbation="uniform-token:-1/1", plan=jostle.Grid(draws)
    )
    exact = oracles.sensitivity_by_enumeration(as_function(n, table), n)
    error = np.sqrt(exact / 4 / m.trials)  # a share ``exact`` of the cells has variance 1/4, the others none
    assert abs(m.value - exact / 2) <= 4 * error
