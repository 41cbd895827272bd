"""The settings of a study: a frozen dataclass, filled in for three scales, and how a field is replaced by hand."""

import dataclasses
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar, get_args, get_origin, get_type_hints

from pydantic import ValidationError
from pydantic_core import to_jsonable_python

from jostle.base.checks import wrong
from jostle.base.errors import UsageError
from jostle.base.registry import unknown_name
from jostle.base.specs import literal
from jostle.base.store import Record
from jostle.studies.schema import adapter, to_plain

SCALES = ("smoke", "small", "paper")


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What every study can choose; a study adds fields of its own.

    The values must be plain: numbers, text, None, and tuples, dicts or dataclasses of them, so that a file holds all
    of it.

    Arguments:
        seeds: the number of seeds. More seeds add cells and change no other cell. So a run can be continued with
            another number of seeds, while all other settings must stay the same.
    """

    seeds: int = 3


AnySettings = TypeVar("AnySettings", bound=Settings)


def plain_settings(settings: Settings) -> Record:
    """The settings as a file holds them, without the number of seeds.

    >>> plain_settings(Settings(seeds=5))
    {}
    """
    try:
        values = to_plain(settings)
    except TypeError as error:
        raise UsageError(f"settings: {error}") from None
    values.pop("seeds")
    return values


def modified_settings(standard: Settings, settings: Settings) -> Record:
    """The fields in which ``settings`` differ from ``standard``, as a file holds them; seeds do not count."""
    before, after = plain_settings(standard), plain_settings(settings)
    return {name: after[name] for name in after if after[name] != before[name]}


def override_settings(settings: AnySettings, changes: Mapping[str, Any]) -> AnySettings:
    """``settings`` with some fields replaced by values of the field's type, given as such or as text.

    >>> override_settings(Settings(), {"sedes": 5})
    Traceback (most recent call last):
    jostle.base.errors.UsageError: unknown setting 'sedes'; did you mean seeds?

    Arguments:
        settings: what to start from.
        changes: new values by field. Text is read like the value of a spec: ``4``, ``0.5``, ``true``, ``1/2/3``.
            Several texts have commas between them: ``vit,mlp``.
    """
    types = get_type_hints(type(settings), include_extras=True)
    read = {}
    for name, value in changes.items():
        if name not in types:
            raise unknown_name("setting", name, [field.name for field in dataclasses.fields(settings)])
        if name == "seeds":
            raise UsageError(
                f"setting seeds={value} is given by the argument seeds (--seeds {value}), not as a setting"
            )
        read[name] = _read(types[name], value, name, getattr(settings, name))
    return dataclasses.replace(settings, **read)


def _read(kind: Any, value: Any, name: str, old: Any) -> Any:
    """``value`` as a value of the type ``kind``; ``old`` is the example in the error message."""
    given = _parse(kind, value) if isinstance(value, str) else to_jsonable_python(value)
    if get_origin(kind) is tuple and not isinstance(given, list):
        given = [given]
    try:
        # Strictly and from JSON: only so a list can be a tuple while 1 is not true and 2.0 is no whole number. Structs
        # come from programs and files, where types are what they are.
        return adapter(kind).validate_json(json.dumps(given), strict=not isinstance(given, dict))
    except ValidationError:
        raise wrong(f"setting {name}", value, f"{_type_name(kind)}, as in the study's own {name}={old!r}") from None


def _type_name(kind: Any) -> str:
    """A type as people write it.

    >>> _type_name(int), _type_name(tuple[float, ...]), _type_name(Settings | None)
    ('int', 'tuple[float, ...]', 'Settings | None')
    """
    bare = get_args(kind)[0] if get_origin(kind) is Annotated else kind
    text = bare.__name__ if isinstance(bare, type) and not get_args(bare) else str(bare)
    return re.sub(r"(\w+\.)+(?=\w)", "", text)


def _parse(kind: Any, text: str) -> Any:
    """What ``text`` stands for where a value of the type ``kind`` is wanted."""
    if kind is str:
        return text
    if get_origin(kind) is tuple and get_args(kind)[0] is str:
        return text.split(",")
    return literal(text)
