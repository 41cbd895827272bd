"""What would make a wide interval narrow: about how many more passes, or inputs, and for which precision.

For flips ``Until`` stops after about n draws, 1.27 times those of a sample whose size is known beforehand, z the
quantile of the level and h the half width that is asked for; where nothing has flipped, after 0.65 log(1 / alpha) / h:

    n = 1.27 z^2 p (1 - p) / h^2

The interval of n draws of a grid that all flipped, or none, is 1 - (alpha / 2)^(1 / n) wide. Elsewhere the half width
falls with the root of what is spent.
"""

import math

import numpy as np
from scipy.special import ndtri

from jostle.base import specs
from jostle.estimates.result import Comparison, Difference, Measurement
from jostle.sampling import PLANS, Plan, Until

_PRICE = 1.27  # of stopping at any time, measured in benchmarks/test_passes.py and tests/estimates/test_advice.py
_WIDE = 0.01, 0.1  # half widths of a grid that need no advice: for flips, and as a share of the value
_MOST = 1000.0  # times what was spent: more is no advice
_FLIPS = ("flip", "next-token-flip", "label-flip", "other-label-flip", "continuation-flip")


def advice(result: Measurement | Comparison) -> list[str]:
    """Sentences for a result whose interval is wider than was asked for, or wide; none if it is not."""
    if not isinstance(result, Comparison):
        return [text for text in [_about(result)] if text]
    wide = max(result.measurements.values(), key=lambda m: m.interval.half_width)
    found = [_about(wide, f" for {wide.name}")] + [_to_decide(d, wide) for d in result.differences]
    return [text for text in found if text]


def draws_for(value: float, half_width: float, level: float) -> float:
    """About how many draws ``Until`` takes to this half width, if flips have the probability ``value``.

    >>> round(draws_for(0.2, 0.01, 0.95), -2)
    7800.0
    """
    quantile = float(ndtri((1 + level) / 2))
    least = -0.65 * math.log1p(-level) / half_width
    return max(_PRICE * quantile**2 * value * (1 - value) / half_width**2, least)


def rounded(number: float) -> str:
    """A number of passes to two digits.

    >>> rounded(12_345.0), rounded(87.0)
    ('12,000', '87')
    """
    digits = max(math.floor(math.log10(max(number, 1.0))) - 1, 0)
    return f"{round(number / 10**digits) * 10**digits:,}"


def _about(m: Measurement, of: str = "") -> str:
    """How far a measurement is from the precision that was asked for, or from half of its own."""
    if not math.isfinite(m.interval.half_width):
        return ""
    plan = specs.build(PLANS, m.settings.plan, "plan", Plan)
    found = _until(m, plan) if isinstance(plan, Until) else _grid(m)
    if found is None:
        return ""
    wanted, more, unit = found
    spent = m.settings.num_inputs if unit == "inputs" else m.passes
    return (
        f"the interval is wide{of}: about {rounded(more)} more {unit} for ±{wanted:.2g}"
        if 0 < more <= _MOST * spent
        else ""
    )


def _until(m: Measurement, plan: Until) -> tuple[float, float, str] | None:
    """The half width that was asked for and not reached, what it takes, and in which unit."""
    if m.stopped not in ("max_passes", "interrupted", "all-inputs-visited") or plan.decided:
        return None
    wanted = plan.half_width if plan.half_width is not None else (plan.relative or 0.0) * abs(m.value)
    if wanted <= 0:
        return None
    done = m.trials if m.target == "dataset" else int(np.isfinite(m.per_input).sum())
    if _is_flip(m):
        needed = draws_for(m.value, wanted, m.settings.level)
    else:
        needed = done * (m.interval.half_width / wanted) ** 2
    if m.target == "population" and needed > m.settings.num_inputs:
        return wanted, needed - m.settings.num_inputs, "inputs"
    return wanted, needed - done, "passes"


def _grid(m: Measurement) -> tuple[float, float, str] | None:
    """Half of the half width of a wide grid, and what that takes."""
    half_width = m.interval.half_width
    if half_width <= max(_WIDE[0] if _is_flip(m) else 0.0, _WIDE[1] * abs(m.value)):
        return None
    times = 3.0  # four times as many for half of the width
    if _is_flip(m) and m.value in (0, 1) and half_width < 0.5:  # twice as many, but for a few draws more than that
        times = math.log1p(-2 * half_width) / math.log1p(-half_width) - 1
    if m.target == "population":
        return half_width / 2, float(times * m.settings.num_inputs), "inputs"
    return half_width / 2, float(times * m.passes), "passes"


def _to_decide(d: Difference, m: Measurement) -> str:
    """About how many more passes would tell two models apart, if they differ as much as it seems."""
    if d.direction or not d.value or m.stopped == "decided" or "smaller than" in d.interval.method:
        return ""
    more = m.passes * ((d.interval.half_width / d.value) ** 2 - 1)
    if not 0 < more <= _MOST * m.passes:
        return ""
    return (
        f"{d.first} and {d.second} are not told apart: if they differ by {abs(d.value):.2g}, as it seems, about "
        f"{rounded(more)} more passes of each would decide it (--until-decided)"
    )


def _is_flip(m: Measurement) -> bool:
    return m.settings.response.split(":")[0] in _FLIPS
