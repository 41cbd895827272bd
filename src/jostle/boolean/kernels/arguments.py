"""What the kernels check about their arguments: whole numbers, numbers above 0, the range of floats."""

import operator
from typing import Any

import numpy as np

from jostle.errors import UsageError


def whole(name: str, value: Any, least: int = 1, most: int | None = None, hint: str = "") -> int:
    """``value`` as an int from ``least`` to ``most``; numpy's whole numbers are welcome, True and 2.0 are not.

    >>> whole("depth", np.int64(3))
    3
    >>> whole("depth", 2.0)
    Traceback (most recent call last):
    jostle.errors.UsageError: depth is 2.0; expected a whole number of at least 1
    """
    expected = f"a whole number of at least {least}" if most is None else f"a whole number from {least} to {most}"
    try:
        if isinstance(value, bool):
            raise TypeError
        number = operator.index(value)
    except TypeError:
        raise UsageError(f"{name} is {value!r}; expected {expected}{hint}") from None
    if number < least or (most is not None and number > most):
        raise UsageError(f"{name} is {number}; expected {expected}{hint}")
    return number


def number(name: str, value: Any, *, may_be_zero: bool = False) -> float:
    """``value`` as a finite float above 0, or from 0 on."""
    expected = "0 or more" if may_be_zero else "a number above 0"
    try:
        found = float(value) if not isinstance(value, str | bool) else np.nan
    except (TypeError, ValueError):
        found = np.nan
    if not np.isfinite(found) or found < 0 or (found == 0 and not may_be_zero):
        raise UsageError(f"{name} is {value!r}; expected {expected}")
    return found


def out_of_range(depth: int, weight_variance: float) -> UsageError:
    """The error for a kernel whose values are too small or too large for floats."""
    return UsageError(
        f"the kernel under- or overflows at depth {depth} with weight_variance {weight_variance:g}; expected values "
        "from 1e-308 to 1e308, take fewer layers or a weight_variance that keeps the kernel's size"
    )
