"""The checks of arguments that every package uses, with one wording: ``depth=0 must be a whole number, at least 1``.

A check takes the argument's name and value, and returns the value in the expected type. Checks that only one package
can make, such as whether a mask fits its inputs, are in that package.
"""

import math
import operator
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

import numpy as np

from jostle.base.errors import UsageError, shown
from jostle.base.registry import unknown_name

MOST_LAYERS = 10_000  # which are made one by one; a million would take hours, or all memory
LARGEST_LEVEL = 0.999  # Gaffke's bound is taken over 10,000 resamples


def whole(name: str, value: Any, *, least: int | None = None, most: int | None = None, hint: str = "") -> int:
    """``value`` as an int from ``least`` to ``most``. Whole numbers of numpy are welcome, True and 2.0 are not.

    >>> whole("depth", np.int64(3), least=1)
    3
    >>> whole("depth", 0, least=1)
    Traceback (most recent call last):
    jostle.base.errors.UsageError: depth=0 must be a whole number, at least 1

    Arguments:
        name: of the argument; its owner may follow, as in ``k of sparse-parity``.
        value: the argument.
        least, most: the bounds, both included.
        hint: the likely fix, appended to the message.
    """
    try:
        number = None if isinstance(value, bool | np.bool_) else operator.index(value)
    except TypeError:
        number = None
    if number is None or (least is not None and number < least) or (most is not None and number > most):
        raise wrong(name, value, _with_bounds("a whole number", least, most), hint)
    return number


def sizes(**named: Any) -> None:
    """Raise unless every named value is a whole number of at least 1, as widths and counts are; a depth has an end.

    >>> sizes(depth=2, dim=0)
    Traceback (most recent call last):
    jostle.base.errors.UsageError: dim=0 must be a whole number, at least 1
    """
    for name, value in named.items():
        whole(name, value, least=1)
        if name == "depth":
            whole(name, value, most=MOST_LAYERS)


def wholes(name: str, values: Any, *, least: int | None = None, example: str = "(2, 2)") -> tuple[int, ...]:
    """``values`` as a tuple of whole numbers, at least one of them.

    >>> wholes("blocks", 2, least=1)
    Traceback (most recent call last):
    jostle.base.errors.UsageError: blocks=2 must be a list of whole numbers, each at least 1, for example (2, 2)
    """
    is_list = isinstance(values, Collection) and not isinstance(values, str | bytes | Mapping) and len(values) > 0
    try:
        return tuple(whole(name, value, least=least) for value in values) if is_list else _refuse()
    except UsageError:
        each = "" if least is None else f", each at least {least}"
        raise wrong(name, values, f"a list of whole numbers{each}, for example {example}") from None


def number(
    name: str,
    value: Any,
    *,
    least: float | None = None,
    above: float | None = None,
    most: float | None = None,
    below: float | None = None,
    hint: str = "",
) -> float:
    """``value`` as a finite float within the bounds; texts, truth values and NaN are not numbers.

    >>> number("std", 0.5, least=0)
    0.5
    >>> number("dropout", 1, least=0, below=1)
    Traceback (most recent call last):
    jostle.base.errors.UsageError: dropout=1 must be a finite number from 0 to below 1

    Arguments:
        name, value, hint: as for ``whole``.
        least, most: bounds that are included.
        above, below: bounds that are not.
    """
    is_number = isinstance(value, int | float | np.number) and not isinstance(value, bool | np.complexfloating)
    found = float(value) if is_number else math.nan
    too_small = (least is not None and found < least) or (above is not None and found <= above)
    too_large = (most is not None and found > most) or (below is not None and found >= below)
    if not math.isfinite(found) or too_small or too_large:
        raise wrong(name, value, f"a finite number{_range(least, above, most, below)}", hint)
    return found


def level(value: Any) -> float:
    """``value`` as the coverage of an interval.

    >>> level(95)
    Traceback (most recent call last):
    jostle.base.errors.UsageError: level=95 must be a finite number above 0 and at most 0.999, for example 0.95
    """
    return number("level", value, above=0, most=LARGEST_LEVEL, hint=", for example 0.95")


def choice(name: str, value: Any, known: Iterable[str]) -> str:
    """``value`` if it is one of the known names; any other answers with near matches.

    >>> choice("norm", "layr", ["layer", "none"])
    Traceback (most recent call last):
    jostle.base.errors.UsageError: unknown norm 'layr'; did you mean layer?
    """
    known = list(known)
    if not isinstance(value, str) or value not in known:
        raise unknown_name(name, value, known)
    return str(value)


def text(name: str, value: Any) -> str:
    """``value`` if it is a text, for example the name that messages call a model by.

    >>> text("name", 3)
    Traceback (most recent call last):
    jostle.base.errors.UsageError: name=3 must be a text
    """
    if not isinstance(value, str):
        raise wrong(name, value, "a text")
    return value


def truth(name: str, value: Any) -> bool:
    """``value`` if it is true or false: a text such as "no" would count as true.

    >>> truth("whole", "no")
    Traceback (most recent call last):
    jostle.base.errors.UsageError: whole='no' must be True or False
    """
    if not isinstance(value, bool | np.bool_):
        raise wrong(name, value, "True or False")
    return bool(value)


def function(name: str, value: Any) -> Callable[..., Any]:
    """``value`` if it can be called.

    >>> function("model", "vit")
    Traceback (most recent call last):
    jostle.base.errors.UsageError: model of type str cannot be called; give an nn.Module or a function
    """
    if not callable(value):
        raise UsageError(f"{name} of type {type(value).__name__} cannot be called; give an nn.Module or a function")
    return value  # type: ignore[no-any-return]


def wrong(name: str, value: Any, expected: str, hint: str = "") -> UsageError:
    """The error for an argument that is not what was expected, in the wording of all checks."""
    return UsageError(f"{name}={shown(value)} must be {expected}{hint}")


def _refuse() -> tuple[int, ...]:
    raise UsageError("not a list")


def _with_bounds(what: str, least: float | None, most: float | None) -> str:
    if least is not None and most is not None:
        return f"{what} from {least} to {most}"
    if least is not None:
        return f"{what}, at least {least}"
    return what if most is None else f"{what}, at most {most}"


def _range(least: float | None, above: float | None, most: float | None, below: float | None) -> str:
    """Bounds in words: `` from 0 to below 1``, `` above 0``, ``, at least 0``."""
    ends = (f"{most:g}" if most is not None else "") or (f"below {below:g}" if below is not None else "")
    if least is not None:
        return f" from {least:g} to {ends}" if ends else f", at least {least:g}"
    if above is not None:
        return f" above {above:g}" + (f" and {'at most ' if most is not None else ''}{ends}" if ends else "")
    return f", at most {ends}" if most is not None else f" {ends}" if ends else ""
