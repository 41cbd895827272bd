"""Closed forms of the families with many parameters, on functions that hypothesis makes up."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from jostle.boolean import functions, pointwise
from tests.boolean import oracles_boolean as oracles
from tests.boolean.functions.against_oracles import SPECTRAL, check_exact
from tests.properties.checked import FEW, MODEST

SIGN = st.sampled_from([-1, 1])


def lists(items, size):
    return st.lists(items, min_size=size, max_size=size)


@MODEST
@given(st.data(), st.integers(1, 4))
def test_threshold(data, n):
    weights = data.draw(lists(st.integers(-6, 6), n))
    theta = data.draw(st.integers(-8, 8))
    function = functions.threshold(n, weights=weights, theta=theta)
    expected = oracles.tabulate(lambda x: 1 if sum(w * b for w, b in zip(weights, x, strict=True)) > theta else -1, n)
    assert function.table().tolist() == expected
    check_exact(function, SPECTRAL)


@FEW
@given(st.data(), st.integers(1, 4))
def test_threshold_with_decimals_equals_whole_weights(data, n):
    weights = data.draw(lists(st.integers(-30, 30), n))
    theta = data.draw(st.integers(-20, 20))
    tenths = functions.threshold(n, weights=[w / 10 for w in weights], theta=theta / 10)
    whole = functions.threshold(n, weights=weights, theta=theta)
    assert tenths.table().tolist() == whole.table().tolist()
    assert tenths.exact.sensitivity_profile == whole.exact.sensitivity_profile


@MODEST
@given(st.data(), st.integers(1, 4), st.integers(1, 3))
def test_junta(data, n, k):
    k = min(n, k)
    table = data.draw(lists(SIGN, 2**k))
    coordinates = data.draw(st.permutations(range(n)))[:k]
    function = functions.junta(n, table=table, coordinates=coordinates)
    inner = oracles.by_point(table)
    assert function.table().tolist() == oracles.tabulate(lambda x: inner[tuple(x[i] for i in coordinates)], n)
    check_exact(function)


@MODEST
@given(st.data(), st.integers(1, 4))
def test_decision_list(data, n):
    # Up to twice as many rules as bits: conditions repeat and contradict each other.
    rule = st.tuples(st.integers(0, n - 1), SIGN, SIGN)
    rules, default = data.draw(st.lists(rule, max_size=2 * n)), data.draw(SIGN)
    function = functions.decision_list(n, rules=rules, default=default)

    def walk(x):
        return next((output for coordinate, value, output in rules if x[coordinate] == value), default)

    assert function.table().tolist() == oracles.tabulate(walk, n)
    check_exact(function)


@FEW
@given(st.data(), st.integers(1, 4))
def test_symmetric(data, n):
    values = data.draw(st.one_of(lists(SIGN, n + 1), lists(st.integers(-8, 8).map(lambda v: v / 4), n + 1)))
    function = functions.symmetric(n, values=values)
    assert function.is_boolean == all(value in (-1, 1) for value in values)
    check_exact(function, () if function.is_boolean else ("sensitivity_profile",))


@FEW
@given(st.data(), st.integers(1, 12))
def test_threshold_totals_by_counting_at_larger_sizes(data, n):
    weights = data.draw(lists(st.integers(-40, 40), n))
    theta = data.draw(st.integers(-60, 60))
    function = functions.threshold(n, weights=weights, theta=theta)
    found = pointwise.sensitivities(function.table())
    assert list(function.exact.sensitivity_profile) == np.bincount(found, minlength=n + 1).tolist()
    assert function.exact.influences.tolist() == pointwise.influences(function.table()).tolist()


def test_threshold_says_none_where_counting_would_take_too_long():
    assert functions.threshold(3, weights=[1e6, 1, 1]).exact.total_sensitivity is None
    assert functions.threshold(3, weights=[1 / 3, 1, 1]).exact.mean is None
    large = functions.threshold(100, weights=[990 + i % 7 for i in range(100)]).exact
    assert large.sensitivity_profile is None
    assert large.max_sensitivity is None
    assert large.total_sensitivity > 0
