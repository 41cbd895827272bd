"""The one look of all figures: colours, lines, markers, text. How a figure becomes text or a file is in ``output``."""

import textwrap
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap, to_rgba
from numpy.typing import NDArray

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
