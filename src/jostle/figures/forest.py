"""Paired differences between models, with their intervals: a forest plot."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from jostle.base.errors import UsageError
from jostle.base.estimate import TARGETS
from jostle.figures.style import GRID, INK, MUTED, NARROW, STRONG, WIDTH, PlainNumbers, label, styled, wrap

if TYPE_CHECKING:
    from jostle.estimates import Difference

UNDECIDED = "#8a8f96"


def differences(pairs: "Sequence[Difference]", *, narrow: bool = False) -> Figure:
    """A row for each pair: its difference and interval, drawn and as numbers.

    An interval that excludes zero is blue with a filled point; an interval that includes zero is grey with an open one.

    Arguments:
        pairs: from top to bottom. Each is ``first - second``: right of zero the first is more sensitive.
        narrow: whether it is for a phone: without the numbers, which take half of the width.
    """
    if not pairs:
        raise UsageError("differences needs at least one difference, and the list is empty")
    names = [_name(pair, 16 if narrow else 28) for pair in pairs]
    heights = [0.17 * name.count("\n") + 0.34 for name in names]
    digits = None if narrow else _digits(pairs)
    with styled():
        figure = Figure(figsize=(NARROW if narrow else WIDTH, sum(heights) + 1.15), layout="constrained")
        axes = figure.add_subplot()
        axes.axvline(0, color=INK, linewidth=0.9, zorder=1)
        middles = [sum(heights[:i]) + height / 2 for i, height in enumerate(heights)]
        for pair, middle in zip(pairs, middles, strict=True):
            _draw(axes, pair, middle, digits)
        axes.set_yticks(middles, names, linespacing=1.15)
        axes.set_ylim(sum(heights), 0)
        _dress(axes, pairs, narrow)
    return figure


def excludes_zero(pair: "Difference") -> bool:
    """Whether the interval shows which of the two is more sensitive."""
    return pair.direction != 0


def _name(pair: "Difference", width: int) -> str:
    line = f"{pair.first} \N{MINUS SIGN} {pair.second}"
    return line if len(line) <= width else f"{wrap(pair.first, width)}\n\N{MINUS SIGN} {wrap(pair.second, width - 2)}"


def _digits(pairs: "Sequence[Difference]") -> int:
    """The number of decimals that shows two digits of the narrowest half width."""
    widths = [pair.interval.half_width for pair in pairs if 0 < pair.interval.half_width < np.inf]
    return int(np.clip(1 - np.floor(np.log10(min(widths, default=0.1))), 0, 6))


def _draw(axes: Axes, pair: "Difference", middle: float, digits: int | None) -> None:
    color = STRONG if excludes_zero(pair) else UNDECIDED
    axes.hlines(middle, pair.low, pair.high, color=color, linewidth=2.4, zorder=2)
    axes.plot(
        [pair.value], [middle], marker="o", markersize=6.5, markeredgewidth=1.6, markeredgecolor=color,
        markerfacecolor=color if excludes_zero(pair) else "white", linestyle="none", zorder=3,
    )  # fmt: skip
    if digits is None:
        return
    value, low, high = (
        f"{end:+.{digits}f}".replace("-", "\N{MINUS SIGN}") for end in (pair.value, pair.low, pair.high)
    )
    axes.annotate(
        f"{value}  [{low}, {high}]", (1, middle), (8, 0), xycoords=("axes fraction", "data"),
        textcoords="offset points", va="center", fontsize=8.5, color=INK if excludes_zero(pair) else MUTED,
    )  # fmt: skip


def _dress(axes: Axes, pairs: "Sequence[Difference]", narrow: bool) -> None:
    interval = pairs[0].interval
    axes.margins(x=0.08)
    axes.grid(visible=False, axis="y")
    axes.grid(color=GRID, axis="x")
    axes.xaxis.set_major_locator(MaxNLocator(nbins=3 if narrow else 6, steps=[1, 2, 5, 10]))
    axes.xaxis.set_major_formatter(PlainNumbers())
    name = f"difference, with its {interval.level:.0%} interval for {TARGETS[interval.target]}"
    label(axes, wrap(name, 34) if narrow else name, "")
    axes.tick_params(axis="y", length=0, labelcolor=INK)
    axes.spines["left"].set_visible(False)
    more = "more" if narrow else "more sensitive"
    hints = {f"\N{LEFTWARDS ARROW} second {more}": "right", f"first {more} \N{RIGHTWARDS ARROW}": "left"}
    for text, side in hints.items():
        axes.annotate(
            text, (0, 1), (-7 if side == "right" else 7, 5), xycoords=("data", "axes fraction"),
            textcoords="offset points", ha=side, va="bottom", fontsize=8.5, color=MUTED,
        )  # fmt: skip
