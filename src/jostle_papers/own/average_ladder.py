"""Ladders, from the mean over random changes of a token to the worst change that was found, and their figure.

The rungs are the mean response to one random change, the expected largest response to 2, 4, ... K of them, and the
largest response that a search found, all of them for changes of the same length and for the same tokens. So no rung is
below the one before it.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from jostle.base.errors import UsageError
from jostle.figures import Series
from jostle.studies.schema import Struct
from jostle.worst.search import expected_maxima
from jostle_papers.trained import BySeed, mean_and_range

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from jostle.figures.style import Floats


@dataclass(frozen=True)
class Ladder(Struct):
    """The rungs at each radius.

    Arguments:
        radii: lengths of the changes in units of the token's norm, increasing.
        mean: (radii,) over random changes.
        max_of: (radii, counts) expected largest of 1, 2, 4, ... random changes; the first is the mean.
        worst: (radii,) the largest found.
    """

    radii: tuple[float, ...]
    mean: tuple[float, ...]
    max_of: tuple[tuple[float, ...], ...]
    worst: tuple[float, ...]

    @classmethod
    def of(cls, radii: Sequence[float], responses: "Floats", worst: Sequence[float], counts: Sequence[int]) -> "Ladder":
        """The ladder of one token.

        Arguments:
            radii: (radii,).
            responses: (radii, draws) to random changes.
            worst: (radii,) the largest found.
            counts: 1, 2, 4, ... draws.
        """
        maxima = expected_maxima(responses, list(counts))  # (counts, radii)
        return cls(tuple(radii), tuple(maxima[0].tolist()), _rows(maxima.T), tuple(worst))

    def mean_at(self, radius: float) -> float:
        """The mean at one of the radii."""
        return self.mean[self.radii.index(radius)]

    def max_of_at(self, radius: float) -> tuple[float, ...]:
        """The expected largest of 1, 2, 4, ... random changes at one of the radii."""
        return self.max_of[self.radii.index(radius)]

    def worst_at(self, radius: float) -> float:
        """The largest found at one of the radii."""
        return self.worst[self.radii.index(radius)]


def average_ladders(ladders: Iterable[Ladder]) -> Ladder:
    """The mean of every rung over tokens.

    >>> average_ladders([Ladder((1.0,), (1.0,), ((1.0, 2.0),), (3.0,)), Ladder((1.0,), (3.0,), ((3.0, 4.0),), (5.0,))])
    Ladder(radii=(1.0,), mean=(2.0,), max_of=((2.0, 3.0),), worst=(4.0,))
    """
    listed = list(ladders)
    mean, worst = np.mean([one.mean for one in listed], axis=0), np.mean([one.worst for one in listed], axis=0)
    max_of = np.mean([one.max_of for one in listed], axis=0)
    return Ladder(listed[0].radii, tuple(mean.tolist()), _rows(max_of), tuple(worst.tolist()))


def _rows(table: "Floats") -> tuple[tuple[float, ...], ...]:
    return tuple(tuple(row) for row in table.tolist())


def log_ratios(worst: BySeed, mean: BySeed) -> BySeed:
    """log10 of worst / mean by seed; NaN where one of them is 0."""
    return {
        seed: math.log10(worst[seed] / mean[seed]) if min(worst[seed], mean[seed]) > 0 else math.nan for seed in mean
    }


def crossing(first: Mapping[float, float], second: Mapping[float, float]) -> float:
    """The smallest radius beyond which ``first``, at first below ``second``, is above; NaN if there is none.

    Between two radii both are taken for powers of the radius.

    >>> round(crossing({1.0: 1.0, 4.0: 16.0}, {1.0: 2.0, 4.0: 8.0}), 6)
    2.0

    Arguments:
        first, second: values by radius, the same increasing radii.
    """
    gaps = [(math.log(radius), math.log(first[radius] / second[radius])) for radius in first]
    for (left, before), (right, after) in pairwise(gaps):
        if before < 0 <= after:
            return math.exp(left + (right - left) * before / (before - after))
    return math.nan


# The figure: panels side by side, in each a line for each network or map, from the mean on the left to the worst.

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


def rungs(name: str, ladders: Sequence[Ladder], radius: float) -> Series:
    """The ladders of one network or map, one for each seed, at one radius: the mean of every rung, and its range."""
    means, worst = [one.mean_at(radius) for one in ladders], [one.worst_at(radius) for one in ladders]
    between = [list(rung) for rung in zip(*(one.max_of_at(radius)[1:] for one in ladders), strict=True)]
    return mean_and_range(name, _places(1 + len(between)), [means, *between, worst])


def draw_ladders(panels: Sequence[Panel], counts: Sequence[int], x_label: str = "random changes tried") -> "Figure":
    """The panels side by side, each with its own logarithmic axis and its names below it.

    Arguments:
        panels: from left to right.
        counts: 1, 2, 4, ... draws.
        x_label: below each panel.
    """
    from matplotlib.figure import Figure

    from jostle.figures.style import WIDTH, styled

    if not panels or not all(panel.series for panel in panels):
        raise UsageError("ladders needs at least one panel, and a series in each")
    names = max(len(panel.series) for panel in panels)
    with styled():
        figure = Figure(figsize=(WIDTH, _HEIGHT + _LINE * names), layout="constrained")
        for axes, panel in zip(np.ravel([figure.subplots(1, len(panels))]), panels, strict=True):
            _draw_panel(axes, panel, counts, x_label, most=2 if len(panels) > 1 else 5)
    return figure


def _draw_panel(axes: "Axes", panel: Panel, counts: Sequence[int], x_label: str, most: int) -> None:
    from jostle.figures.lines import draw_series
    from jostle.figures.style import GRID, INK, label, looks, number, set_log

    by_name = looks(one.name for one in panel.series)
    places = _places(len(counts))
    axes.axvspan(places[-1] - 1.0, places[-1] + 0.7, color=GRID, alpha=0.6, linewidth=0, zorder=0)
    for one in panel.series:
        draw_series(axes, one, by_name[one.name])
    values, ends = (_finite_values(panel.series, keys) for keys in (("y",), ("y", "low", "high")))
    set_log(axes, "y", values, ends)
    axes.set_xlim(-0.5, places[-1] + 0.7)
    axes.grid(visible=False, axis="x")
    marked = _labelled_places(counts, most)
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


def _labelled_places(counts: Sequence[int], most: int) -> list[int]:
    """Which numbers of draws are written below the axis: the last, and some before it at even distances.

    >>> _labelled_places([1, 2, 4, 8, 16, 32, 64], 2)
    [3, 6]
    """
    last = len(counts) - 1
    step = max(1, -(-last // most))
    return sorted(place for place in range(last, 0, -step))[-most:]


def _finite_values(series: Sequence[Series], keys: Sequence[str]) -> "Floats":
    parts = [np.asarray(getattr(one, key), dtype=np.float64) for one in series for key in keys]
    joined: Floats = np.concatenate(parts)
    return joined[np.isfinite(joined)]
