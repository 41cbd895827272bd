"""Points of several kinds in a plane: one quantity against another."""

from collections.abc import Mapping
from itertools import cycle

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from jostle.errors import UsageError
from jostle.figures.scales import set_linear, set_log
from jostle.figures.style import COLORS, INK, LINES, WIDTH, label, looks, styled


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
