import math

import numpy as np
import pytest

from jostle.base import checks
from jostle.base.errors import UsageError

NAN, INFINITE = float("nan"), float("inf")


def test_good_values_pass_and_come_back_in_the_expected_type():
    assert checks.whole("seed", np.int64(-3)) == -3
    assert type(checks.whole("seed", np.int64(-3))) is int
    assert checks.wholes("blocks", [2, np.int64(1)], least=1) == (2, 1)
    assert type(checks.number("std", 1)) is float
    assert checks.number("dropout", 0, least=0, below=1) == 0
    assert checks.level(0.999) == 0.999
    assert checks.choice("attention", "relu", ["softmax", "relu"]) == "relu"
    assert checks.truth("whole", np.bool_(True)) is True
    assert checks.function("model", math.sqrt) is math.sqrt
    checks.sizes(depth=1, dim=np.int64(64))


WRONG = {
    "sizes": (
        lambda value: checks.sizes(depth=1, dim=value),
        [0, -1, 2.0, True, "3", None],
        "must be a whole number, at least 1",
    ),
    "whole": (lambda value: checks.whole("seed", value), [0.5, "a", None, False], "must be a whole number"),
    "wholes": (
        lambda value: checks.wholes("blocks", value, least=1),
        [(), [], 3, "12", None, {2: 3}, (1, -1), (1, 2.5)],
        "must be a list of whole numbers, each at least 1, for example (2, 2)",
    ),
    "share": (
        lambda value: checks.number("dropout", value, least=0, below=1),
        [-0.1, 1, 1.5, NAN, "0.1", None, True],
        "must be a finite number from 0 to below 1",
    ),
    "above": (
        lambda value: checks.number("lr", value, above=0),
        [0, -1.0, INFINITE, NAN, "1", None, True],
        "must be a finite number above 0",
    ),
    "truth": (lambda value: checks.truth("whole", value), ["no", 1, None], "must be True or False"),
}


@pytest.mark.parametrize("check", WRONG)
def test_wrong_values_are_named_with_what_was_expected(check):
    function, values, expected = WRONG[check]
    for value in values:
        with pytest.raises(UsageError) as caught:
            function(value)
        assert str(caught.value).endswith(f"={value!r} {expected}"), value


@pytest.mark.parametrize(
    ("choice", "message"),
    [("rleu", "unknown attention 'rleu'; did you mean relu"), (3, "attention=3 must be a name, a text; known: relu")],
)
def test_choice(choice, message):
    with pytest.raises(UsageError, match=message):
        checks.choice("attention", choice, ["softmax", "relu"])
