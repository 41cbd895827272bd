"""Lines with bands: a quantity over training steps, noise levels or positions; and figures of sweep and stability."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from jostle.base.errors import UsageError
from jostle.base.estimate import TARGETS
from jostle.figures.series import Series
from jostle.figures.style import (
    BACKGROUND,
    NARROW,
    WIDTH,
    Look,
    end_labels,
    finite,
    label,
    looks,
    marker_size,
    quantity,
    set_linear,
    set_log,
    styled,
    wrap,
)

if TYPE_CHECKING:
    from jostle.estimates import Depth, Stability, Sweep

_WIDE = 10.0  # the ratio of strengths above which the horizontal axis is logarithmic


def curves(
    series: Sequence[Series],
    *,
    x_label: str,
    y_label: str,
    title: str | None = None,
    log_x: bool = False,
    log_y: bool = False,
    narrow: bool = False,
) -> Figure:
    """Each series as a line with markers over its band, its name at its end; below the axes if it is for a phone.

    A logarithmic axis on which a value is 0 (no flip seen) has a shaded strip below the smallest positive point. The
    strip is linear and ends at a tick 0, so that every value has its right place.

    Arguments:
        series: drawn in this order; the name decides colour, line and marker, see ``style.looks``.
        x_label, y_label: with units.
        narrow: whether it is for a phone.
    """
    if not series:
        raise UsageError("curves needs at least one series, and series is empty")
    with styled():
        figure = Figure(figsize=(NARROW, 3.3) if narrow else (WIDTH, 4.0), layout="constrained")
        axes = figure.add_subplot()
        by_name = {one.name: BACKGROUND for one in series if one.is_background}
        by_name |= looks(one.name for one in series if not one.is_background)
        for one in sorted(series, key=lambda one: not one.is_background):
            draw_series(axes, one, by_name[one.name])
        x, y = finite(one.x for one in series), finite(one.y for one in series)
        ends = finite(end for one in series for end in (one.low, one.high))
        (set_log if log_x else set_linear)(axes, "x", x, x)
        (set_log if log_y else set_linear)(axes, "y", y, np.concatenate([y, ends]))
        x_label, y_label = (wrap(text, 44) if narrow else text for text in (x_label, y_label))
        label(axes, x_label, y_label, title)
        if narrow:
            _names_below(figure, axes, by_name)
        elif len(by_name) > 1 or series[0].name != title:
            end_labels(figure, axes, _ends(series), by_name)
    return figure


def _names_below(figure: Figure, axes: Axes, names: Iterable[str]) -> None:
    """The names of the lines below the axes, two beside each other."""
    handles, labels = axes.get_legend_handles_labels()
    shown = {text: handle for handle, text in zip(handles, labels, strict=True) if text in set(names)}
    figure.set_size_inches(NARROW, 3.3 + 0.2 * ((len(shown) + 1) // 2))
    figure.legend(
        shown.values(), [wrap(text, 20) for text in shown], loc="outside lower left", ncols=2, frameon=False,
        fontsize=9, handlelength=2.4, columnspacing=1.2,
    )  # fmt: skip


def draw_series(axes: Axes, series: Series, look: Look) -> None:
    """One line with about ten markers, however many points it has, over its band; a whisker for a single point."""
    x, y = np.asarray(series.x), np.asarray(series.y)
    if series.low is not None and series.high is not None:
        if len(x) == 1:
            axes.vlines(x, np.asarray(series.low), np.asarray(series.high), color=look.color, linewidth=1.2)
        else:
            band = axes.fill_between(
                x, np.asarray(series.low), np.asarray(series.high), color=look.color, alpha=0.16, linewidth=0
            )
            band.set_label(f"band of {series.name}")
    if series.is_background:
        axes.plot(x, y, color=look.color, linewidth=0.8, label=series.name)
        return
    axes.plot(
        x, y, color=look.color, linestyle=look.line, linewidth=1.7, marker=look.marker,
        markersize=marker_size(look, 4.8),
        markeredgecolor="white", markeredgewidth=0.6, markevery=max(1, len(x) // 10), label=series.name,
    )  # fmt: skip


def _ends(series: Sequence[Series]) -> dict[str, tuple[float, float]]:
    """The last point of each line, by name; NaN for a line without points."""
    ends: dict[str, tuple[float, float]] = {}
    for one in series:
        x, y = np.asarray(one.x), np.asarray(one.y)
        known = np.flatnonzero(np.isfinite(x) & np.isfinite(y))
        if one.name not in ends or np.isnan(ends[one.name][1]):
            ends[one.name] = (float(x[known[-1]]), float(y[known[-1]])) if len(known) else (np.nan, np.nan)
    return ends


def sweep_figure(sweep: "Sweep", *, narrow: bool = False) -> Figure:
    """Sensitivity against the strength of the noise: a line for each model, with the band of its intervals."""
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
        narrow=narrow,
    )


def stability_figure(stability: "Stability") -> Figure:
    """Noise stability against rho, a line with the band of its intervals."""
    value, low, high = ([getattr(point, end) for point in stability.points] for end in ("value", "low", "high"))
    s = stability.settings
    return curves(
        [Series(stability.name, stability.rhos, value, low, high)],
        x_label="rho, the correlation of the moved input with the input",
        y_label=f"{stability.response}, {s.level:.0%} intervals for {TARGETS[s.target]}",
    )


def depth_figure(found: "Depth") -> Figure:
    """The mean change against the depth at which noise is added, with intervals."""
    measured = found.measurements
    values = [[getattr(m, part) for m in measured] for part in ("value", "low", "high")]
    series = Series(found.name, list(range(len(measured))), *(np.asarray(part) for part in values))
    level = f"{measured[0].settings.level:.0%} interval"
    figure = curves([series], x_label=f"number of the site, {found.site}", y_label=f"{quantity(measured[0])}; {level}")
    figure.axes[0].set_xticks(range(len(measured)))
    return figure
