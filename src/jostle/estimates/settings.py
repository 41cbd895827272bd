"""The choices that define a measurement, as text and numbers."""

from dataclasses import asdict, dataclass
from typing import Any, get_args

import numpy as np

from jostle.errors import UsageError
from jostle.intervals import Target
from jostle.sampling import Plan, Until

_LARGEST_LEVEL = 0.999  # Gaffke's bound is taken over 10,000 resamples


@dataclass(frozen=True)
class Settings:
    """What was measured, on what, how.

    Arguments:
        tokens, perturbation, response, plan: specs.
        target: which interval ``low`` and ``high`` are, and which one a stopping rule looked at.
        level: coverage of every interval.
        seed: of order, choice and noise.
        num_inputs, num_tokens: N and T; T counts masked positions too.
        average: ``macro``, inputs weigh the same whatever their number of tokens, or ``micro``, tokens weigh the same.
    """

    tokens: str
    perturbation: str
    response: str
    plan: str
    target: Target
    level: float
    seed: int
    num_inputs: int
    num_tokens: int
    average: str = "macro"

    def to_dict(self) -> dict[str, Any]:
        """A plain dictionary, for JSON; the usual average is not named."""
        return {key: value for key, value in asdict(self).items() if (key, value) != ("average", "macro")}

    def lines(self) -> list[str]:
        """The choices as two lines of text."""
        return [
            f"{self.num_inputs:,} inputs of {self.num_tokens:,} tokens; tokens={self.tokens} "
            f"perturbation={self.perturbation}",
            f"plan={self.plan} seed={self.seed}" + (" average=micro" if self.average == "micro" else ""),
        ]


def checked_target(target: str) -> Target:
    """``target`` if it is one."""
    if target not in get_args(Target):
        raise UsageError(f"target={target!r} must be dataset (the inputs given) or population (where they came from)")
    return target  # type: ignore[return-value]


def checked_average(average: str, plan: Plan, target: Target) -> str:
    """``average`` if it is one, and if the plan has an interval for it."""
    if average not in ("macro", "micro"):
        raise UsageError(f"average={average!r} must be macro (inputs weigh the same) or micro (tokens weigh the same)")
    if average == "micro" and target == "population" and isinstance(plan, Until):
        raise UsageError("average='micro' and target='population' need plan=Grid(...): Until has no interval for them")
    return average


def checked_level(level: float) -> float:
    """``level`` if it is a coverage."""
    if not isinstance(level, int | float) or not 0 < level <= _LARGEST_LEVEL:
        raise UsageError(f"level={level!r} must lie between 0 and {_LARGEST_LEVEL}, for example 0.95")
    return float(level)


def checked_whole(name: str, value: int, least: int | None = None) -> int:
    """``value`` if it is a whole number, and not smaller than ``least``."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or (least is not None and value < least):
        wanted = "a whole number" if least is None else f"a whole number, at least {least}"
        raise UsageError(f"{name}={value!r} must be {wanted}")
    return int(value)
