"""Points: ``dots`` has a few numbers side by side by category, ``scatter`` one quantity against another."""

from collections.abc import Collection, Mapping, Sequence
from itertools import cycle

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from jostle.base.errors import UsageError
from jostle.figures.series import Series
from jostle.figures.style import (
    COLORS,
    GRID,
    INK,
    LINES,
    WIDTH,
    PlainNumbers,
    label,
    looks,
    set_linear,
    set_log,
    styled,
    wrapped,
)

_ROW, _STEP = 0.32, 0.2  # inches of a category, and of each series in it
_LETTERS = 90  # of the legend, side by side


def dots(categories: Mapping[str, Sequence[Series]], *, x_label: str, on_one_line: bool = False) -> Figure:
    """A row for each category; in it a point with its whisker for each series, named by colour and marker.

    Arguments:
        categories: from top to bottom; each series has one point, whose value is its ``y``.
        x_label: with units.
        on_one_line: the points of a category share a line, for many categories; otherwise each has its own.
    """
    if not categories or not all(categories.values()):
        raise UsageError("dots needs at least one category with at least one series")
    by_name = looks(one.name for series in categories.values() for one in series)
    step = 0.0 if on_one_line else _STEP
    with styled():
        height = sum(_ROW + step * len(series) for series in categories.values())
        figure = Figure(figsize=(WIDTH, height + 1.0), layout="constrained")
        axes = figure.add_subplot()
        top, middles, named = 0.0, [], set[str]()
        for series in categories.values():
            for place, one in enumerate(series):
                y, look = top + _ROW / 2 + step * (place + 0.5), by_name[one.name]
                if one.low is not None and one.high is not None:
                    axes.hlines([y], one.low, one.high, color=look.color, linewidth=1.6)
                name = None if one.name in named else one.name
                named.add(one.name)
                axes.plot(one.y, [y], color=look.color, marker=look.marker, markersize=6, linestyle="none", label=name)
            middles.append(top + (_ROW + step * len(series)) / 2)
            top += _ROW + step * len(series)
        axes.set_yticks(middles, [wrapped(name, 26) for name in categories], linespacing=1.15)
        axes.set_ylim(top, 0)
        if not on_one_line:
            axes.set_xlim(left=min(0.0, axes.get_xlim()[0]))
        axes.xaxis.set_major_formatter(PlainNumbers())
        axes.grid(visible=False, axis="y")
        axes.grid(color=GRID, axis="x")
        axes.tick_params(axis="y", length=0, labelcolor=INK)
        axes.spines["left"].set_visible(False)
        label(axes, x_label, "")
        figure.legend(loc="outside upper center", ncols=_columns(by_name), frameon=False)
    return figure


def _columns(names: Collection[str]) -> int:
    """How many names fit side by side in a legend.

    >>> _columns(["vit", "cnn"]), _columns(["a name of some thirty letters"] * 4)
    (2, 2)
    """
    widest = max(map(len, names)) + 6  # the mark and the space around it
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
        groups: (x, y) by name; colours and markers go by order.
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
        for number, (name, (x, y)) in enumerate(arrays.items()):
            look, is_hollow = by_name[name], number >= len(COLORS)  # a colour that was there before
            face, edge = ("none", look.color) if is_hollow else (look.color, "white")
            axes.plot(
                x, y, linestyle="none", marker=look.marker, color=look.color, markersize=4.2, alpha=0.75,
                markerfacecolor=face, markeredgecolor=edge, markeredgewidth=1.0 if is_hollow else 0.4, label=name,
            )  # fmt: skip
        (set_log if log_x else set_linear)(axes, "x", xs, xs)
        (set_log if log_y else set_linear)(axes, "y", ys, ys)
        label(axes, x_label, y_label, title)
        figure.legend(loc="outside right upper", frameon=False, fontsize=8.5)
    return figure
