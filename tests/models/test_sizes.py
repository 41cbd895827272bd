"""Every argument of every model is checked when the model is built, whatever its class remembers to check."""

import inspect
from collections.abc import Sequence

import pytest

from jostle import models
from jostle.base.errors import UsageError

NAN = float("nan")
WRONG = {
    int: [0, -1, 2.0, "3", True, None],
    Sequence[int]: [2, (), "64", None, (2, 0), (2, 1.5), {2: 3}],
    float: [-0.1, NAN, "0.1", None, True],
    bool: ["no", 1, None],
    str: ["nothing-of-that-name", 3, None],
    int | None: [0, -1, 2.0, "3", True],
}
EXPECTED = {
    int: "must be a whole number, at least 1",
    Sequence[int]: "must be a list of whole numbers, each at least 1, for example (",
    float: "must be a finite number",
    bool: "must be True or False",
    int | None: "must be a whole number, at least 1",
    str: "must be a name, a text",
}


def message_of(name, argument, value):
    try:
        models.create(name, **{argument: value})
    except UsageError as error:
        return str(error)
    return "no error"


@pytest.mark.parametrize("name", [*models.names(), *models.names("text"), *models.names("bits")])
def test_every_wrong_argument_is_refused_and_named(name):
    offenders = []
    for argument, parameter in inspect.signature(models.class_of(name)).parameters.items():
        for value in [*WRONG[parameter.annotation], *([1] if argument.endswith("dropout") else [])]:
            expected = f"{argument}={value!r} {EXPECTED.get(parameter.annotation)}"
            if parameter.annotation is str and isinstance(value, str):
                expected = f"unknown {argument} {value!r}"
            message = message_of(name, argument, value)
            if not message.startswith(expected):
                offenders.append(f"{argument}={value!r}: {message}")
    assert not offenders
