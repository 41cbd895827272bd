"""What the landscape checks about its arguments: numbers, levels, and models whose weights can be moved."""

import operator
from collections.abc import Collection, Sequence
from fnmatch import fnmatchcase
from typing import Any

import numpy as np
from torch import Tensor, nn

from jostle.errors import UsageError
from jostle.registry import unknown_name

POSITIONS = ("*position*", "*pos_emb*")
"""Patterns of the usual names of positional encodings, which paper 2's code neither moves nor counts.

Other parts that are named after positions, such as ``position_wise_feed_forward``, match too: a result says what was
skipped, and ``skip`` takes other patterns.
"""

_LARGEST_LEVEL = 0.999  # Gaffke's bound is taken over 10,000 resamples


def whole(name: str, value: Any, least: int | None = None, hint: str = "") -> int:
    """``value`` as a whole number, not smaller than ``least``; True and 2.0 are none.

    >>> whole("draws", 1, least=2)
    Traceback (most recent call last):
    jostle.errors.UsageError: draws=1 must be a whole number, at least 2
    """
    wanted = "a whole number" if least is None else f"a whole number, at least {least}"
    try:
        number = None if isinstance(value, bool) else operator.index(value)
    except TypeError:
        number = None
    if number is None or (least is not None and number < least):
        raise UsageError(f"{name}={value!r} must be {wanted}{hint}")
    return number


def not_negative(name: str, value: Any) -> float:
    """``value`` as a finite number, 0 or larger."""
    is_number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    if not is_number or not np.isfinite(value) or value < 0:
        raise UsageError(f"{name}={value!r} must be a finite number, 0 or larger")
    return float(value)


def coverage(level: Any) -> float:
    """``level`` if it is a coverage."""
    if isinstance(level, bool) or not isinstance(level, int | float) or not 0 < level <= _LARGEST_LEVEL:
        raise UsageError(f"level={level!r} must lie between 0 and {_LARGEST_LEVEL}, for example 0.95")
    return float(level)


def choice(name: str, value: Any, known: Collection[str]) -> str:
    """``value`` if it is one of the known names; others answer with near matches."""
    if value not in known:
        raise unknown_name(name, str(value), known)
    return str(value)


def chosen_parameters(model: Any, skip: Sequence[str] = ()) -> dict[str, Tensor]:
    """The floating-point parameters by name, without those whose names match a pattern of ``skip``.

    A tensor that occurs under several names (tied weights) is one parameter, under its first name.

    >>> list(chosen_parameters(nn.Linear(2, 1), skip=["b*"]))
    ['weight']
    """
    if not isinstance(model, nn.Module):
        raise UsageError(f"model is a {type(model).__name__}; expected a torch.nn.Module, whose parameters are moved")
    skip = _patterns(skip)
    held = {name: tensor.detach() for name, tensor in model.named_parameters() if tensor.is_floating_point()}
    if not held:
        raise UsageError("model has no floating-point parameters; there is nothing to move")
    moved = {name: tensor for name, tensor in held.items() if not any(fnmatchcase(name, each) for each in skip)}
    if not moved:
        raise UsageError(f"skip={list(skip)!r} matches every parameter of the model; leave some to be moved")
    return moved


def _patterns(skip: Any) -> list[str]:
    try:
        patterns = [skip] if isinstance(skip, str) else list(skip)
    except TypeError:
        patterns = [None]
    if isinstance(skip, str) or not all(isinstance(pattern, str) for pattern in patterns):
        example = [skip] if isinstance(skip, str) else ["*position*"]
        raise UsageError(f"skip={skip!r} must be a list of patterns of parameter names, for example {example!r}")
    return patterns
