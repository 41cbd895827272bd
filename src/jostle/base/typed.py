"""Whether what was read from a file is of the kinds that its classes declare: dataclasses, checked field by field.

JSON has no types of its own: an edited file may hold a text for a list, or a negative count, and would print all the
same. ``check_fields`` and ``check_written`` raise a ValueError that names the field.
"""

import dataclasses
import math
import types
from collections.abc import Mapping, Sequence
from typing import Any, Literal, Union, get_args, get_origin

_LONGEST = 40  # characters of a wrong value that a message shows
_SHARES = frozenset({"level", "shared_level", "alpha"})  # strictly between 0 and 1
_ANY_SIGN = frozenset({"seed", "rank", "place"})  # whole numbers that are no counts


def check_fields(found: Any, where: str = "") -> None:
    """Refuse a dataclass with a field that is not of its declared kind, a negative count or a level that is none.

    Fields whose kind is given as text or is no plain kind (arrays, tensors) are passed over. Dataclasses within are
    checked too, also in lists, tuples and dictionaries.
    """
    for field in dataclasses.fields(found):
        name, value = f"{where}{field.name}", getattr(found, field.name)
        if not _is_of(value, field.type):
            raise ValueError(f"{name}, which is {_short(value)}")
        if _is_number(value):
            is_count = isinstance(value, int) and field.type is int and field.name not in _ANY_SIGN
            if (is_count or field.name == "seconds") and value < 0:
                raise ValueError(f"{name}, which is {_short(value)} and cannot be negative")
            if field.name in _SHARES and not 0 < value < 1:
                raise ValueError(f"{name}, which is {_short(value)} and not between 0 and 1")
        for part in _parts(value):
            check_fields(part, f"{name}.")


def check_written(read: Any, written: Any, where: str = "") -> None:
    """Refuse a record that is not what would be written of the result that was read from it.

    Numbers that stand in a file twice must agree. Keys that only one of them has are passed over: files have more, such
    as an accuracy, and those of before have less.

    Arguments:
        read: the record, as JSON has it.
        written: what the result writes.
        where: the key of both, for the message.
    """
    if isinstance(written, Mapping) and isinstance(read, Mapping):
        for key, value in written.items():
            if key in read:
                check_written(read[key], value, f"{where}.{key}" if where else key)
    elif isinstance(written, Sequence) and not isinstance(written, str) and isinstance(read, list):
        if len(read) != len(written):
            raise ValueError(f"{where}, which has {len(read)} entries where {len(written)} fit")
        for one, other in zip(read, written, strict=True):
            check_written(one, other, where)
    elif read != written:
        raise ValueError(f"{where}, which is {_short(read)} where {_short(written)} fits")


def _is_of(value: Any, kind: Any) -> bool:
    """Whether a value is of a declared kind; true of kinds that are not looked into."""
    origin, inner = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        return any(_is_of(value, one) for one in inner)
    if origin is Literal:
        return isinstance(value, str | int) and value in inner
    if origin is list:
        return isinstance(value, list) and all(_is_of(one, inner[0]) for one in value)
    if origin is tuple:
        kinds = [inner[0]] * len(value) if isinstance(value, tuple) and inner[1:] == (...,) else inner
        return isinstance(value, tuple) and len(value) == len(kinds) and all(map(_is_of, value, kinds))
    if origin is dict:
        return isinstance(value, dict) and all(_is_of(k, inner[0]) and _is_of(v, inner[1]) for k, v in value.items())
    if kind is float:
        return _is_number(value) and not math.isnan(value)
    if kind is int:
        return _is_number(value) and isinstance(value, int)
    if kind in (str, bool, type(None)):
        return isinstance(value, kind)
    return True


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _parts(value: Any) -> list[Any]:
    """The dataclasses in a field: the value itself, or the entries of a list, a tuple or a dictionary."""
    entries = value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else [value]
    return [one for one in entries if dataclasses.is_dataclass(one) and not isinstance(one, type)]


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."
