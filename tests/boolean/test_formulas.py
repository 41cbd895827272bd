"""Formulas of bits, against Python's own operators on all inputs."""

import contextlib
import itertools
import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jostle.base.errors import UsageError
from jostle.boolean import analyse
from jostle.boolean.formulas import is_formula, parse
from tests.cli.test_cli import run


def drawn(rng, depth=0):
    """A random formula, and the same for Python."""
    if depth == 4 or rng.random() < 0.3:
        bit = rng.choice(["x0", "x1", "x2", "X3", "1", "false"])
        return bit, {"X3": "x3", "1": "True", "false": "False"}.get(bit, bit)
    if rng.random() < 0.25:
        word, (ours, theirs) = rng.choice(["not ", "~", "!"]), drawn(rng, depth + 1)
        return f"{word}({ours})", f"(not ({theirs}))"
    (one, python_one), (other, python_other) = drawn(rng, depth + 1), drawn(rng, depth + 1)
    ours, theirs = rng.choice([("and", "and"), ("&", "and"), ("or", "or"), ("|", "or"), ("xor", "!="), ("^", "!=")])
    return f"({one}) {ours} ({other})", f"(({python_one}) {theirs} ({python_other}))"


@pytest.mark.parametrize("seed", range(30))
def test_values_are_those_of_python(seed):
    ours, theirs = drawn(random.Random(seed))
    formula = parse(f"({ours}) ^ (x0 & !x0)")
    points = np.array(list(itertools.product((-1, 1), repeat=4)))
    expected = [eval(theirs, {f"x{i}": bit > 0 for i, bit in enumerate(point)}) for point in points]
    assert formula(points).tolist() == [1 if one else -1 for one in expected]


def test_operators_bind_as_in_python():
    points = np.array(list(itertools.product((-1, 1), repeat=3)))
    for ours, brackets in [
        ("x0 or x1 and x2", "x0 or (x1 and x2)"),
        ("x0 ^ x1 & x2", "x0 ^ (x1 & x2)"),
        ("x0 | x1 ^ x2", "x0 | (x1 ^ x2)"),
        ("not x0 and x1", "(not x0) and x1"),
    ]:
        assert parse(ours)(points).tolist() == parse(brackets)(points).tolist()


def test_parity_as_a_formula():
    found = analyse(parse("x0 xor x1 xor x2"), n=3)
    assert (found.total_sensitivity, found.degree) == (3, 3)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("x0 and", "is not complete"),
        ("x0 x1", "'x1' is not expected there"),
        ("(x0", "a bracket is not closed"),
        ("x0)", "')' is not expected there"),
        ("x0 + x1", "'+ x1' is not understood"),
        ("x0 and y", "'y' is not expected there"),
        ("1 or 0", "has no bit"),
        ("x0 or x99999999999999999999", "is too large"),
        ("(" * 5000 + "x0", "inside each other"),
        ("not " * 5000 + "x0", "inside each other"),
        ("x0 or x" + "9" * 5000, "is too large"),
        ("x0 or x\u00b2", "is not expected there"),
        ("x0 and 2", "is not understood"),
        ("", "is not complete"),
    ],
)
def test_what_is_no_formula_is_one_line(text, said):
    with pytest.raises(UsageError) as error:
        parse(text)
    assert said in str(error.value)
    assert len(str(error.value).splitlines()) == 1


@settings(max_examples=150, deadline=None)
@given(st.text(alphabet="x01 ()&|^~!andor\u00e9\n_²", max_size=25))
def test_any_text_is_a_formula_or_refused(text):
    with contextlib.suppress(UsageError):
        parse(text)(np.ones((2, 25)))


def test_names_are_no_formulas():
    assert not any(map(is_formula, ("parity", "xor", "threshold:weights=3/1/1", "max2", "mux1", "table.txt")))
    assert all(map(is_formula, ("x0", "X1|x2", "not x3", "(x0)")))


def test_on_the_command_line(capsys):
    code, out, err = run(capsys, "boolean", "x0 and x1")
    assert (code, err) == (0, "")
    assert out.startswith("x0 and x1: function of 2 bits")
    assert "total sensitivity    1 " in out
    code, out, _ = run(capsys, "boolean", "x0 xor x1", "--n", 4, "--json")
    assert code == 0
    assert '"n": 4' in out


def test_too_few_bits_on_the_command_line(capsys):
    code, _, err = run(capsys, "boolean", "x0 and x5", "--n", 3)
    assert code == 2
    assert err == "jostle: --n 3: the formula 'x0 and x5' has 6 bits, x0 to x5\n"
    code, _, err = run(capsys, "boolean", "x0 and")
    assert (code, err.count("\n")) == (2, 1)
