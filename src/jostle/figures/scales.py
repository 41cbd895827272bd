"""Linear and logarithmic axes with plain numbers on them."""

from collections.abc import Sequence
from typing import Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import (
    Formatter,
    FuncFormatter,
    LogLocator,
    MaxNLocator,
    NullFormatter,
    NullLocator,
    SymmetricalLogLocator,
)

from jostle.figures.style import GRID, Floats


def number(value: float, _: int | None = None) -> str:
    """A number as a tick label; the second argument is the tick's position, which matplotlib passes.

    >>> number(20000), number(0.3), number(0)
    ('20,000', '0.3', '0')
    """
    return f"{value:,.10g}".replace("-", "\N{MINUS SIGN}")


class PlainNumbers(Formatter):
    """Tick labels of a linear axis, all with as many decimals as the one that needs most; zero is just 0.

    >>> PlainNumbers().format_ticks([0, 0.05, 0.1])
    ['0', '0.05', '0.10']
    """

    def __call__(self, x: float, pos: int | None = None) -> str:
        return number(x, pos)

    def format_ticks(self, values: Sequence[float]) -> list[str]:
        if any("e" in number(value) for value in values):
            return [number(value) for value in values]
        decimals = max((len(number(value).partition(".")[2]) for value in values), default=0)
        return [f"{value:,.{decimals}f}".replace("-", "\N{MINUS SIGN}") if value else "0" for value in values]


def set_linear(axes: Axes, which: Literal["x", "y"], values: Floats, extent: Floats) -> None:
    """A linear axis; a vertical one starts at 0 where that costs less than half of its height.

    Arguments:
        values: finite numbers of the points on the axis.
        extent: these and the ends of their bands.
    """
    axis = getattr(axes, f"{which}axis")
    whole = bool(len(values) and np.all(values == np.round(values)))
    axis.set_major_locator(MaxNLocator(nbins=9 if which == "x" else 7, steps=[1, 2, 5, 10], integer=whole))
    axis.set_major_formatter(PlainNumbers())
    if which == "y" and len(extent) and 0 <= extent.min() < extent.max() / 2:
        axes.set_ylim(bottom=0)


def set_log(axes: Axes, which: Literal["x", "y"], values: Floats, extent: Floats) -> None:
    """A logarithmic axis; where something is 0, with a linear strip from 0 to the power of ten below ``values``.

    Arguments:
        values: finite numbers of the points on the axis: the strip ends below the smallest positive one.
        extent: these and the ends of their bands, which may reach into the strip.
    """
    positive = values[values > 0]
    if not len(positive):  # nothing to take a logarithm of
        set_linear(axes, which, values, extent)
        return
    axis = getattr(axes, f"{which}axis")
    set_scale = getattr(axes, f"set_{which}scale")
    if (extent > 0).all():
        set_scale("log")
        decades = float(np.log10(extent.max() / extent.min()))
        axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if decades < 2 else (1.0,)))
        axis.set_minor_formatter(NullFormatter())
    else:
        threshold = float(10.0 ** np.floor(np.log10(positive.min())))
        set_scale("symlog", linthresh=threshold, linscale=0.5)
        axis.set_major_locator(SymmetricalLogLocator(base=10, linthresh=threshold))
        axis.set_minor_locator(NullLocator())
        if (extent >= 0).all():
            getattr(axes, f"set_{which}lim")(**{"left" if which == "x" else "bottom": 0})
        span = axes.axvspan if which == "x" else axes.axhspan
        span(-threshold if (extent < 0).any() else 0, threshold, color=GRID, alpha=0.6, linewidth=0, zorder=0)
    axis.set_major_formatter(FuncFormatter(number))
