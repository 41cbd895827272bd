"""Names at the ends of lines, moved apart where they would overlap."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.text import Annotation

from jostle.figures.style import FAINT, Floats, Look, wrapped

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
