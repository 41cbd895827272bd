"""Single points: ``dots`` by category, with whiskers, and ``scatter``, one quantity against another."""

from collections.abc import Collection, Mapping, Sequence
from itertools import cycle

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from numpy.typing import ArrayLike

from jostle.base.errors import UsageError
from jostle.figures.series import Series
from jostle.figures.style import (
    GRID,
    INK,
    LINES,
    MUTED,
    WIDTH,
    Floats,
    Look,
    PlainNumbers,
    finite,
    label,
    looks,
    marker_size,
    set_linear,
    set_log,
    styled,
    wrap,
)

_ROW, _STEP, _DENSE_STEP = 0.2, 0.16, 0.055  # inches of a category, and of each series in it
_LETTERS = 90  # of a row of the legend


def dots(
    categories: Mapping[str, Sequence[Series]], *, x_label: str, is_dense: bool = False, log_x: bool = False
) -> Figure:
    """A row for each category; in it a point with its whisker for each series, named by colour and marker.

    Where all points belong to one series, they have the looks of their categories, which are then the networks.

    Arguments:
        categories: from top to bottom; each series has one point, whose value is its ``y``.
        x_label: with units.
        is_dense: for many categories: the points of a category are close to each other, and the axis need not start
            at 0.
    """
    if not categories or not all(categories.values()):
        raise UsageError("dots needs at least one category with at least one series")
    names = dict.fromkeys(one.name for series in categories.values() for one in series)
    by_name, by_category = looks(names), looks(categories) if len(names) == 1 else {}
    heights = [_ROW + (_DENSE_STEP if is_dense else _STEP) * len(series) for series in categories.values()]
    tops = np.cumsum([0.0, *heights])
    with styled():
        figure = Figure(figsize=(WIDTH, tops[-1] + 1.0), layout="constrained")
        axes = figure.add_subplot()
        for place, (category, series) in enumerate(categories.items()):
            if place % 2:
                axes.axhspan(tops[place], tops[place + 1], color=GRID, alpha=0.45, linewidth=0, zorder=0)
            for y, one in zip(_heights(tops[place], len(series), heights[place]), series, strict=True):
                _draw_point(axes, one, y, by_category.get(category, by_name[one.name]))
        middles = (tops[:-1] + tops[1:]) / 2
        axes.set_yticks(middles, [wrap(name, 26) for name in categories], linespacing=1.15)
        axes.set_ylim(tops[-1], 0)
        _dress(axes, categories, is_dense, log_x)
        label(axes, x_label, "")
        if list(names) != [x_label]:  # a legend of one name would repeat the axis
            handles = [_handle(name, look, is_plain=bool(by_category)) for name, look in by_name.items()]
            figure.legend(handles=handles, loc="outside upper center", ncols=_columns(by_name), frameon=False)
    return figure


def _heights(top: float, count: int, height: float) -> Floats:
    """Where the points of a category are drawn: evenly spaced around its middle."""
    step = (height - _ROW) / count
    return np.asarray(top + _ROW / 2 + step * (np.arange(count) + 0.5), dtype=np.float64)


def _draw_point(axes: Axes, series: Series, y: float, look: Look) -> None:
    if series.low is not None and series.high is not None:
        axes.hlines([y], series.low, series.high, color=look.color, linewidth=1.6)
    size = marker_size(look, 6.0)
    axes.plot(series.y, [y], color=look.color, marker=look.marker, markersize=size, linestyle="none")


def _handle(name: str, look: Look, *, is_plain: bool) -> Line2D:
    """The entry of a series in the legend; a plain circle where colours stand for categories."""
    color, marker = (MUTED, "o") if is_plain else (look.color, look.marker)
    return Line2D([], [], color=color, marker=marker, markersize=6, linestyle="none", label=name)


def _dress(axes: Axes, categories: Mapping[str, Sequence[Series]], is_dense: bool, log_x: bool) -> None:
    """Axes of ``dots``: vertical grid lines only, names of categories on the left."""
    values = finite(one.y for series in categories.values() for one in series)
    ends = finite(part for series in categories.values() for one in series for part in (one.low, one.high))
    if log_x:
        set_log(axes, "x", values, np.concatenate([values, ends]))
    else:
        axes.xaxis.set_major_formatter(PlainNumbers())
        if not is_dense:
            axes.set_xlim(left=min(0.0, axes.get_xlim()[0]))
    axes.grid(visible=False, axis="y")
    axes.grid(color=GRID, axis="x")
    axes.tick_params(axis="y", length=0, labelcolor=INK)
    axes.spines["left"].set_visible(False)


def _columns(names: Collection[str]) -> int:
    """The number of columns of a legend: as many as fit side by side.

    >>> _columns(["vit", "cnn"]), _columns(["a name of some thirty letters"] * 4)
    (2, 2)
    """
    widest = max(map(len, names)) + 6  # the marker and the space around it
    return max(1, min(len(names), 4, _LETTERS // widest))


def scatter(
    groups: Mapping[str, tuple[ArrayLike, ArrayLike]],
    *,
    x_label: str,
    y_label: str,
    title: str | None = None,
    log_x: bool = False,
    log_y: bool = False,
    lines: Mapping[str, tuple[ArrayLike, ArrayLike]] | None = None,
) -> Figure:
    """Each group as points of one colour and marker, named in a legend beside the plot.

    Arguments:
        groups: (x, y) by name; the name decides colour and marker, see ``style.looks``.
        x_label, y_label: with units.
        lines: (x, y) of dashed lines by name, e.g. a bound; all in one colour.
    """
    arrays = {name: tuple(np.asarray(part, dtype=np.float64) for part in pair) for name, pair in groups.items()}
    for name, (x, y) in arrays.items():
        if x.ndim != 1 or x.shape != y.shape:
            raise UsageError(f"points {name!r} must have one x and one y each, not {x.shape} and {y.shape}")
    if not any(len(x) for x, _ in arrays.values()):
        raise UsageError("scatter needs at least one point")
    with styled():
        figure = Figure(figsize=(WIDTH, 4.4), layout="constrained")
        axes = figure.add_subplot()
        by_name = looks(arrays)
        xs, ys = (np.concatenate([pair[i] for pair in arrays.values()]) for i in (0, 1))
        for (name, line), style in zip((lines or {}).items(), cycle(LINES[1:]), strict=False):
            axes.plot(*map(np.asarray, line), color=INK, linewidth=1.1, linestyle=style, label=name, zorder=1)
        for name, (x, y) in arrays.items():
            look = by_name[name]
            face, edge = ("none", look.color) if look.is_hollow else (look.color, "white")
            axes.plot(
                x, y, linestyle="none", marker=look.marker, markersize=marker_size(look, 4.2), color=look.color,
                alpha=0.8, markerfacecolor=face, markeredgecolor=edge,
                markeredgewidth=1.0 if look.is_hollow else 0.4, label=name,
            )  # fmt: skip
        (set_log if log_x else set_linear)(axes, "x", xs, xs)
        (set_log if log_y else set_linear)(axes, "y", ys, ys)
        label(axes, x_label, y_label, title)
        figure.legend(loc="outside right upper", frameon=False, fontsize=8.5)
    return figure
