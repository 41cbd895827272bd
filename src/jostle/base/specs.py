"""Things as text: ``name``, ``name:value`` or ``name:key=value,key=value``.

The command line and the keyword arguments of ``measure`` take the same specs: ``patches:4``, ``gaussian-noise:std=2``.
"""

import inspect
from collections.abc import Iterable, Mapping, Sequence
from types import UnionType
from typing import Any, TypeVar

from jostle.base.errors import UsageError, shown
from jostle.base.registry import Registry, unknown_name

Thing = TypeVar("Thing")


def build(registry: Registry[type[Thing]], spec: str | Thing, argument: str, kind: type | UnionType = object) -> Thing:
    """The thing that a spec describes; anything that is not text is returned as it is.

    Arguments:
        registry: where names are looked up.
        spec: e.g. ``patches:4``, or an object.
        argument: the argument that was given, for error messages.
        kind: what an object must be.
    """
    if isinstance(spec, str):
        return make(registry, *parse(spec), given=f"{argument}={spec!r}")
    if inspect.isclass(spec):
        raise UsageError(f"{argument}={spec.__name__} is a class; give an object, for example {spec.__name__}(...)")
    if not isinstance(spec, kind):
        known = ", ".join(registry.names())
        if inspect.isroutine(spec):
            raise UsageError(
                f"{argument}={spec.__name__} is a function and not a {registry.kind}: write a small class, as "
                f"docs/add-your-own.md shows, or give one of jostle's objects or names: {known}"
            )
        raise UsageError(
            f"{argument}={shown(spec)} is not a {registry.kind}; give one of jostle's objects or names: {known}"
        )
    return spec


def parse(spec: str) -> tuple[str, list[Any], dict[str, Any]]:
    """The name, the positional and the named values of a spec.

    >>> parse("sphere:2,relative=true")
    ('sphere', [2], {'relative': True})
    """
    name, _, rest = spec.partition(":")
    return name, *arguments(rest)


def make(
    registry: Registry[type[Thing]], name: str, positional: Sequence[Any], named: Mapping[str, Any], *, given: str
) -> Thing:
    """The thing of this name, made from these values.

    Arguments:
        registry: where the name is looked up.
        name, positional, named: of ``parse``.
        given: what was written, for error messages.
    """
    made = registry.get(name)
    signature = inspect.signature(made)
    allowed = list(signature.parameters)
    for key in named:
        if key not in allowed:
            raise unknown_name(f"option of {name}", key, allowed)
    needed = [key for key, one in signature.parameters.items() if one.default is one.empty]
    missing = [key for key in needed[len(positional) :] if key not in named]
    if missing:
        raise UsageError(f"{given}: {name} needs {missing[0]}=; options: {', '.join(allowed)}")
    try:  # only the call itself: a TypeError that the thing raises is not the user's mistake
        signature.bind(*positional, **named)
    except TypeError as error:
        raise UsageError(f"{given}: {error}; options: {', '.join(allowed) or 'none'}") from None
    return made(*positional, **named)


def arguments(text: str) -> tuple[list[Any], dict[str, Any]]:
    """Positional and named values of ``a,key=b``.

    >>> arguments("4,relative=true,vocabulary=-1/1")
    ([4], {'relative': True, 'vocabulary': [-1, 1]})
    """
    positional: list[Any] = []
    named: dict[str, Any] = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        key, equals, value = part.partition("=")
        if equals:
            name = key.strip().replace("-", "_")
            if name in named:
                raise UsageError(f"{text!r} gives {name}= twice; give it once")
            named[name] = literal(value.strip())
        else:
            positional.append(literal(key))
    return positional, named


def written(value: float) -> str:
    """A number as the shortest text that ``literal`` reads back.

    >>> written(2.0), written(0.1), written(1 / 3)
    ('2', '0.1', '0.3333333333333333')
    """
    short = f"{value:g}"
    return short if float(short) == value else repr(value)


def written_list(values: Iterable[float]) -> str:
    """Numbers with slashes between them, as ``literal`` reads them back; one alone keeps a slash."""
    parts = [written(value) for value in values]
    return "/".join(parts) if len(parts) > 1 else f"{parts[0]}/"


def literal(text: str) -> Any:
    """A number, a truth value, a list written with slashes, or the text itself."""
    if "/" in text and not text.startswith(("/", "./", "../")):
        parts = [literal(part) for part in text.split("/") if part]
        if all(isinstance(part, int | float) for part in parts):
            return parts
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
