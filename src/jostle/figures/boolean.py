"""The Fourier weight by degree and the sensitivity profile of a Boolean function, as bars."""

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from numpy.typing import ArrayLike

from jostle.figures.style import COLORS, INK, WIDTH, label, styled

if TYPE_CHECKING:
    from jostle.boolean import Analysis


def boolean_figure(analysis: "Analysis", title: str | None = None) -> Figure:
    """The Fourier weight by degree and, for a function into {-1, 1}, the share of inputs by sensitivity.

    The dashed line in the second panel is the mean, the total sensitivity.
    """
    with styled():
        panels = 2 if analysis.is_boolean else 1
        figure = Figure(figsize=(WIDTH, 3.2), layout="constrained")
        axes = np.atleast_1d(figure.subplots(1, panels))
        draw_bars(axes[0], analysis.fourier_weight, COLORS[0])
        label(axes[0], "degree k", "Fourier weight on degree k")
        if analysis.is_boolean:
            draw_bars(axes[1], analysis.sensitivity_profile / len(analysis.table), COLORS[1])
            axes[1].axvline(analysis.total_sensitivity, color=INK, linewidth=1.0, linestyle=(0, (4, 2)))
            label(axes[1], "sensitivity s (dashed: the mean)", "share of inputs with sensitivity s")
        if title is not None:
            figure.suptitle(title, x=0.01, ha="left", fontsize=11, weight="bold")
    return figure


def draw_bars(axes: Axes, heights: ArrayLike, color: str) -> None:
    """A bar for each of 0..n."""
    tall = np.asarray(heights, dtype=np.float64)
    axes.bar(np.arange(len(tall)), tall, width=0.8, color=color)
    axes.set_xlim(-0.7, len(tall) - 0.3)
    axes.set_ylim(0, max(1e-9, float(tall.max()) * 1.06))
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.grid(visible=False, axis="x")
