"""The profile of a measurement: the mean change by position of the token."""

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from jostle.base.estimate import TARGETS
from jostle.figures.columns import columns_figure
from jostle.figures.lines import curves
from jostle.figures.maps import SCALE_HEIGHT, color_scale, largest
from jostle.figures.output import svg
from jostle.figures.series import Series
from jostle.figures.style import HEAT, INK, MUTED, Floats, quantity, styled, wrap

if TYPE_CHECKING:
    from jostle.estimates import Measurement

_MOST_NUMBERS = 14  # a grid with more rows or columns has no room for numbers


def profile_figure(measurement: "Measurement", vmax: float | None = None) -> Figure:
    """The mean change by token position: a heat map where positions form a grid, else a line with its band.

    The columns of a table have names and no order, so they are points, see ``columns_figure``.

    A grid is two numbers in ``profile.positions``, or three of which the first is 1 (one channel). The band has an
    interval for each position on its own. Positions that were never jostled are empty. A + on the axis marks positions
    at which most texts have a special token, such as a classification token or a separator.

    Arguments:
        measurement: whose profile is drawn.
        vmax: the value at the dark end of a heat map; by default its largest value.
    """
    profile, shape = measurement.profile, grid_shape(measurement)
    if shape is not None:
        return _grid(measurement.name, profile.values.reshape(shape), quantity(measurement), vmax)
    if profile.names:
        return columns_figure([measurement], measurement.name)
    band = f"{measurement.settings.level:.0%} interval of each position for {TARGETS[profile.target]}"
    series = Series(measurement.name, np.arange(len(profile.values)), profile.values, profile.low, profile.high)
    places = special_places(measurement)
    x_label = "token position" + ("; + is a special token in most texts" if len(places) else "")
    figure = curves([series], x_label=x_label, y_label=f"{quantity(measurement)}; {band}", title=measurement.name)
    figure.axes[0].plot(
        places, np.zeros(len(places)), linestyle="none", marker="+", color=INK, markersize=7, clip_on=False, zorder=5,
        transform=figure.axes[0].get_xaxis_transform(),
    )  # fmt: skip
    return figure


def profile_svg(measurement: "Measurement", vmax: float | None = None) -> str:
    """``profile_figure`` as SVG; every square of a heat map has a tooltip with its number, interval and trials."""
    figure, shape = profile_figure(measurement, vmax), grid_shape(measurement)
    drawn = svg(figure)
    if shape is None:
        return drawn
    (width, height), box = 72 * figure.get_size_inches(), figure.axes[0].get_position()  # points, shares of them
    side = box.width * width / shape[1], box.height * height / shape[0]
    hints = []
    for number, (row, column) in enumerate(np.ndindex(*shape)):
        left, top = box.x0 * width + column * side[0], (1 - box.y1) * height + row * side[1]
        hints.append(
            f'<rect x="{left:.2f}" y="{top:.2f}" width="{side[0]:.2f}" height="{side[1]:.2f}" fill="none" '
            f'pointer-events="all"><title>row {row}, column {column}: {_tooltip(measurement, number)}</title></rect>'
        )
    return f"{drawn.removesuffix('</svg>')}<g>{''.join(hints)}</g></svg>"


def _tooltip(measurement: "Measurement", number: int) -> str:
    """The number, interval and trials of one position."""
    profile = measurement.profile
    count = int(profile.counts[number])
    if not count:
        return "never jostled"
    value, low, high = (f"{part[number]:.4f}" for part in (profile.values, profile.low, profile.high))
    return f"{value} [{low}, {high}], {count:,} trial{'' if count == 1 else 's'}"


def grid_shape(measurement: "Measurement") -> tuple[int, int] | None:
    """(rows, columns) of positions that form a grid, else None."""
    shape = measurement.profile.positions
    if len(shape) == 3 and shape[0] == 1:
        shape = shape[1:]
    return (shape[0], shape[1]) if len(shape) == 2 else None


def special_places(measurement: "Measurement") -> Floats:
    """The positions at which more than half of the texts that reach them have a special token."""
    special = measurement.profile.special
    return np.empty(0) if special is None else np.flatnonzero(np.nan_to_num(special) > 0.5).astype(np.float64)


def _grid(name: str, values: Floats, label: str, vmax: float | None) -> Figure:
    """A heat map of positions that form a grid."""
    rows, columns = values.shape
    side = float(np.clip(5.0 / max(rows, columns), 0.08, 0.55))
    with styled():
        head = 0.2 * (wrap(name, 40).count("\n") + 1) + 0.12
        width, height = max(0.7 + side * columns, 3.6), head + side * rows + 0.5 + SCALE_HEIGHT
        figure = Figure(figsize=(width, height))
        bottom = 1 - (head + side * rows) / height
        axes = figure.add_axes((0.6 / width, bottom, side * columns / width, side * rows / height))
        scale = Normalize(0.0, largest([values]) if vmax is None else vmax)
        mapped = axes.imshow(values, cmap=HEAT, norm=scale, interpolation="none")
        axes.set_title(wrap(name, 40), loc="left", weight="bold", pad=8)
        axes.grid(visible=False)
        axes.spines[:].set_visible(False)
        axes.tick_params(length=0, labelsize=8.5)
        axes.set_xlabel("patch column", color=MUTED)
        axes.set_ylabel("patch row", color=MUTED, rotation_mode="anchor")
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.yaxis.set_major_locator(MaxNLocator(integer=True))
        if max(rows, columns) <= _MOST_NUMBERS:
            _write_numbers(axes, values, scale)
        color_scale(figure, mapped, label, left=0.6)
    return figure


def _write_numbers(axes: Axes, values: Floats, scale: Normalize) -> None:
    """The value in each square, light on dark and dark on light."""
    digits = int(np.clip(1 - np.floor(np.log10(scale.vmax or 1.0)), 0, 4))  # two digits of the largest
    for (row, column), value in np.ndenumerate(values):
        if np.isfinite(value):
            text = f"{value:.{digits}f}" if value else "0"
            red, green, blue, _ = HEAT(scale(value))
            dark = 0.299 * red + 0.587 * green + 0.114 * blue < 0.55
            axes.text(column, row, text, ha="center", va="center", fontsize=7.5, color="white" if dark else INK)
