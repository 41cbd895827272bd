import sys

import pytest

from jostle.base.errors import UsageError
from jostle.base.registry import Registry


def test_a_clash_raises_and_unknown_names_answer_with_near_matches():
    registry = Registry[int]("number")
    registry.register("one")(1)
    registry.register("two")(2)
    with pytest.raises(UsageError, match="the number name 'one' is already taken by 1"):
        registry.register("one")(3)
    with pytest.raises(UsageError, match="unknown number 'tow'; did you mean two"):
        registry.get("tow")
    with pytest.raises(UsageError, match="unknown number 'zzz'; known: one, two"):
        registry.get("zzz")
    assert registry.get("one") == 1
    assert registry.names() == ["one", "two"]


def test_the_home_of_a_name_is_imported_when_that_name_is_asked_for():
    registry = Registry[int]("thing", {"near": "tests.base.home_of_near", "far": "jostle.no_such_module"})
    assert registry.names() == ["far", "near"]
    assert "near" in registry
    assert "tests.base.home_of_near" not in sys.modules
    with pytest.raises(ModuleNotFoundError):
        registry.get("far")
