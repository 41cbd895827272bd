"""The one look of all figures: colours, lines, markers, text. How a figure becomes text or a file is in ``output``.

Names at the ends of lines, moved apart where they would overlap.

Linear and logarithmic axes with plain numbers on them.
"""

import textwrap
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap, to_rgba
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.text import Annotation
from matplotlib.ticker import (
    Formatter,
    FuncFormatter,
    LogLocator,
    MaxNLocator,
    NullFormatter,
    NullLocator,
    SymmetricalLogLocator,
)
from numpy.typing import NDArray

if TYPE_CHECKING:
    from jostle.estimates import Measurement

Floats = NDArray[np.float64]

WIDTH = 7.2  # inches; text of 9.5 pt is then 13 px high on a page where the figure is 720 px wide
INK, MUTED, FAINT, GRID = "#22252a", "#5b6068", "#b4b8bd", "#e7e8e6"
STRONG = "#0072b2"

# Okabe and Ito's colours, told apart by people with any common colour blindness; their yellow is too pale for lines.
COLORS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#3c3f44", "#e69f00", "#56b4e9")
LINES = ("-", (0, (5, 1.6)), (0, (6, 1.6, 1.2, 1.6)), (0, (1.4, 1.4)))
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "p")

# From nearly white to nearly black by way of orange: the order survives grey printing and colour blindness.
_HEAT = ("#fffaf0", "#fddc9f", "#f9a95a", "#e4692f", "#b32d3b", "#6d1141", "#2c0a2a")
_OPACITY = (0.0, 0.6, 0.76, 0.85, 0.88, 0.9, 0.9)  # of the same colours over a picture: zero hides nothing
HEAT = LinearSegmentedColormap.from_list("jostle-heat", _HEAT).with_extremes(bad=(0.0, 0.0, 0.0, 0.0))
OVERLAY = LinearSegmentedColormap.from_list(
    "jostle-overlay", [to_rgba(color, alpha) for color, alpha in zip((_HEAT[1], *_HEAT[1:]), _OPACITY, strict=True)]
).with_extremes(bad=(0.0, 0.0, 0.0, 0.0))

_SETTINGS: dict[Any, Any] = {
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 9.5,
    "text.color": INK,
    "text.parse_math": False,  # a dollar sign in a model's name is a dollar sign
    "axes.edgecolor": FAINT,
    "axes.labelcolor": MUTED,
    "axes.linewidth": 0.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.grid": True,
    "axes.titlesize": 11,
    "grid.color": GRID,
    "grid.linewidth": 0.8,
    "xtick.color": FAINT,
    "ytick.color": FAINT,
    "xtick.labelcolor": MUTED,
    "ytick.labelcolor": MUTED,
    "svg.fonttype": "none",
    "svg.hashsalt": "jostle",
    "pdf.fonttype": 42,
}


@contextmanager
def styled() -> Iterator[None]:
    """Inside the block matplotlib draws our way whatever the user's settings are; they are put back afterwards."""
    with matplotlib.rc_context(), warnings.catch_warnings():
        # Names may be in any script: a browser has the glyphs even where matplotlib's own font lacks them.
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(_SETTINGS)
        yield


class Look(NamedTuple):
    """How one series is drawn: three signs, so that it is recognised without colour too."""

    color: str
    line: str | tuple[int, tuple[float, ...]]
    marker: str


def looks(names: Iterable[str]) -> dict[str, Look]:
    """One look for each name, by order of first appearance; the first 56 are all different.

    >>> looks(["vit", "cnn", "vit"])["cnn"].color
    '#d55e00'
    """
    distinct = enumerate(dict.fromkeys(names))
    return {
        name: Look(COLORS[i % len(COLORS)], LINES[i % len(LINES)], MARKERS[i % len(MARKERS)]) for i, name in distinct
    }


def wrapped(name: str, width: int) -> str:
    """``name`` in lines of at most ``width`` characters, nothing left out.

    >>> wrapped("resnet-18-cifar10", 12)
    'resnet-18-\\ncifar10'
    """
    return "\n".join(textwrap.wrap(name, width) or [""])


def label(axes: Axes, x_label: str, y_label: str, title: str | None = None) -> None:
    """Name the axes; the vertical one is named on top, where it reads horizontally and takes no width."""
    axes.set_xlabel(x_label, labelpad=6)
    above = axes.annotate(
        y_label, (0, 1), (0, 7), xycoords="axes fraction", textcoords="offset points", color=MUTED, va="bottom"
    )
    above.set_gid("y-label")
    if title is not None:
        axes.set_title(wrapped(title, 70), loc="left", weight="bold", pad=24)
    axes.tick_params(length=3, width=0.8, pad=4)
    axes.tick_params(which="minor", length=2, width=0.6)


_HANDLE, _TEXT = 14.0, 21.0  # points from the right edge of the axes to a name's marker and to its first letter


def end_labels(figure: Figure, axes: Axes, ends: dict[str, tuple[float, float]], looks: dict[str, Look]) -> None:
    """Write each name right of ``axes`` at the height where its line ends, with its marker and a thin leader.

    Arguments:
        ends: (x, y) of the last point of each line, in data units; NaN for a line without points.
        looks: how each name is drawn.
    """
    texts = [_text(axes, name, ends[name][1]) for name in ends]
    figure.draw_without_rendering()  # lays the figure out: from here on heights in points are known
    figure.set_layout_engine("none")
    height = axes.get_window_extent().height
    finite = [np.nan_to_num(np.asarray(end, dtype=np.float64)) for end in ends.values()]
    starts = axes.transAxes.inverted().transform(axes.transData.transform(finite))
    gap = 0.15 * figure.dpi / 72 * 9.5
    sizes = [text.get_window_extent().height + gap for text in texts]
    middles = spread(starts[:, 1] * height, sizes, 0.0, height) / height
    for name, text, start, middle in zip(ends, texts, starts, middles, strict=True):
        text.xy = (1.0, float(middle))
        _handle(axes, float(middle), looks[name], start if np.isfinite(ends[name]).all() else None)


def spread(wanted: Sequence[float] | Floats, sizes: Sequence[float], low: float, high: float) -> Floats:
    """Middles as near to ``wanted`` as can be for pieces of ``sizes`` that must not overlap, inside [low, high].

    Pieces that would overlap form a block around the mean of what they want (least squares). Where all pieces
    together are longer than the room, they start at ``low`` and overflow at the top.

    >>> spread([5.0, 5.0, 20.0], [2.0, 2.0, 2.0], 0.0, 30.0).tolist()
    [4.0, 6.0, 20.0]
    """
    order = np.argsort(wanted, kind="stable")
    blocks: list[tuple[list[int], float]] = []  # members from below to above, start of the first
    for piece in order:
        members = [int(piece)]
        start = _start(members, wanted, sizes, low, high)
        while blocks and blocks[-1][1] + sum(sizes[i] for i in blocks[-1][0]) > start:
            members = blocks.pop()[0] + members
            start = _start(members, wanted, sizes, low, high)
        blocks.append((members, start))
    middles = np.empty(len(sizes))
    for members, start in blocks:
        for i in members:
            middles[i] = start + sizes[i] / 2
            start += sizes[i]
    return middles


def _start(
    members: list[int], wanted: Sequence[float] | Floats, sizes: Sequence[float], low: float, high: float
) -> float:
    offsets = np.cumsum([0.0, *(sizes[i] for i in members[:-1])]) + [sizes[i] / 2 for i in members]
    best = float(np.mean([wanted[i] for i in members] - offsets))
    return max(low, min(best, high - sum(sizes[i] for i in members)))


def _text(axes: Axes, name: str, y: float) -> Annotation:
    text = name if np.isfinite(y) else f"{name} (no value)"
    return axes.annotate(
        wrapped(text, 20), (1.0, 0.5), (_TEXT, 0), xycoords="axes fraction", textcoords="offset points", va="center",
        linespacing=1.1,
    )  # fmt: skip


def _handle(axes: Axes, middle: float, look: Look, start: Floats | None) -> None:
    points = axes.get_window_extent().width * 72 / axes.get_figure(root=True).dpi  # type: ignore[union-attr]
    x = 1 + _HANDLE / points
    if start is not None and start[0] > 0.5:  # a leader across the whole figure would look like data
        leader = Line2D([start[0], x], [start[1], middle], color=FAINT, linewidth=0.7, zorder=1)
        _outside(axes, leader)
    _outside(axes, Line2D([x], [middle], color=look.color, marker=look.marker, markersize=5, linestyle="none"))


def _outside(axes: Axes, line: Line2D) -> None:
    line.set_transform(axes.transAxes)
    line.set_clip_on(False)
    axes.add_artist(line)


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


def quantity(measurement: "Measurement") -> str:
    """What the numbers of ``measurement`` are: ``flip rate``, or the mean of another response."""
    response = measurement.settings.response
    return "flip rate" if response.split(":")[0] == "flip" else f"mean {response}"
