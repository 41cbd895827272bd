"""``py:MODULE_OR_FILE:FACTORY[:key=value,...]``: the model that a function of your own returns."""

import importlib
import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from torch import nn

from jostle.base import specs
from jostle.base.errors import FailureError, JostleError, UsageError
from jostle.integrations import register


@register("py")
def from_python(rest: str, seed: int) -> Callable[..., Any]:  # noqa: ARG001 - your function decides its own weights
    """The model a factory returns: an ``nn.Module``, put in eval mode, or any other callable."""
    model = call_factory(f"py:{rest}")
    if not callable(model):
        raise UsageError(f"model py:{rest}: the factory returned {type(model).__name__}, which cannot be called")
    return model.eval() if isinstance(model, nn.Module) else model


def call_factory(spec: str) -> Any:
    """The return value of the factory of a ``py:`` spec; an object that is no function is returned as it is."""
    place, _, call = spec.removeprefix("py:").partition(":")
    name, _, options = call.partition(":")
    if not place or not name:
        raise UsageError(f"{spec!r} must read py:MODULE_OR_FILE:FACTORY, for example py:my_module:make_model")
    module = _import_module(place)
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
    except Exception as error:
        reason = " ".join(str(error).split())
        raise FailureError(f"{spec!r}: {name} raised {type(error).__name__}: {reason}") from error


def _import_module(place: str) -> ModuleType:
    if place.endswith(".py"):
        path = Path(place)
        if not path.is_file():
            raise UsageError(f"Python file {place} does not exist")
        description = importlib.util.spec_from_file_location(path.stem, path)
        assert description is not None
        assert description.loader is not None
        module = importlib.util.module_from_spec(description)
        sys.modules[path.stem] = module
        description.loader.exec_module(module)
        return module
    sys.path.insert(0, "")  # a module in the current folder, as with python -m
    try:
        return importlib.import_module(place)
    except ModuleNotFoundError as error:
        raise UsageError(f"Python module {place!r} cannot be imported: {error}") from None
    finally:
        sys.path.remove("")
