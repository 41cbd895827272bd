import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jostle.base import specs
from jostle.base.errors import UsageError
from jostle.base.registry import Registry
from jostle.perturbations import PERTURBATIONS, GaussianNoise, Sphere
from jostle.sampling import PLANS, Grid, Until
from jostle.tokens import VIEWS, Patches, Rows
from tests.properties.checked import MODEST


@pytest.mark.parametrize(
    ("registry", "spec", "expected"),
    [
        (VIEWS, "rows", Rows()),
        (VIEWS, "rows:", Rows()),
        (VIEWS, "patches:4", Patches(4)),
        (VIEWS, "patches:size=4", Patches(4)),
        (VIEWS, "patches: 4 , key = x , mask-key=m", Patches(4, key="x", mask_key="m")),
        (PERTURBATIONS, "gaussian-noise:0.5", GaussianNoise(0.5)),
        (PERTURBATIONS, "gaussian-noise:std=1e-3", GaussianNoise(0.001)),
        (PERTURBATIONS, "sphere:2,relative=True", Sphere(2, relative=True)),
        (PLANS, "grid", Grid()),
        (PLANS, "until:half-width=0.1,max-passes=1000", Until(half_width=0.1, max_passes=1000)),
    ],
)
def test_specs_make_objects(registry, spec, expected):
    assert specs.build(registry, spec, "argument") == expected


def test_objects_are_taken_as_they_are():
    view = Patches(3)
    assert specs.build(VIEWS, view, "tokens") is view


@pytest.mark.parametrize(
    ("registry", "spec", "message"),
    [
        (VIEWS, "patch:4", "unknown token view 'patch'; did you mean patches?"),
        (VIEWS, "", "unknown token view ''; known: columns, coordinates, embeddings, patches, rows, whole, words"),
        (VIEWS, "patches", "tokens='patches': patches needs size=; options: size"),
        (VIEWS, "patches:sise=4", "unknown option of patches 'sise'; did you mean size?"),
        (VIEWS, "patches:4,size=5", "tokens='patches:4,size=5': multiple values for argument 'size'; options: size"),
        (VIEWS, "rows:4", "tokens='rows:4': too many positional arguments; options: key"),
        (VIEWS, "patches:2.5", "size=2.5 must be a whole number, at least 1"),
        (VIEWS, "patches:true", "size=True must be a whole number"),
        (PERTURBATIONS, "gaussian-noise:nan", "std=nan"),
        (PERTURBATIONS, "gaussian-noise:loud", "std='loud'"),
        (PLANS, "until", "exactly one of half_width=, relative= and decided=True"),
        (PLANS, "grid:1/2", "draws=[1, 2] must be"),
        (VIEWS, Patches, "tokens=Patches is a class; give an object, for example Patches(...)"),
    ],
)
def test_wrong_specs_are_one_clear_line(registry, spec, message):
    with pytest.raises(UsageError) as error:
        specs.build(registry, spec, "tokens")
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_a_function_in_the_place_of_an_object_gets_a_hint():
    with pytest.raises(UsageError) as error:
        specs.build(PERTURBATIONS, len, "perturbation", GaussianNoise)
    assert str(error.value).startswith(
        "perturbation=len is a function and not a perturbation: write a small class, as docs/add-your-own.md shows, or "
        "give one of jostle's objects or names: correlated, deletion"
    )


@pytest.mark.parametrize(
    ("text", "positional", "named"),
    [
        ("", [], {}),
        ("4", [4], {}),
        ("a,b=c", ["a"], {"b": "c"}),
        ("a=b=c", [], {"a": "b=c"}),
        (" 1 ,, x-y = 2 ", [1], {"x_y": 2}),
        ("hidden=512/128,activation=relu", [], {"hidden": [512, 128], "activation": "relu"}),
    ],
)
def test_arguments(text, positional, named):
    assert specs.arguments(text) == (positional, named)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("3", 3),
        ("-3", -3),
        ("3.0", 3.0),
        ("1e-3", 0.001),
        ("true", True),
        ("False", False),
        ("-1/1", [-1, 1]),
        ("0.5/2", [0.5, 2]),
        ("a/b", "a/b"),
        ("/a/b", "/a/b"),
        ("./1/2", "./1/2"),
        ("../1", "../1"),
        ("1/", [1]),
        ("softmax", "softmax"),
        ("", ""),
    ],
)
def test_literals_keep_their_type(text, value):
    found = specs.literal(text)
    assert found == value
    assert type(found) is type(value)


@MODEST
@given(st.integers() | st.floats(allow_nan=False) | st.booleans())
def test_every_number_is_read_back_exactly(value):
    found = specs.literal(repr(value))
    assert found == value
    assert type(found) is type(value)
    assert math.copysign(1, found) == math.copysign(1, value)


def test_an_error_inside_what_is_made_is_not_hidden():
    registry = Registry[type]("thing")

    @registry.register("thing")
    class Thing:
        def __init__(self) -> None:
            raise UsageError("things cannot be made today")

    with pytest.raises(UsageError, match=r"^things cannot be made today$"):
        specs.build(registry, "thing", "argument")


def test_a_bug_inside_what_is_made_is_not_taken_for_wrong_use():
    registry = Registry[type]("thing")

    @registry.register("thing")
    class Thing:
        def __init__(self, size: int) -> None:
            self.size = size + "1"

    with pytest.raises(TypeError, match="unsupported operand"):
        specs.build(registry, "thing:4", "argument")
