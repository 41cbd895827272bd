"""Named things: one registry for each kind (models, datasets, responses, ...).

A name comes from one of three places: a module of this repository that the registry lists as the name's home, another
installed package that publishes the name as an entry point, or a decorator in a program of your own. Looking a name up
imports the one module that defines it, and listing names imports nothing.
"""

import contextlib
import difflib
import importlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Generic, TypeVar

from jostle.base.errors import FailureError, JostleError, UsageError, shown

Thing = TypeVar("Thing")


def unknown_name(kind: str, name: object, known: Iterable[str]) -> UsageError:
    """The error for a name that does not exist: near matches first, then everything there is."""
    known = sorted(known)
    if not isinstance(name, str):
        return UsageError(f"{kind}={shown(name)} must be a name, a text; known: {', '.join(known) or 'none'}")
    near = difflib.get_close_matches(name.lower(), known, n=3, cutoff=0.5)
    near = [one if one.isprintable() else repr(one) for one in near]
    hint = f"did you mean {' or '.join(near)}?" if near else f"known: {', '.join(known) or 'none'}"
    return UsageError(f"unknown {kind} {name!r}; {hint}")


@contextlib.contextmanager
def making(kind: str, name: str, sizes: Mapping[str, Any]) -> Iterator[None]:
    """Inside, a thing of these sizes is made; what prevents it, such as too little memory, is an error of one line."""
    try:
        yield
    except (RuntimeError, MemoryError, OverflowError, TypeError) as error:
        if isinstance(error, JostleError):
            raise
        given = ", ".join(f"{size}={value}" for size, value in sizes.items())
        reason = " ".join((str(error).splitlines() or [type(error).__name__])[0].split())
        raise UsageError(f"{kind} {name!r} with {given} cannot be made: {reason}; give smaller sizes") from None


class Registry(Generic[Thing]):
    """The names of one kind of thing, and the things.

    >>> colours = Registry[str]("colour")
    >>> colours.register("red")("#f00")
    '#f00'
    >>> colours.names(), colours.get("red")
    (['red'], '#f00')
    >>> colours.get("rad")
    Traceback (most recent call last):
    jostle.base.errors.UsageError: unknown colour 'rad'; did you mean red?

    Arguments:
        kind: what the error messages call one thing, e.g. ``model``.
        homes: the module that registers each name. A module is imported when one of its names is first asked for.
        group: the group of entry points in which other packages publish things of this kind, e.g. ``jostle.models``.
            An entry point's name is the thing's name, and its object is the thing.
    """

    def __init__(self, kind: str, homes: Mapping[str, str] | None = None, group: str | None = None) -> None:
        self.kind, self.group = kind, group
        self.homes = dict(homes or {})
        self._things: dict[str, Thing] = {}

    def register(self, name: str) -> Callable[[Thing], Thing]:
        """A decorator that files its object under ``name``; a name already taken raises."""

        def file(thing: Thing) -> Thing:
            if name in self._things:
                raise UsageError(f"the {self.kind} name {name!r} is already taken by {self._things[name]!r}")
            self._things[name] = thing
            return thing

        return file

    def get(self, name: str) -> Thing:
        """The thing called ``name``; an unknown name answers with near matches."""
        if name not in self:  # what is no text, too
            raise unknown_name(self.kind, name, self.names())
        if name not in self._things and name in self.homes:
            importlib.import_module(self.homes[name])
        elif name not in self._things and name in self._published:
            self._load(self._published[name])
        if name not in self._things:
            raise unknown_name(self.kind, name, self.names())
        return self._things[name]

    def is_loaded(self, name: str) -> bool:
        """Whether ``get`` would find it without importing anything."""
        return name in self._things

    def home(self, name: str) -> str:
        """Where a name comes from, ``module`` or ``module:object``; an unknown name answers with near matches."""
        if name in self.homes:
            return self.homes[name]
        if name in self._published:
            return self._published[name].value
        if name not in self._things:
            raise unknown_name(self.kind, name, self.names())
        return str(getattr(self._things[name], "__module__", ""))

    def names(self) -> list[str]:
        """All names, sorted."""
        return sorted({*self._things, *self.homes, *self._published})

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and (name in self._things or name in self.homes or name in self._published)

    @cached_property
    def _published(self) -> dict[str, EntryPoint]:
        """The entry points of this group, by name; our own names come first."""
        if self.group is None:
            return {}
        return {point.name: point for point in entry_points(group=self.group) if point.name not in self.homes}

    def _load(self, point: EntryPoint) -> None:
        """Import an entry point's object and file it, unless importing its module has filed it already."""
        try:
            thing = point.load()
        except Exception as error:
            package = point.dist.name if point.dist else point.module
            raise FailureError(
                f"the {self.kind} {point.name!r} of the package {package} cannot be imported: {type(error).__name__}: "
                f"{error}"
            ) from error
        if point.name not in self._things:
            self._things[point.name] = thing
