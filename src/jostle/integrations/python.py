"""``py:MODULE_OR_FILE:FACTORY[:key=value,...]``: the model that a function of your own returns."""

import importlib
import importlib.util
import inspect
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from torch import nn

from jostle.base import specs
from jostle.base.errors import FailureError, JostleError, UsageError
from jostle.base.origin import described
from jostle.integrations import register
from jostle.integrations.callables import callable_of


@register("py")
def from_python(rest: str, seed: int) -> Callable[..., Any]:  # noqa: ARG001 - your function decides its own weights
    """The model a factory returns: an ``nn.Module``, put in eval mode, or anything else that ``measure`` takes."""
    model = call_factory(f"py:{rest}")
    if isinstance(model, nn.Module):
        try:
            return model.eval()
        except Exception as error:  # a method of its own
            raise FailureError(f"model py:{rest}: its method eval raised {described(error, None)}") from error
    if inspect.isclass(model):
        raise UsageError(f"model py:{rest}: the factory returned the class {model.__name__}; return a model made of it")
    try:
        return model if callable(model) else callable_of(model)
    except UsageError:
        kind = type(model).__name__
        raise UsageError(f"model py:{rest}: the factory returned {kind}, which cannot be called") from None


def call_factory(spec: str) -> Any:
    """The return value of the factory of a ``py:`` spec; an object that is no function is returned as it is."""
    place, name, options = _parts(spec)
    module = _import_module(place, spec)
    if not hasattr(module, name):
        raise UsageError(f"{spec!r}: {place} has no {name!r}")
    factory = getattr(module, name)
    positional, named = specs.arguments(options)
    if not callable(factory) or isinstance(factory, nn.Module):
        return factory
    try:
        return factory(*positional, **named)
    except (JostleError, KeyboardInterrupt):
        raise
    except (Exception, SystemExit) as error:
        own = place if place.endswith(".py") else None
        raise FailureError(f"{spec!r}: {name} raised {described(error, own)}") from error


def _parts(spec: str) -> tuple[str, str, str]:
    """Module or file, factory and its arguments; a colon in the name of a folder does not end the name of a file.

    >>> _parts("py:runs:3/net.py:make:width=8")
    ('runs:3/net.py', 'make', 'width=8')
    """
    rest = spec.removeprefix("py:")
    file, ending, after = rest.partition(".py:")
    place, call = (file + ".py", after) if ending else rest.partition(":")[::2]
    name, _, options = call.partition(":")
    if not place or not name:
        raise UsageError(f"{spec!r} must read py:MODULE_OR_FILE:FACTORY, for example py:my_module:make_model")
    return place, name, options


def _import_module(place: str, spec: str) -> ModuleType:
    """Import a file or a module.

    What lies beside the file, or in the current folder, can be imported too, also later from inside a function: the
    folder stays on the path, as with ``python FILE`` and ``python -m MODULE``.
    """
    path = Path(place)
    is_file = place.endswith(".py")
    if is_file and not path.is_file():
        raise UsageError(f"Python file {place} does not exist")
    folder = str(path.resolve().parent if is_file else Path.cwd())
    if folder not in sys.path:
        sys.path.insert(0, folder)
    try:
        return _execute(path) if is_file else importlib.import_module(place)
    except (JostleError, KeyboardInterrupt):
        raise
    except ModuleNotFoundError as error:
        if not is_file and error.name is not None and f"{place}.".startswith(f"{error.name}."):
            raise UsageError(f"Python module {place!r} cannot be imported: {error}") from None
        raise FailureError(f"{spec!r} cannot be imported: {described(error, place if is_file else None)}") from error
    except (Exception, SystemExit) as error:
        raise FailureError(f"{spec!r} cannot be imported: {described(error, place if is_file else None)}") from error


def _execute(path: Path) -> ModuleType:
    description = importlib.util.spec_from_file_location(path.stem, path)
    assert description is not None
    assert description.loader is not None
    module = importlib.util.module_from_spec(description)
    before = sys.modules.get(path.stem)
    sys.modules[path.stem] = module  # pickle and dataclasses look a module up by its name
    try:
        description.loader.exec_module(module)
    except BaseException:
        if before is None:
            del sys.modules[path.stem]
        else:
            sys.modules[path.stem] = before
        raise
    return module
