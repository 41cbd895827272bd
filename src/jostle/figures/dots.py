"""Points with whiskers by category: a few numbers side by side, where a line between them would mean nothing."""

from collections.abc import Collection, Mapping, Sequence

from matplotlib.figure import Figure

from jostle.errors import UsageError
from jostle.figures.curves import Series
from jostle.figures.scales import PlainNumbers
from jostle.figures.style import GRID, INK, WIDTH, label, looks, styled, wrapped

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
