"""What the functions check about their arguments: whole numbers, coordinates, lists and signs."""

import operator
from collections.abc import Iterable, Sequence
from typing import Any

from jostle.errors import UsageError


def whole(value: Any, name: str, function: str, least: int = 1, most: int | None = None) -> int:
    """``value`` as an int from ``least`` to ``most``."""
    expected = f"a whole number of at least {least}" if most is None else f"a whole number from {least} to {most}"
    try:
        if isinstance(value, bool):
            raise TypeError
        number = operator.index(value)
    except TypeError:
        shown = repr(value) if isinstance(value, str | float | bool) else f"a {type(value).__name__}"
        raise UsageError(f"{name}={shown} of {function} must be {expected}") from None
    if number < least or (most is not None and number > most):
        raise UsageError(f"{name}={number} of {function} must be {expected}")
    return number


def listed(value: Any, name: str, function: str) -> list[Any]:
    """``value`` as a list; one number alone is a list of one, as text such as ``coordinates=3`` gives it."""
    if isinstance(value, Iterable) and not isinstance(value, str | bytes):
        return [item.item() if hasattr(item, "item") else item for item in value]
    if isinstance(value, int | float) and not isinstance(value, bool):
        return [value]
    raise UsageError(f"{name}={value!r} of {function} must be a list of numbers, for example [1, 0, 2]")


def distinct_coordinates(value: Any, n: int, function: str) -> list[int]:
    """``value`` as a list of different coordinates, counted from 0."""
    found = [whole(item, "coordinate", function, 0, n - 1) for item in listed(value, "coordinates", function)]
    if len(set(found)) < len(found):
        raise UsageError(f"coordinates={found} of {function} must be different from each other")
    return found


def sign(value: Any, name: str, function: str) -> int:
    """``value`` as -1 or 1."""
    if isinstance(value, bool) or value not in (-1, 1):
        raise UsageError(f"{name}={value!r} of {function} must be -1 or 1")
    return int(value)


def signs(values: Sequence[Any], name: str, function: str) -> list[int]:
    """``values`` as a list of -1 and 1."""
    return [sign(value, f"{name}[{position}]", function) for position, value in enumerate(values)]
