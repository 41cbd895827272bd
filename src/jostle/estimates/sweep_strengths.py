"""What is swept: the strengths, and the kind of jostle that has one."""

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from jostle import specs
from jostle.errors import UsageError
from jostle.perturbations import PERTURBATIONS, Perturbation
from jostle.perturbations.perturbation import must_be_at_least_zero
from jostle.registry import unknown_name

_EXAMPLES = "'gaussian-noise' (its std), 'sphere' (its radius), or a function from a strength to a perturbation"


@dataclass(frozen=True)
class Family:
    """A kind of jostle whose one strength is left open; at strength 0 it moves nothing.

    >>> family_of("sphere:relative=true").at(0.5)
    Sphere(radius=0.5, relative=True)

    Arguments:
        parameter: what the strength is called: ``std``, ``radius``.
        spec: the kind, without its strength.
        at: the jostle of a strength.
    """

    parameter: str
    spec: str
    at: Callable[[float], Perturbation]


def checked_strengths(stds: Any) -> tuple[float, ...]:
    """The strengths from weak to strong, each once."""
    values = stds.tolist() if hasattr(stds, "tolist") else stds
    if isinstance(values, str) or not isinstance(values, Sequence | set | frozenset):
        raise UsageError(f"stds={stds!r} must be a list of strengths, for example stds=[0.5, 1, 2, 5]")
    if not values:
        raise UsageError("stds is empty: give the strengths of the noise, for example stds=[0.5, 1, 2, 5]")
    for value in values:
        must_be_at_least_zero("stds", value.item() if isinstance(value, np.generic) else value, "sweep")
    return tuple(sorted({float(value) for value in values}))


def family_of(perturbation: Any) -> Family:
    """The kind of jostle that ``perturbation`` names: a spec without its strength, or a function of the strength."""
    if isinstance(perturbation, Perturbation):
        kind = perturbation.describe()
        raise UsageError(f"perturbation={kind} has its strength already, which stds are to say: give {_EXAMPLES}")
    if not isinstance(perturbation, str) and not callable(perturbation):
        raise UsageError(f"perturbation={perturbation!r} cannot be swept: give {_EXAMPLES}")
    make, parameter = _read(perturbation) if isinstance(perturbation, str) else (perturbation, _first(perturbation))
    try:
        still = make(0.0)
    except (UsageError, TypeError):
        still = None
    if not isinstance(still, Perturbation) or not still.moves_nothing:
        raise UsageError(
            f"perturbation={perturbation!r} has no strength that is 0 where nothing moves: give {_EXAMPLES}"
        )
    kind, _, rest = still.describe().partition(":")
    fixed = [part for part in rest.split(",") if part and part != f"{parameter}=0"]
    return Family(parameter, ":".join([kind, *([",".join(fixed)] if fixed else [])]), make)


def _read(spec: str) -> tuple[Callable[..., Any], str]:
    name, _, rest = spec.partition(":")
    made = PERTURBATIONS.get(name)
    positional, named = specs.arguments(rest)
    allowed = list(inspect.signature(made).parameters)
    for key in named:
        if key not in allowed:
            raise unknown_name(f"option of {name}", key, allowed)
    parameter = _first(made)
    if positional or parameter in named:
        raise UsageError(f"perturbation={spec!r} has its {parameter} already, which stds are to say: give {name!r}")
    return partial(made, **named), parameter


def _first(make: Callable[..., Any]) -> str:
    """The name of the first argument; for a function that does not tell, ``strength``."""
    try:
        return next(iter(inspect.signature(make).parameters), "strength")
    except (TypeError, ValueError):
        return "strength"
