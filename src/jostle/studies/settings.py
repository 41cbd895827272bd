"""The choices of a study: a frozen dataclass for each, three of them filled in, and how one field is replaced."""

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from jostle.base.errors import UsageError
from jostle.base.registry import unknown_name
from jostle.base.specs import literal

SCALES = ("smoke", "small", "paper")


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What every study can choose; a study adds fields of its own.

    The values must be plain: numbers, text, None, and tuples or dicts of them, so that a file holds all of it.

    Arguments:
        seeds: seeds by default. More of them add cells and change no other, so they are no part of what must be
            the same for a run to go on.
    """

    seeds: int = 3


AnySettings = TypeVar("AnySettings", bound=Settings)


def plain(settings: Settings) -> dict[str, Any]:
    """The settings as a file holds them, without the number of seeds.

    >>> plain(Settings(seeds=5))
    {}
    """
    values = dataclasses.asdict(settings)
    values.pop("seeds")
    try:
        return dict(json.loads(json.dumps(values)))
    except (TypeError, ValueError) as error:
        raise UsageError(f"settings of {type(settings).__qualname__} cannot become JSON ({error})") from None


def replaced(settings: AnySettings, changes: Mapping[str, Any]) -> AnySettings:
    """``settings`` with some fields replaced by values of the same type, given as such or as text.

    >>> replaced(Settings(), {"sedes": 5})
    Traceback (most recent call last):
    jostle.base.errors.UsageError: unknown setting 'sedes'; did you mean seeds?

    Arguments:
        settings: what to start from.
        changes: new values by field; text is read like the value of a spec, ``4``, ``0.5``, ``true``, ``1/2/3``;
            several texts have commas between them, ``vit,mlp``.
    """
    fields = {field.name: getattr(settings, field.name) for field in dataclasses.fields(settings)}
    typed = {}
    for name, value in changes.items():
        if name not in fields:
            raise unknown_name("setting", name, fields)
        if name == "seeds":
            raise UsageError(
                f"setting seeds={value} is given by the argument seeds (--seeds {value}), not as a setting"
            )
        typed[name] = _like(fields[name], value, name)
    return dataclasses.replace(settings, **typed)


def differences(standard: Settings, settings: Settings) -> dict[str, Any]:
    """Fields in which ``settings`` are not ``standard``, as a file holds them; seeds do not count."""
    before, after = plain(standard), plain(settings)
    return {name: after[name] for name in after if after[name] != before[name]}


def _like(old: Any, value: Any, name: str) -> Any:
    """``value`` as a value of the type of ``old``."""
    if isinstance(old, tuple | list):
        parts = _parts(old, value)
        return type(old)(_like(old[0], part, name) if old else part for part in parts)
    new = literal(value) if isinstance(value, str) and not isinstance(old, str) else value
    if isinstance(old, float) and isinstance(new, int) and not isinstance(new, bool):
        return float(new)
    if old is not None and type(new) is not type(old):
        raise UsageError(
            f"setting {name}={value!r} must be of the kind {type(old).__name__}, as in the study's own {name}={old!r}"
        )
    return new


def _parts(old: tuple[Any, ...] | list[Any], value: Any) -> list[Any]:
    if isinstance(value, str):
        read = value.split(",") if old and isinstance(old[0], str) else literal(value)
        return read if isinstance(read, list) else [read]
    return list(value) if isinstance(value, tuple | list) else [value]
