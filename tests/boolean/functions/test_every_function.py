"""What holds for every registered function: exact values, points against tables, text, round trips and errors."""

import itertools

import numpy as np
import pytest
import torch

from jostle.base.errors import UsageError
from jostle.boolean import fourier, functions, pointwise
from jostle.boolean.functions import KnownFunction, create
from tests.boolean import oracles_boolean as oracles
from tests.boolean.functions.against_oracles import SPECTRAL, check_exact

EVERY_SIZE = [(n, {}) for n in (1, 2, 3, 4, 5)]
CASES = {
    "and": EVERY_SIZE,
    "bent": [(2, {}), (4, {}), (6, {})],
    "constant": [(1, {}), (3, {"value": -1}), (4, {"value": 1})],
    "decision-list": [*EVERY_SIZE, (3, {"rules": [[1, -1, 1], [0, 1, -1]], "default": 1}), (2, {"rules": []})],
    "dictator": [*EVERY_SIZE, (4, {"coordinate": 2})],
    "first": EVERY_SIZE,
    "hamming-ball": [*EVERY_SIZE, (5, {"radius": 0}), (5, {"radius": 3}), (4, {"radius": 4})],
    "junta": [*EVERY_SIZE, (5, {"k": 4, "seed": 2}), (5, {"table": [1, -1, -1, -1], "coordinates": [3, 1]})],
    "majority": [*EVERY_SIZE, (6, {})],
    "mean": EVERY_SIZE,
    "multiplexer": [(3, {}), (6, {})],
    "not-all-equal": EVERY_SIZE,
    "or": EVERY_SIZE,
    "parity": EVERY_SIZE,
    "random": EVERY_SIZE,
    "sparse-parity": [(1, {"k": 1}), (5, {"k": 3}), (5, {"coordinates": [4, 0]}), (4, {"k": 4})],
    "symmetric": [(1, {"values": [1, 1]}), (4, {"values": [1, -1, -1, 1, -1]}), (3, {"values": [0, 0.5, -2, 3]})],
    "threshold": [*EVERY_SIZE, (3, {"weights": [3, 1, 1]}), (5, {"weights": [2, -1, 0, 3, 1], "theta": 1})],
    "tribes": [*EVERY_SIZE, (4, {"width": 2}), (6, {"width": 2}), (6, {"width": 3}), (4, {"width": 1})],
}
FLAT = [(name, n, options) for name, cases in CASES.items() for n, options in cases]
DEFINITE = [case for case in FLAT if case[0] != "random"]  # its values are expectations
MISSING = {"threshold": SPECTRAL, "mean": ("sensitivity_profile",)}


def test_every_function_is_listed_here():
    assert sorted(CASES) == functions.names()
    for name in functions.names():
        assert getattr(functions, {"and": "and_", "or": "or_"}.get(name, name.replace("-", "_")))


@pytest.mark.parametrize(("name", "n", "options"), DEFINITE)
def test_closed_forms_equal_enumeration(name, n, options):
    function = create(name, n, **options)
    missing = MISSING.get(name, ())
    if not function.is_boolean:
        missing = ("sensitivity_profile",)
    check_exact(function, missing)


@pytest.mark.parametrize(("name", "n", "options"), FLAT)
def test_points_of_every_kind_agree_with_the_table(name, n, options):
    function = create(name, n, **options)
    table, points = function.table(), np.array(list(itertools.product((-1, 1), repeat=n)))
    assert table.dtype == (np.int8 if function.is_boolean else np.float64)
    assert not function.is_boolean or set(table.tolist()) <= {-1, 1}
    for kind in (np.int8, np.int64, np.float32):
        found = function(points.astype(kind))
        assert found.dtype == table.dtype
        assert found.tolist() == table.tolist()
    for kind in (torch.int8, torch.float64):
        found = function(torch.tensor(points).to(kind))
        assert isinstance(found, torch.Tensor)
        assert found.dtype == (torch.int8 if function.is_boolean else torch.float64)
        assert found.tolist() == table.tolist()
    assert function(points[:0]).shape == (0,)


@pytest.mark.parametrize(("name", "n", "options"), FLAT)
def test_name_and_options_make_the_same_function_again(name, n, options):
    function = create(name, n, **options)
    again = create(function.name, function.n, **function.options)
    assert function.name == name
    assert again == function
    assert hash(again) == hash(function)
    assert again.table().tolist() == function.table().tolist()


@pytest.mark.parametrize(("name", "n", "options"), DEFINITE)
def test_values_also_agree_with_the_fast_routines(name, n, options):
    function = create(name, n, **options)
    table = function.table()
    np.testing.assert_allclose(function.exact.influences, pointwise.influences(table), rtol=1e-14, atol=1e-15)
    if function.exact.weight_by_degree is not None:
        np.testing.assert_allclose(function.exact.weight_by_degree, fourier.weight_by_degree(table), atol=1e-14)


@pytest.mark.parametrize(
    ("spec", "n", "same"),
    [
        ("sparse-parity:k=3", 10, {"k": 3}),
        ("sparse-parity:3", 10, {"k": 3}),
        ("sparse-parity:coordinates=0/4", 5, {"coordinates": [0, 4]}),
        ("sparse-parity:coordinates=4", 5, {"coordinates": [4]}),
        ("threshold:weights=3/1/-1,theta=0.5", 3, {"weights": [3, 1, -1], "theta": 0.5}),
        ("tribes:width=2", 6, {"width": 2}),
        ("junta:table=1/-1/-1/1", 4, {"table": [1, -1, -1, 1]}),
        ("decision-list:rules=0/1/-1/2/-1/1,default=1", 4, {"rules": [(0, 1, -1), (2, -1, 1)], "default": 1}),
        ("symmetric:values=1/-1/1", 2, {"values": [1, -1, 1]}),
        ("constant:value=-1", 2, {"value": -1}),
    ],
)
def test_functions_from_text(spec, n, same):
    assert create(spec, n) == create(spec.partition(":")[0], n, **same)


@pytest.mark.parametrize(
    ("name", "n", "options", "message"),
    [
        ("majorty", 3, {}, "unknown Boolean function 'majorty'; did you mean majority"),
        ("tribes", 6, {"widht": 2}, "unknown tribes option 'widht'; did you mean width"),
        ("majority:k=2", 3, {}, "unknown majority option 'k'"),
        ("majority:2", 3, {}, "too many positional arguments; options: none"),
        ("symmetric", 3, {}, "missing a required argument: 'values'"),
        ("tribes:width=2", 6, {"width": 2}, "width of tribes is given twice"),
        ("sparse-parity:3", 6, {"k": 2}, "multiple values for argument 'k'"),
        ("majority", 0, {}, "n of majority=0 must be a whole number from 1 to 1000000"),
        ("majority", 10**11, {}, "n of majority=100000000000 must be a whole number from 1 to 1000000"),
        ("majority", 2.5, {}, "n of majority=2.5 must be a whole number"),
        ("majority", True, {}, "n of majority=True"),
        ("multiplexer", 7, {}, r"n of multiplexer=7 must be a \+ 2\^a .*; try 6 or 11"),
        ("multiplexer", 1, {}, "; try 3$"),
        ("multiplexer", 1000, {}, "; try 521 or 1034"),
        ("bent", 5, {}, "n of bent=5 must be even.*try 4 or 6"),
        ("tribes", 6, {"width": 4}, "width of tribes=4 must be a divisor of n=6; possible: 1, 2, 3, 6"),
        ("sparse-parity", 4, {}, "needs either k=3"),
        ("sparse-parity", 4, {"k": 5}, "k of sparse-parity=5 must be a whole number from 1 to 4"),
        ("sparse-parity", 4, {"k": 1, "coordinates": [1]}, "not both"),
        ("sparse-parity", 4, {"coordinates": [1, 4]}, "coordinate of sparse-parity=4 must be .* from 0 to 3"),
        ("sparse-parity", 4, {"coordinates": [1, 1]}, "must be different"),
        ("sparse-parity", 4, {"coordinates": []}, r"coordinates of sparse-parity=\[\] must be .* use constant"),
        ("sparse-parity", 4, {"coordinates": "x"}, "must be a list of numbers"),
        ("dictator", 3, {"coordinate": 3}, "coordinate of dictator=3 must be .* from 0 to 2"),
        ("constant", 3, {"value": 0}, "value of constant=0 must be -1 or 1"),
        ("symmetric", 3, {"values": [1, 2]}, r"has 2 numbers; expected n \+ 1 = 4"),
        ("symmetric", 1, {"values": [1, float("nan")]}, r"values\[1\] of symmetric=nan must be a finite number"),
        ("threshold", 3, {"weights": [1, 2]}, "has 2 numbers; expected n = 3"),
        ("threshold", 2, {"weights": [1, float("inf")]}, r"weights\[1\] of threshold=inf must be a finite number"),
        ("threshold", 2, {"theta": "high"}, "theta of threshold='high' must be a finite number"),
        ("threshold", 2, {"weights": [1e300, 1]}, "more than 62 bits"),
        ("junta", 4, {"table": [1, 0, 1, 1]}, r"table\[1\] of junta=0 must be -1 or 1"),
        ("junta", 4, {"table": [1, -1, 1]}, "table of junta has 3 values; expected 2.n"),
        ("junta", 4, {"table": [1, -1], "k": 2}, r"disagree on the number of bits that matter \(k: 2, table: 1\)"),
        ("junta", 30, {"k": 17}, "k of junta=17 must be a whole number from 1 to 16"),
        ("junta", 1, {"table": [1, -1, 1, 1]}, "k of junta=2 must be a whole number from 1 to 1"),
        ("decision-list", 3, {"rules": [0, 1]}, "has 2 numbers; expected triples"),
        ("decision-list", 3, {"rules": [(0, 1)]}, r"rules\[0\] of decision-list=\(0, 1\) must be a triple"),
        ("decision-list", 3, {"rules": [(3, 1, 1)]}, r"coordinate of rules\[0\] of decision-list=3"),
        ("decision-list", 3, {"rules": [(0, 2, 1)]}, r"value of rules\[0\] of decision-list=2 must be -1 or 1"),
        ("random", 97, {}, "n of random=97 must be a whole number from 1 to 96"),
        ("hamming-ball", 3, {"radius": -1}, "radius of hamming-ball=-1 must be a whole number from 0 to 3"),
    ],
)
def test_wrong_use_is_one_clear_line(name, n, options, message):
    with pytest.raises(UsageError, match=message) as caught:
        create(name, n, **options)
    assert "\n" not in str(caught.value)


def test_wrong_points_and_sizes():
    function = functions.majority(3)
    with pytest.raises(UsageError, match=r"majority takes points of shape \(N, 3\), got \(3,\)"):
        function(np.ones(3))
    with pytest.raises(UsageError, match=r"got \(2, 4\)"):
        function(torch.ones(2, 4))
    with pytest.raises(UsageError, match="takes points of -1 and 1, got 0; map bits by"):
        function([[0, 1, 1]])
    with pytest.raises(UsageError, match="got nan"):
        function(np.array([[1.0, np.nan, 1.0]]))
    with pytest.raises(UsageError, match=r"majority with n=100 has 2\^100 values; tables are made up to n=24"):
        functions.majority(100).table()


def test_a_table_of_several_pieces_is_in_order():
    table = functions.dictator(17, coordinate=0).table()
    assert (table == np.repeat([-1, 1], 2**16)).all()
    assert (functions.dictator(17, coordinate=16).table() == np.tile([-1, 1], 2**16)).all()


def test_exact_arrays_cannot_be_changed_by_accident():
    for name, n, options in FLAT:
        exact = create(name, n, **options).exact
        for array in (exact.influences, exact.weight_by_degree):
            assert array is None or not array.flags.writeable


def test_functions_are_what_their_names_say():
    """The definitions once more, one point at a time."""
    definitions = {
        "parity": lambda x: np.prod(x),
        "majority": lambda x: 1 if sum(b == 1 for b in x) > sum(b == -1 for b in x) else -1,
        "and": lambda x: 1 if all(b == 1 for b in x) else -1,
        "or": lambda x: 1 if any(b == 1 for b in x) else -1,
        "not-all-equal": lambda x: 1 if len(set(x)) > 1 else -1,
        "first": lambda x: x[0],
        "bent": lambda x: (-1) ** sum(a == b == 1 for a, b in zip(x[:3], x[3:], strict=True)),
        "tribes": lambda x: 1 if any(x[i] == x[i + 1] == 1 for i in (0, 2, 4)) else -1,
        "multiplexer": lambda x: x[2 + 2 * (x[0] == 1) + (x[1] == 1)],
        "hamming-ball": lambda x: 1 if x.count(1) <= 1 else -1,
        "decision-list": lambda x: -1 if 1 not in x else (-1) ** x.index(1),
        "threshold": lambda x: 1 if sum(x) > 0 else -1,
    }
    for name, definition in definitions.items():
        options = {"width": 2} if name == "tribes" else {}
        assert create(name, 6, **options).table().tolist() == oracles.tabulate(definition, 6), name
        if name not in ("bent", "tribes", "multiplexer"):  # the sign of a parity depends on whether n is odd
            assert create(name, 5).table().tolist() == oracles.tabulate(definition, 5), name
    mean = functions.mean(6).table().tolist()
    assert mean == pytest.approx(oracles.tabulate(lambda x: sum(x) / 6, 6), abs=1e-15)


def test_the_exact_values_are_worked_out_once():
    calls = []

    def derive():
        calls.append(1)
        return functions.Exact()

    function = KnownFunction("x", 1, {}, True, lambda points: points[:, 0], derive)
    assert calls == []
    assert function.exact is function.exact
    assert calls == [1]
