"""The one style of all figures: colours, lines and markers of network families, text, names at line ends, axes.

Every figure asks ``looks`` how its series are drawn. A series whose name contains a network family, such as
``vit-small + penalty``, is drawn in the family's colour of ``FAMILIES``, so that a reader learns the colours once. How
a figure becomes text or a file is in ``output``.
"""

import re
import textwrap
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import cycle
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap, to_hex, to_rgb, to_rgba
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.text import Annotation
from matplotlib.ticker import (
    Formatter,
    LogLocator,
    MaxNLocator,
    NullFormatter,
    NullLocator,
    SymmetricalLogLocator,
)
from numpy.typing import ArrayLike, NDArray

if TYPE_CHECKING:
    from jostle.estimates import Measurement

Floats = NDArray[np.float64]

WIDTH = 7.2  # inches; text of 9.5 pt is then 13 px high on a page where the figure is 720 px wide
NARROW = 3.7  # inches; the same text is 12 px high on a phone where the figure is 340 px wide
INK, MUTED, FAINT, GRID = "#22252a", "#5b6068", "#b4b8bd", "#e7e8e6"
STRONG = "#0072b2"

# Okabe and Ito's colours, distinguishable with any common colour blindness; their yellow is too pale for lines.
COLORS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#3c3f44", "#e69f00", "#56b4e9")
SOLID, DASHED, DASH_DOTTED, DOTTED = LINES = ("-", (0, (5, 1.6)), (0, (6, 1.6, 1.2, 1.6)), (0, (1.4, 1.4)))
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "p")
_SIZES = {"P": 1.25, "X": 1.25, "p": 1.2, "D": 0.92}  # of markers that look smaller or larger than a circle

# From nearly white over orange to nearly black: the order is visible in grey print and with colour blindness.
_HEAT = ("#fffaf0", "#fddc9f", "#f9a95a", "#e4692f", "#b32d3b", "#6d1141", "#2c0a2a")
_OPACITY = (0.0, 0.6, 0.76, 0.85, 0.88, 0.9, 0.9)  # of these colours over a picture; a value of 0 is transparent
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
    """Inside the block matplotlib draws in the style of jostle; afterwards it has the user's settings again."""
    with matplotlib.rc_context(), warnings.catch_warnings():
        # Names may be in any script, and a browser has glyphs that matplotlib's own font lacks.
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(_SETTINGS)
        yield


class Look(NamedTuple):
    """How one series is drawn: by colour, line and marker, so that it is recognised without colour too."""

    color: str
    line: str | tuple[int, tuple[float, ...]]
    marker: str
    is_hollow: bool = False  # whether single points are drawn as outlines: the colour or its hue is used before


BACKGROUND = Look("#8f949b", SOLID, "")  # of one run among many

# Transformers are blue, convolutional networks orange to brown (ConvMixer pink, ConvNeXt wine), MLPs and mixers green,
# recurrent networks red. Families that a committed figure compares differ by at least 12 (CIEDE2000), also under
# protanopia and deuteranopia as simulated by Machado, Oliveira and Fernandes (2009), and in line or marker as well.
FAMILIES: dict[str, Look] = {
    "transformer": Look("#0072b2", SOLID, "o"),
    "decoder": Look("#56b4e9", DOTTED, "D"),
    "cnn": Look("#e69f00", DASHED, "s"),
    "resnet": Look("#b07500", DASHED, "D"),
    "densenet": Look("#6b3410", DOTTED, "p"),
    "convmixer": Look("#cc79a7", DASH_DOTTED, "X"),
    "convnext": Look("#8e2063", DOTTED, "v"),
    "mlp": Look("#009e73", DASH_DOTTED, "^"),
    "mixer": Look("#146034", DOTTED, "P"),
    "state-space": Look("#3c3f44", DASHED, "v"),
    "lstm": Look("#d55e00", DASHED, "s"),
    "gru": Look("#ef8f6b", DASH_DOTTED, "P"),
    "bag": Look("#999999", DOTTED, "p"),
    "random-features": Look("#3c3f44", DASHED, "^"),
    # Boolean functions, in the colours of networks that are not drawn with them.
    "parity": Look("#8e2063", SOLID, "o"),
    "majority": Look("#b07500", DASHED, "s"),
    "first": Look("#56b4e9", DASH_DOTTED, "^"),
    "mean": Look("#999999", DOTTED, "D"),
}

# The words of a family in a name, in lower case with - between words; the first family that matches is the one.
_WORDS: dict[str, str] = {
    "convmixer": "conv-?mixer",
    "convnext": "conv-?next",
    "mixer": "mixer",
    "densenet": "densenet",
    "resnet": "resnet|resnext|wrn",
    "state-space": "ssm|state-space|mamba",
    "lstm": "lstm",
    "gru": "gru",
    "decoder": "decoder|gpt|causal",
    "bag": "bag",
    "cnn": "cnn|convnet|vgg|alexnet|lenet|inception|efficientnet|mobilenet",
    "mlp": "mlp",
    "random-features": "random-features|d?rf",
    "transformer": "transformer|vit|deit|beit|swin|encoder|attention|raf|[a-z]*bert[a-z]*",
}
_PATTERNS = {family: re.compile(rf"(?<![a-z])({words})(?![a-z])") for family, words in _WORDS.items()}
_FUNCTIONS = ("parity", "majority", "first", "mean")

# The shades of a family's members in one figure, from the first on: the share of black (-) or white (+) in the colour.
_SHADES = (0.0, -0.45, 0.3, -0.62, 0.45)
_DARK, _PALE = 0.3, 0.58  # luminance below which all shades get lighter, and above which all get darker
_ONE_WAY = (0.0, 0.5, 0.26, 0.6, 0.38)  # shares of white or black there


def family_of(name: str) -> str | None:
    """The network family in a name, or the Boolean function that a name begins with; None if there is none.

    >>> [family_of(name) for name in ("vit-small + penalty", "mlp-mixer, no norms", "parity, seed 1", "test loss")]
    ['transformer', 'mixer', 'parity', None]
    """
    words = re.sub(r"[\s_]+", "-", name.strip().lower())
    function = words.partition(",")[0]
    if function in _FUNCTIONS:  # the whole word: "first token" and "mean over seeds" are something else
        return function
    return next((family for family, pattern in _PATTERNS.items() if pattern.search(words)), None)


def looks(names: Iterable[str]) -> dict[str, Look]:
    """One look for each name of a figure.

    A name with a family has the family's look. Further members of the family in the same figure have the same hue in
    other shades, with other lines and markers. Names without a family take colours and markers that no family in the
    figure has, in order of appearance; the first 56 of them are different.

    >>> found = looks(["vit-small", "cnn", "vit-simple", "test loss"])
    >>> [look.color for look in found.values()]
    ['#0072b2', '#e69f00', '#003f62', '#d55e00']
    """
    families = {name: family_of(name) for name in dict.fromkeys(names)}
    present = dict.fromkeys(family for family in families.values() if family is not None)
    colors = [color for color in COLORS if all(color != FAMILIES[family].color for family in present)] or COLORS
    markers = [marker for marker in MARKERS if all(marker != FAMILIES[family].marker for family in present)] or MARKERS
    found: dict[str, Look] = {}
    members: dict[str | None, int] = {}
    spare = cycle(markers)
    for name, family in families.items():
        count = members.setdefault(family, 0)
        members[family] += 1
        if family is None:
            rounds, color = divmod(count, len(colors))
            found[name] = Look(colors[color], LINES[count % len(LINES)], next(spare), rounds % 2 == 1)
        elif count == 0:
            found[name] = FAMILIES[family]
        else:
            first = FAMILIES[family]
            line = LINES[(LINES.index(first.line) + count) % len(LINES)]
            found[name] = Look(_shade(first.color, count), line, next(spare), count % 2 == 1)
    return found


def marker_size(look: Look, size: float) -> float:
    """The size in points at which the marker of ``look`` appears as large as a circle of ``size``."""
    return size * _SIZES.get(look.marker, 1.0)


def _shade(color: str, number: int) -> str:
    """The colour of a family's member ``number``: the same hue, darker or lighter.

    A pale colour only gets darker and a dark one only lighter, so that every shade is readable on white.

    >>> _shade("#0072b2", 0), _shade("#0072b2", 1), _shade("#0072b2", 2), _shade("#3c3f44", 1)
    ('#0072b2', '#003f62', '#4c9cc9', '#9e9fa2')
    """
    red, green, blue = to_rgb(color)
    luminance = 0.299 * red + 0.587 * green + 0.114 * blue
    share = _SHADES[number % len(_SHADES)]
    if not _DARK <= luminance <= _PALE:
        share = _ONE_WAY[number % len(_ONE_WAY)] * (1 if luminance < _DARK else -1)
    end = 0.0 if share < 0 else 1.0
    red, green, blue = (part + (end - part) * abs(share) for part in (red, green, blue))
    return to_hex((red, green, blue))


def wrap(name: str, width: int) -> str:
    """``name`` in lines of at most ``width`` characters; no character is lost.

    >>> wrap("resnet-18-cifar10", 12)
    'resnet-18-\\ncifar10'
    """
    return "\n".join(textwrap.wrap(name, width) or [""])


def label(axes: Axes, x_label: str, y_label: str, title: str | None = None) -> None:
    """Name the axes. The name of the vertical axis is above it: it reads horizontally and takes no width."""
    axes.set_xlabel(x_label, labelpad=6)
    above = axes.annotate(
        y_label, (0, 1), (0, 7), xycoords="axes fraction", textcoords="offset points", color=MUTED, va="bottom"
    )
    above.set_gid("y-label")
    if title is not None:  # above all lines of the other name
        axes.set_title(wrap(title, 70), loc="left", weight="bold", pad=24 + 12 * y_label.count("\n"))
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
    figure.draw_without_rendering()  # computes the layout: from here on heights are known
    figure.set_layout_engine("none")
    height = axes.get_window_extent().height
    known = [np.nan_to_num(np.asarray(end, dtype=np.float64)) for end in ends.values()]
    starts = axes.transAxes.inverted().transform(axes.transData.transform(known))
    gap = 0.15 * figure.dpi / 72 * 9.5
    sizes = [text.get_window_extent().height + gap for text in texts]
    middles = spread(starts[:, 1] * height, sizes, 0.0, height) / height
    for name, text, start, middle in zip(ends, texts, starts, middles, strict=True):
        text.xy = (1.0, float(middle))
        _handle(axes, float(middle), looks[name], start if np.isfinite(ends[name]).all() else None)


def spread(wanted: Sequence[float] | Floats, sizes: Sequence[float], low: float, high: float) -> Floats:
    """Middles of pieces that do not overlap, inside [low, high], as close to ``wanted`` as possible (least squares).

    Pieces that would overlap become a block around the mean of their wanted places. Pieces that together are longer
    than the room start at ``low`` and overflow at the top.

    >>> spread([5.0, 5.0, 20.0], [2.0, 2.0, 2.0], 0.0, 30.0).tolist()
    [4.0, 6.0, 20.0]
    """
    order = np.argsort(wanted, kind="stable")
    blocks: list[tuple[list[int], float]] = []  # members from bottom to top, and where the first starts
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
    """Where a block of pieces starts: as close to the wanted places as the room allows."""
    offsets = np.cumsum([0.0, *(sizes[i] for i in members[:-1])]) + [sizes[i] / 2 for i in members]
    best = float(np.mean([wanted[i] for i in members] - offsets))
    return max(low, min(best, high - sum(sizes[i] for i in members)))


def _text(axes: Axes, name: str, y: float) -> Annotation:
    """A name right of the axes; its height is set later."""
    text = name if np.isfinite(y) else f"{name} (no value)"
    return axes.annotate(
        wrap(text, 20), (1.0, 0.5), (_TEXT, 0), xycoords="axes fraction", textcoords="offset points", va="center",
        linespacing=1.1,
    )  # fmt: skip


def _handle(axes: Axes, middle: float, look: Look, start: Floats | None) -> None:
    """The marker beside a name, and a leader from the end of its line, ``start`` in axes coordinates."""
    points = axes.get_window_extent().width * 72 / axes.get_figure(root=True).dpi  # type: ignore[union-attr]
    x = 1 + _HANDLE / points
    if start is not None and start[0] > 0.5:  # a leader across the whole figure would look like data
        leader = Line2D([start[0], x], [start[1], middle], color=FAINT, linewidth=0.7, zorder=1)
        _outside(axes, leader)
    size = marker_size(look, 5.0)
    _outside(axes, Line2D([x], [middle], color=look.color, marker=look.marker, markersize=size, linestyle="none"))


def _outside(axes: Axes, line: Line2D) -> None:
    """Add a line in axes coordinates that may lie outside the axes."""
    line.set_transform(axes.transAxes)
    line.set_clip_on(False)
    axes.add_artist(line)


def number(value: float, _: int | None = None) -> str:
    """A number as a tick label. Matplotlib passes the position of the tick as the second argument.

    >>> number(20000), number(0.3), number(0)
    ('20,000', '0.3', '0')
    """
    return f"{value:,.10g}".replace("-", "\N{MINUS SIGN}")


_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_FEW_DECADES = 2.5  # a logarithmic axis with fewer has ticks at 2 and 5 too
_LEAST_PLAIN, _MOST_PLAIN = 1e-4, 1e6  # beyond these a logarithmic axis has powers of ten


def power(value: float) -> str:
    """A number as a power of ten.

    >>> power(1e-6), power(-200), power(1), power(0)
    ('10⁻⁶', '−2·10²', '10⁰', '0')
    """
    if not value:
        return "0"
    digits, _, exponent = f"{value:.10e}".partition("e")
    factor = {1.0: "", -1.0: "-"}.get(float(digits), f"{float(digits):g}\N{MIDDLE DOT}")
    return f"{factor}10".replace("-", "\N{MINUS SIGN}") + str(int(exponent)).translate(_SUPERSCRIPTS)


class LogNumbers(Formatter):
    """Tick labels of a logarithmic axis in one format: plain numbers, or powers of ten if one would need many digits.

    >>> LogNumbers().format_ticks([0, 0.001, 1, 1000])
    ['0', '0.001', '1', '1,000']
    >>> LogNumbers().format_ticks([0, 1e-6, 0.001, 1])
    ['0', '10⁻⁶', '10⁻³', '10⁰']
    """

    def __call__(self, x: float, pos: int | None = None) -> str:
        return number(x, pos)

    def format_ticks(self, values: Sequence[float]) -> list[str]:
        low, high = (-np.inf, np.inf) if self.axis is None else sorted(self.axis.get_view_interval())
        shown = [abs(value) for value in values if value and low <= value <= high]  # some lie outside the figure
        is_plain = all(_LEAST_PLAIN <= size <= _MOST_PLAIN for size in shown)
        return [number(value) if is_plain else power(value) for value in values]


class PlainNumbers(Formatter):
    """Tick labels of a linear axis, all with the same number of decimals; zero is 0.

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
    """A linear axis; a vertical one starts at 0 if that takes less than half of its height.

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
    """A logarithmic axis; if a number is 0, with a linear strip from 0 to the power of ten below ``values``.

    Arguments:
        values: finite numbers of the points on the axis; the strip ends below the smallest positive one.
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
        axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if decades < _FEW_DECADES else (1.0,)))
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
    axis.set_major_formatter(LogNumbers())


def finite(parts: Iterable[ArrayLike | None]) -> Floats:
    """All finite numbers of several arrays in one array; None is left out.

    >>> finite([[1.0, np.nan], None, [2.0]]).tolist()
    [1.0, 2.0]
    """
    given = [np.asarray(part, dtype=np.float64) for part in parts if part is not None]
    joined: Floats = np.concatenate([np.empty(0), *given])
    return joined[np.isfinite(joined)]


def is_flip(measurement: "Measurement") -> bool:
    """Whether the numbers of ``measurement`` are shares of flips."""
    return measurement.settings.response.split(":")[0] == "flip"


def quantity(measurement: "Measurement") -> str:
    """The name of the numbers of ``measurement``: ``flip rate``, or the mean of another response."""
    return "flip rate" if is_flip(measurement) else f"mean {measurement.settings.response}"
