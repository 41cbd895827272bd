"""Typed values of studies and their JSON form. Pydantic does the work.

Settings and records are frozen dataclasses. ``to_plain`` gives the dictionaries, lists, texts and numbers that JSON can
hold, ``from_plain`` checks such values and makes the dataclass of them: lists become tuples again, keys become whole
numbers again. Both follow the annotations of the fields.

A field that is added later needs a default, so that records without it can still be read.
"""

import functools
from typing import Annotated, Any, TypeVar, cast

from pydantic import (
    BeforeValidator,
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    TypeAdapter,
    ValidationError,
    WrapSerializer,
)
from pydantic_core import PydanticSerializationError

from jostle.base.errors import UsageError
from jostle.base.store import Record

Thing = TypeVar("Thing")


class Struct:
    """Base of all records: a frozen dataclass that inherits from it refuses fields it does not know.

    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class Point(Struct):
    ...     at: tuple[float, ...]
    ...     label: IfGiven[str] = ""
    >>> to_plain(Point((1.0, 2.0)))
    {'at': [1.0, 2.0]}
    >>> from_plain(Point, {"at": [1.0, 2.0]}, "point")
    Point(at=(1.0, 2.0), label='')
    >>> from_plain(Point, {"at": [1.0, "x"]}, "point")
    Traceback (most recent call last):
    jostle.base.errors.UsageError: point is damaged: at.1: input should be a valid number, unable to parse string as \
a number
    """

    __pydantic_config__ = ConfigDict(extra="forbid")


def _is_not_given(value: object) -> bool:
    return value is None or value in ("", ())


# The type of a field that a file leaves out where it is None or empty: ``penalty: IfGiven[Penalty | None] = None``.
IfGiven = Annotated[Thing, Field(exclude_if=_is_not_given)]


def _none_if_empty(value: object) -> object:
    return value or None


def _empty_if_none(value: object, write: SerializerFunctionWrapHandler) -> object:
    return {} if value is None else write(value)


# The type of a field that a file holds as {} where it is None: ``corrupted: OrEmpty[CorruptedImages] = None``.
OrEmpty = Annotated[Thing | None, BeforeValidator(_none_if_empty), WrapSerializer(_empty_if_none)]


def to_plain(thing: object) -> Record:
    """What JSON can hold of a dataclass: its fields by name, in their order.

    Raises:
        TypeError: if a field holds something that its annotation does not allow or JSON cannot hold.
    """
    try:
        return dict(adapter(type(thing)).dump_python(thing, mode="json", warnings="error"))
    except PydanticSerializationError as error:
        first, *further = str(error).split("\n  ")  # one line, or a heading and a line for each problem
        reason = further[0] if further else first
        raise TypeError(f"{type(thing).__qualname__} cannot become JSON: {reason}") from None


def from_plain(kind: type[Thing], plain: object, label: str) -> Thing:
    """The dataclass, or other type, that ``to_plain`` wrote.

    Arguments:
        kind: the type, or a union of types of which the one whose fields fit is chosen.
        plain: as JSON gave it.
        label: what it is, for the error message.
    """
    try:
        return cast(Thing, adapter(kind).validate_python(plain))
    except ValidationError as error:
        raise UsageError(f"{label} is damaged: {problem(error)}") from None


def problem(error: ValidationError) -> str:
    """The first of the problems that pydantic found, in a line, and how many more there are."""
    first, *more = error.errors(include_url=False, include_context=False, include_input=False)
    place = ".".join(map(str, first["loc"]))
    text = f"{first['msg'][0].lower()}{first['msg'][1:]}"
    return (f"{place}: {text}" if place else text) + (f" (and {len(more)} more)" if more else "")


def adapter(kind: Any) -> TypeAdapter[Any]:
    """Pydantic's reader and writer of a type, made once."""
    return _make_adapter(kind)


@functools.cache
def _make_adapter(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)
