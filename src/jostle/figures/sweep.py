"""Sensitivity against the strength of the noise, a line for each model."""

from typing import TYPE_CHECKING

from matplotlib.figure import Figure

from jostle.figures.curves import Series, curves
from jostle.figures.profile import quantity
from jostle.intervals import TARGETS

if TYPE_CHECKING:
    from jostle.estimates import Sweep

_WIDE = 10.0  # from this ratio of strengths on, the horizontal axis is logarithmic


def sweep_figure(sweep: "Sweep") -> Figure:
    """Each model as a line with the band of its intervals, each interval at the sweep's level on its own."""
    series = []
    for name in sweep.names:
        measured = list(sweep[name].values())
        value, low, high = ([getattr(m, end) for m in measured] for end in ("value", "low", "high"))
        series.append(Series(name, sweep.strengths, value, low, high))
    positive = [strength for strength in sweep.strengths if strength > 0]
    s = sweep.settings
    return curves(
        series,
        x_label=f"{sweep.parameter} of {sweep.perturbation}",
        y_label=f"{quantity(measured[0])}, {s.level:.0%} intervals for {TARGETS[s.target]}",
        log_x=bool(positive) and max(positive) > _WIDE * min(positive),
    )
