"""Heat maps over a picture: the value of each patch, for several models on one colour scale."""

from collections.abc import Iterable, Mapping
from math import ceil

import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.ticker import MaxNLocator
from numpy.typing import ArrayLike

from jostle.base.errors import UsageError
from jostle.figures.style import INK, MUTED, OVERLAY, WIDTH, Floats, PlainNumbers, styled, wrap

_COLUMNS = 5
_GAP = 0.1  # inches between panels
SCALE_HEIGHT = 0.75  # inches of a colour scale with label and ticks


def heat_maps(picture: ArrayLike, maps: Mapping[str, ArrayLike], *, label: str, vmax: float | None = None) -> Figure:
    """The picture, and for each model its map over the picture in pale grey; one colour scale for all maps.

    The patch with the largest value is outlined, and its value is below the model's name.

    Arguments:
        picture: (height, width) grey or (height, width, 3) colour, in any range.
        maps: by model, (rows, columns) values of patches that tile the picture; NaN (never jostled) is transparent.
        label: of the colour scale, e.g. ``flip rate of a patch``.
        vmax: the value at the dark end; by default the largest of all maps.
    """
    pixels = _check_picture(picture)
    values = {name: _check_map(name, one) for name, one in maps.items()}
    if not values:
        raise UsageError("heat_maps needs at least one map, and maps is empty")
    scale = Normalize(0.0, vmax if vmax is not None else largest(values.values()))
    with styled():
        figure, panels = _panels(pixels, list(values))
        panels[0].imshow(pixels, cmap="gray", vmin=0, vmax=1, interpolation="none")
        for axes, one in zip(panels[1:], values.values(), strict=True):
            _draw_map(axes, pixels, one, scale)
        color_scale(figure, ScalarMappable(scale, OVERLAY), label)
    return figure


def _panels(pixels: Floats, names: list[str]) -> tuple[Figure, list[Axes]]:
    """A figure with room for the picture, a map for each name, their titles, and a colour scale below."""
    count = len(names) + 1
    rows = ceil(count / _COLUMNS)
    columns = ceil(count / rows)
    ratio = pixels.shape[0] / pixels.shape[1]
    width = min((WIDTH - _GAP * (columns + 1)) / columns, 2.3, 6.0 / ratio)
    titles = [wrap(name, max(8, int(width / 0.085))) for name in names]
    head = 0.17 * max(title.count("\n") + 2 for title in titles) + 0.1
    row_height = head + width * ratio + _GAP
    total = (max(columns * (width + _GAP) + _GAP, 3.2), rows * row_height + SCALE_HEIGHT)
    figure = Figure(figsize=total)
    panels = []
    for index, title in enumerate(["input", *titles]):
        row, column = divmod(index, columns)
        left, bottom = _GAP + column * (width + _GAP), total[1] - row * row_height - head - width * ratio
        axes = figure.add_axes((left / total[0], bottom / total[1], width / total[0], width * ratio / total[1]))
        axes.set_axis_off()
        axes.set_title(title, loc="left", fontsize=9.5, pad=16 if index else 4, linespacing=1.15)
        panels.append(axes)
    return figure, panels


def largest(maps: Iterable[Floats]) -> float:
    """The largest finite value of all maps; 1 if no value is above 0, so that there is a scale.

    >>> largest([np.asarray([[0.1, np.nan]]), np.asarray([[0.3, 0.2]])])
    0.3
    """
    finite = [one[np.isfinite(one)] for one in maps]
    highest = max((float(one.max()) for one in finite if len(one)), default=0.0)
    return highest if highest > 0 else 1.0


def color_scale(figure: Figure, mapped: ScalarMappable, label: str, left: float = _GAP) -> None:
    """One colour bar at the bottom of ``figure``, ``left`` inches from its edge, with its label above it."""
    width, height = figure.get_size_inches()
    axes = figure.add_axes((left / width, 0.32 / height, 2.6 / width, 0.1 / height))
    bar = figure.colorbar(mapped, cax=axes, orientation="horizontal", ticks=MaxNLocator(nbins=5, steps=[1, 2, 5, 10]))
    bar.outline.set_visible(False)
    axes.set_title(label, loc="left", fontsize=9.5, color=MUTED, pad=5)
    axes.grid(visible=False)
    axes.tick_params(length=3, width=0.8, labelsize=9)
    bar.formatter = PlainNumbers()
    bar.update_ticks()


def _draw_map(axes: Axes, pixels: Floats, values: Floats, scale: Normalize) -> None:
    rows, columns = values.shape
    height, width = pixels.shape[:2]
    grey = pixels if pixels.ndim == 2 else pixels @ np.asarray([0.299, 0.587, 0.114])
    box = (0.0, float(columns), float(rows), 0.0)  # both pictures in units of patches
    axes.imshow(0.74 + 0.26 * grey, cmap="gray", vmin=0, vmax=1, interpolation="none", extent=box)
    axes.imshow(values, cmap=OVERLAY, norm=scale, interpolation="none", extent=box)
    axes.set_aspect(height * columns / (width * rows))  # so that pixels are square
    below = "never jostled"
    if np.isfinite(values).any():
        row, column = np.unravel_index(np.nanargmax(values), values.shape)
        axes.add_patch(Rectangle((float(column), float(row)), 1, 1, fill=False, edgecolor=INK, linewidth=1.2))
        below = f"largest {values[row, column]:.3g}"
    axes.annotate(below, (0, 1), (0, 4), xycoords="axes fraction", textcoords="offset points", color=MUTED)


def _check_picture(picture: ArrayLike) -> Floats:
    """The picture with values from 0 to 1; raises on a wrong shape."""
    pixels = np.asarray(picture, dtype=np.float64)
    if pixels.ndim == 3 and pixels.shape[2] == 1:
        pixels = pixels[:, :, 0]
    if not pixels.size or not (pixels.ndim == 2 or (pixels.ndim == 3 and pixels.shape[2] == 3)):
        raise UsageError(
            f"picture has shape {pixels.shape}; expected (height, width) or (height, width, 3), channels last"
        )
    low, high = float(np.nanmin(pixels)), float(np.nanmax(pixels))
    return (pixels - low) / ((high - low) or 1.0)


def _check_map(name: str, values: ArrayLike) -> Floats:
    """The map as floats; raises unless it has two dimensions."""
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 2 or not array.size:
        raise UsageError(f"the map of {name!r} has shape {array.shape}; expected (rows, columns), one value a patch")
    return array
