"""The axis from the mean over random changes to the worst, drawn: panels side by side, a line for each network."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from jostle.errors import UsageError
from jostle.figures import Series, looks
from jostle.figures.curves import draw_series
from jostle.figures.scales import number, set_log
from jostle.figures.style import GRID, INK, WIDTH, Floats, label, styled
from jostle.studies.jostle.average_ladder import rung
from jostle.studies.records import Records
from jostle.studies.trained import mean_and_range

_HEIGHT, _LINE = 3.1, 0.17  # inches of the panels, and of each line of the legend below
_GAP = 2.0  # from the largest number of draws to the worst change, in doublings


@dataclass(frozen=True)
class Panel:
    """One panel.

    Arguments:
        title: what the lines are of.
        y_label: what is measured.
        series: from ``rungs``, in the order of the legend.
    """

    title: str
    y_label: str
    series: Sequence[Series]


def rungs(name: str, records: Records[Any], field: str, radius: float) -> Series:
    """The ladder of one network or map at one radius: the mean of every rung over seeds, and its range."""
    mean, several, worst = (rung(records, field, part, radius) for part in ("mean", "max_of", "worst"))
    columns = [list(mean.values()), *map(list, zip(*(drawn[1:] for drawn in several.values()), strict=True))]
    return mean_and_range(name, _places(len(columns)), [*columns, list(worst.values())])


def over_radii(name: str, records: Records[Any], field: str, part: str, radii: Sequence[float]) -> Series:
    """One rung of one network or map against the radius: the mean over seeds, and the range."""
    return mean_and_range(name, radii, [list(rung(records, field, part, radius).values()) for radius in radii])


def ladders(panels: Sequence[Panel], counts: Sequence[int], x_label: str = "random changes tried") -> Figure:
    """The panels side by side, each with its own logarithmic axis and its names below it.

    Arguments:
        panels: from left to right.
        counts: 1, 2, 4, ... draws.
        x_label: below each panel.
    """
    if not panels or not all(panel.series for panel in panels):
        raise UsageError("ladders needs at least one panel, and a series in each")
    names = max(len(panel.series) for panel in panels)
    with styled():
        figure = Figure(figsize=(WIDTH, _HEIGHT + _LINE * names), layout="constrained")
        for axes, panel in zip(np.ravel([figure.subplots(1, len(panels))]), panels, strict=True):
            _draw(axes, panel, counts, x_label, most=2 if len(panels) > 1 else 5)
    return figure


def _draw(axes: Axes, panel: Panel, counts: Sequence[int], x_label: str, most: int) -> None:
    by_name = looks(one.name for one in panel.series)
    places = _places(len(counts))
    axes.axvspan(places[-1] - 1.0, places[-1] + 0.7, color=GRID, alpha=0.6, linewidth=0, zorder=0)
    for one in panel.series:
        draw_series(axes, one, by_name[one.name])
    values, ends = (_joined(panel.series, keys) for keys in (("y",), ("y", "low", "high")))
    set_log(axes, "y", values, ends)
    axes.set_xlim(-0.5, places[-1] + 0.7)
    axes.grid(visible=False, axis="x")
    marked = _marked(counts, most)
    axes.set_xticks([0.0, *(places[place] for place in marked), places[-1]])
    axes.set_xticklabels(["mean", *(number(counts[place]) for place in marked), "worst"])
    label(axes, x_label, panel.y_label, panel.title)
    axes.get_xticklabels()[-1].set_color(INK)
    handles = [line for line in axes.get_lines() if line.get_label() in by_name]
    axes.legend(
        handles=handles, loc="upper left", bbox_to_anchor=(-0.04, -0.24), frameon=False, handlelength=2.6,
        borderaxespad=0.0, labelspacing=0.25,
    )  # fmt: skip


def _places(counts: int) -> list[float]:
    """Where the rungs stand on the axis: one doubling of the draws apart, the worst change behind a gap."""
    return [*map(float, range(counts)), counts - 1 + _GAP]


def _marked(counts: Sequence[int], most: int) -> list[int]:
    """Which numbers of draws are written below the axis: the last, and some before it at even distances.

    >>> _marked([1, 2, 4, 8, 16, 32, 64], 2)
    [3, 6]
    """
    last = len(counts) - 1
    step = max(1, -(-last // most))
    return sorted(place for place in range(last, 0, -step))[-most:]


def _joined(series: Sequence[Series], keys: Sequence[str]) -> Floats:
    parts = [np.asarray(getattr(one, key), dtype=np.float64) for one in series for key in keys]
    joined: Floats = np.concatenate(parts)
    return joined[np.isfinite(joined)]
