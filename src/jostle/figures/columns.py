"""The profile of a table: the mean change by column, as points with their intervals. Columns have no order to join."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from jostle.base.estimate import TARGETS
from jostle.figures.style import (
    GRID,
    INK,
    NARROW,
    WIDTH,
    PlainNumbers,
    label,
    looks,
    marker_size,
    quantity,
    styled,
    wrap,
)

if TYPE_CHECKING:
    from jostle.estimates import Measurement

MOST = 30  # columns that are drawn; a table on a page has all of them
_ROW, _FRAME = 0.3, 1.15  # inches


def columns_figure(measured: "Sequence[Measurement]", title: str | None = None, *, narrow: bool = False) -> Figure:
    """The mean change of each column with its interval, for each model; the most sensitive columns are on top.

    Arguments:
        measured: of the same table.
        title: above the figure.
        narrow: whether it is for a phone.
    """
    first, order = measured[0], largest_columns(measured)
    shown = order[:MOST]
    with styled():
        height = _FRAME + _ROW * len(shown) + 0.2 * (len(measured) > 1)
        figure = Figure(figsize=(NARROW if narrow else WIDTH, height), layout="constrained")
        axes = figure.add_subplot()
        by_name = looks(m.name for m in measured)
        for place, m in enumerate(measured):
            look, profile = by_name[m.name], m.profile
            at = np.arange(len(shown)) + (place - (len(measured) - 1) / 2) * 0.6 / len(measured)
            axes.hlines(at, profile.low[shown], profile.high[shown], color=look.color, linewidth=2.0, zorder=2)
            axes.plot(
                profile.values[shown], at, linestyle="none", marker=look.marker, color=look.color, zorder=3,
                markersize=marker_size(look, 6.0), label=m.name,
            )  # fmt: skip
        axes.set_yticks(np.arange(len(shown)), [wrap(first.profile.names[number], 24) for number in shown])
        axes.set_ylim(len(shown) - 0.5, -0.5)
        axes.set_xlim(left=min(0.0, axes.get_xlim()[0]))
        axes.grid(visible=False, axis="y")
        axes.grid(color=GRID, axis="x")
        axes.xaxis.set_major_locator(MaxNLocator(nbins=3 if narrow else 6, steps=[1, 2, 5, 10]))
        axes.xaxis.set_major_formatter(PlainNumbers())
        axes.tick_params(axis="y", length=0, labelcolor=INK)
        interval = f"with its {first.settings.level:.0%} interval for {TARGETS[first.profile.target]}"
        text = f"{quantity(first)} by column, {interval}"
        label(axes, wrap(text, 40) if narrow else text, _above(len(order)), title)
        if len(measured) > 1:
            axes.legend(loc="lower right", frameon=False, fontsize=8.5)
    return figure


def _above(count: int) -> str:
    return f"the {MOST} largest of {count}" if count > MOST else ""


def largest_columns(measured: "Sequence[Measurement]") -> "list[int]":
    """The numbers of the columns that were jostled, the one with the largest mean change over models first."""
    values = np.stack([m.profile.values for m in measured])
    known = np.flatnonzero(np.isfinite(values).any(axis=0))
    return [int(number) for number in known[np.argsort(-np.nanmean(values[:, known], axis=0), kind="stable")]]
