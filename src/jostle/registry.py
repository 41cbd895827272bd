"""Named things: one registry for each kind (models, datasets, responses, ...).

To add a thing, write one file and put one decorator on it; the contract tests are parametrised over the registries
and cover it at once.
"""

import difflib
import importlib
from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

from jostle.errors import UsageError

Thing = TypeVar("Thing")


def unknown_name(kind: str, name: str, known: Iterable[str]) -> UsageError:
    """The error for a name that does not exist: near matches first, then everything there is."""
    known = sorted(known)
    near = difflib.get_close_matches(name.lower(), known, n=3, cutoff=0.5)
    hint = f"did you mean {' or '.join(near)}?" if near else f"known: {', '.join(known) or 'none'}"
    return UsageError(f"unknown {kind} {name!r}; {hint}")


class Registry(Generic[Thing]):
    """Names of one kind of thing and what they stand for.

    >>> colours = Registry[str]("colour")
    >>> colours.register("red")("#f00")
    '#f00'
    >>> colours.names(), colours.get("red")
    (['red'], '#f00')
    >>> colours.get("rad")
    Traceback (most recent call last):
    jostle.errors.UsageError: unknown colour 'rad'; did you mean red?

    Arguments:
        kind: what the error messages call one thing, e.g. ``model``.
        modules: modules that register things of this kind; imported when a name is first asked for, so that
            importing the registry stays cheap.
    """

    def __init__(self, kind: str, modules: Iterable[str] = ()) -> None:
        self.kind = kind
        self._modules = list(modules)
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
        self._load()
        if name not in self._things:
            raise unknown_name(self.kind, name, self._things)
        return self._things[name]

    def names(self) -> list[str]:
        """All names, sorted."""
        self._load()
        return sorted(self._things)

    def _load(self) -> None:
        while self._modules:
            importlib.import_module(self._modules[0])
            self._modules.pop(0)
