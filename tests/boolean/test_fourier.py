"""The fast transform: the matrix of characters, its inverse, and what holds for every function."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from jostle.boolean import Analysis, analyse, cube, fourier, pointwise
from tests.boolean import oracles_boolean as oracle
from tests.properties.checked import MODEST


@st.composite
def sign_tables(draw, most=9):
    n = draw(st.integers(1, most))
    return draw(arrays.arrays(np.int8, 2**n, elements=st.sampled_from([-1, 1])))


@st.composite
def real_tables(draw, most=8):
    n = draw(st.integers(1, most))
    return draw(arrays.arrays(np.float64, 2**n, elements=st.floats(-1e3, 1e3)))


@pytest.mark.parametrize("n", range(1, 11))
def test_the_transform_is_the_matrix_of_characters(n):
    x, inside = cube.points(n).astype(float), cube.points(n) == 1
    characters = np.where(inside[None], x[:, None], 1.0).prod(axis=2) if n <= 8 else None  # (x, U)
    table = np.random.default_rng(n).choice([-1, 1], 2**n).astype(np.int8)
    if characters is not None:
        assert fourier.coefficients(table).tolist() == (table @ characters / 2**n).tolist()
    assert x.tolist() == [list(map(float, point)) for point in oracle.points(n)]
    assert cube.degrees(n).tolist() == [len(subset) for subset in oracle.subsets(n)]
    assert [cube.subset_row(subset, n) for subset in oracle.subsets(n)] == list(range(2**n))


def test_batches_of_tables_are_transformed_one_by_one():
    tables = np.random.default_rng(0).normal(size=(3, 2, 2**7))
    together = fourier.coefficients(tables)
    assert together.shape == tables.shape
    assert np.array_equal(together[2, 1], fourier.coefficients(tables[2, 1]))
    signs = np.sign(tables).astype(np.int8)
    assert np.array_equal(pointwise.sensitivities(signs)[1, 0], pointwise.sensitivities(signs[1, 0]))
    assert np.array_equal(pointwise.influences(signs)[1, 0], pointwise.influences(signs[1, 0]))


def test_the_given_table_is_left_alone():
    for table in (np.random.default_rng(0).normal(size=2**6), np.ones(2**19, dtype=np.int8)):
        before = table.copy()
        analyse(table).coefficients  # noqa: B018
        assert np.array_equal(table, before)


@MODEST
@given(sign_tables())
def test_for_signs_everything_is_exact(table):
    b = Analysis.of(table)
    n = b.n
    assert b.fourier_weight.sum() == 1.0  # Parseval
    assert np.array_equal(fourier.values(b.coefficients), table)  # the transform undone
    assert np.dot(np.arange(n + 1), b.fourier_weight) == b.total_sensitivity == b.influences.sum()
    assert b.sensitivity_profile.sum() == 2**n
    assert np.dot(np.arange(n + 1), b.sensitivity_profile) / 2**n == b.total_sensitivity
    assert b.huang.holds
    assert b.noise_stability(1.0) == 1.0
    assert b.noise_stability(0.0) == b.mean**2
    for rho in (0.0, 0.1, 0.5, 0.9, 1.0):
        assert b.proposition_3_2(rho).holds
        assert b.average_bound(rho).holds
        assert b.average_bound(rho).right <= b.proposition_3_2(rho).right + 1e-12
    assert b.total_sensitivity >= b.variance  # Poincare
    assert b.total_sensitivity <= b.max_sensitivity <= n


@MODEST
@given(real_tables())
def test_for_real_numbers_everything_holds_to_rounding(table):
    b = Analysis.of(table)
    energy = float(np.mean(table**2))
    near = {"rel": 1e-9, "abs": 1e-12 * (1 + energy)}
    assert b.fourier_weight.sum() == pytest.approx(energy, **near)
    assert fourier.values(b.coefficients) == pytest.approx(table, rel=1e-9, abs=1e-9)
    assert np.dot(np.arange(b.n + 1), b.fourier_weight) == pytest.approx(b.total_sensitivity, **near)
    assert b.influences.sum() == pytest.approx(b.total_sensitivity, **near)


@MODEST
@given(sign_tables(most=6), st.randoms(use_true_random=False))
def test_relabelling_and_flipping_coordinates_changes_only_their_order(table, random):
    b = Analysis.of(table)
    order, signs = list(range(b.n)), [random.choice((-1, 1)) for _ in range(b.n)]
    random.shuffle(order)
    relabelled = analyse(lambda x: table[rows_of((x * signs)[:, order])], b.n)  # coordinate j now plays order[j]
    assert relabelled.sensitivity_profile.tolist() == b.sensitivity_profile.tolist()
    assert relabelled.fourier_weight.tolist() == b.fourier_weight.tolist()
    assert relabelled.influences[order].tolist() == b.influences.tolist()
    assert analyse(-table).sensitivity_profile.tolist() == b.sensitivity_profile.tolist()


def rows_of(points):
    """The table row of each point."""
    n = points.shape[1]
    return ((points > 0) @ (1 << np.arange(n - 1, -1, -1))).astype(np.int64)
