"""Lines with bands: a quantity over training steps, noise levels or positions; and the figure of a sweep."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from jostle.base.errors import UsageError
from jostle.base.estimate import TARGETS
from jostle.figures.series import Series
from jostle.figures.style import WIDTH, Floats, Look, end_labels, label, looks, quantity, set_linear, set_log, styled

if TYPE_CHECKING:
    from jostle.estimates import Sweep


def curves(
    series: Sequence[Series],
    *,
    x_label: str,
    y_label: str,
    title: str | None = None,
    log_x: bool = False,
    log_y: bool = False,
) -> Figure:
    """Each series as a line with markers over its band, its name at its end.

    A logarithmic axis on which a value is 0 (no flip seen) gets a shaded strip below the smallest positive point,
    linear and ending at a tick 0, so that nothing is lost and nothing is drawn where it is not.

    Arguments:
        series: drawn in this order; colours, line styles and markers go by first appearance of a name.
        x_label, y_label: with units.
    """
    if not series:
        raise UsageError("curves needs at least one series, and series is empty")
    with styled():
        figure = Figure(figsize=(WIDTH, 4.0), layout="constrained")
        axes = figure.add_subplot()
        by_name = looks(one.name for one in series)
        for one in series:
            draw_series(axes, one, by_name[one.name])
        x, y, ends = (_joined(series, keys) for keys in (("x",), ("y",), ("low", "high")))
        (set_log if log_x else set_linear)(axes, "x", x, x)
        (set_log if log_y else set_linear)(axes, "y", y, np.concatenate([y, ends]))
        label(axes, x_label, y_label, title)
        if len(by_name) > 1 or series[0].name != title:
            end_labels(figure, axes, _ends(series), by_name)
    return figure


def draw_series(axes: Axes, series: Series, look: Look) -> None:
    """One line, its markers (about ten however many points there are), and its band or, for one point, its whisker."""
    x, y = np.asarray(series.x), np.asarray(series.y)
    if series.low is not None and series.high is not None:
        if len(x) == 1:
            axes.vlines(x, np.asarray(series.low), np.asarray(series.high), color=look.color, linewidth=1.2)
        else:
            band = axes.fill_between(
                x, np.asarray(series.low), np.asarray(series.high), color=look.color, alpha=0.16, linewidth=0
            )
            band.set_label(f"band of {series.name}")
    axes.plot(
        x, y, color=look.color, linestyle=look.line, linewidth=1.7, marker=look.marker, markersize=4.5,
        markeredgecolor="white", markeredgewidth=0.6, markevery=max(1, len(x) // 10), label=series.name,
    )  # fmt: skip


def _joined(series: Sequence[Series], keys: Sequence[str]) -> Floats:
    parts = [getattr(one, key) for one in series for key in keys if getattr(one, key) is not None]
    joined: Floats = np.concatenate([np.empty(0), *parts])
    return joined[np.isfinite(joined)]


def _ends(series: Sequence[Series]) -> dict[str, tuple[float, float]]:
    ends: dict[str, tuple[float, float]] = {}
    for one in series:
        x, y = np.asarray(one.x), np.asarray(one.y)
        known = np.flatnonzero(np.isfinite(x) & np.isfinite(y))
        if one.name not in ends or np.isnan(ends[one.name][1]):
            ends[one.name] = (float(x[known[-1]]), float(y[known[-1]])) if len(known) else (np.nan, np.nan)
    return ends


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
