"""Pieces of HTML for notebooks: a table, a strip or a map of shades, shaded text, a map over a picture.

All text is escaped, styles stand in the elements, and nothing is loaded: a notebook shows it anywhere, also offline.
"""

import base64
import io
import math
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_SHADE = "214,96,45"  # red, green, blue of a share of 1
_MOST_ROWS = 40
_SIDE = 24  # pixels of a cell of a map, at most
_WIDEST = 448  # pixels of a map or a picture
_LEFT = "text-align:left;padding:2px 12px 2px 0"
_RIGHT = "text-align:right;padding:2px 12px 2px 0;font-variant-numeric:tabular-nums"


def in_frame(text: str, *parts: str) -> str:
    """A result for a notebook: its text as it prints, the first line in bold, and parts of HTML below it.

    >>> in_frame("a < b")
    '<div><b>a &lt; b</b></div>'
    """
    first, _, rest = text.partition("\n")
    below = f'<pre style="white-space:pre-wrap;margin:4px 0">{escape(rest)}</pre>' if rest else ""
    return f"<div><b>{escape(first)}</b>{below}{''.join(parts)}</div>"


def table_html(rows: Sequence[Mapping[str, Any]], most: int = _MOST_ROWS) -> str:
    """Rows as a table; columns that are empty in all rows are left out, and so are rows beyond the first ``most``."""
    if not rows:
        return ""
    names = [name for name in rows[0] if any(_shown(row[name]) for row in rows)]
    head = "".join(f'<th style="{_LEFT}">{escape(name)}</th>' for name in names)
    body = "".join(
        "<tr>"
        + "".join(f'<td style="{_align(row[name])}">{escape(_shown(row[name]))}</td>' for name in names)
        + "</tr>"
        for row in rows[:most]
    )
    left = f"<p>{len(rows) - most:,} more rows: to_frame() has them all</p>" if len(rows) > most else ""
    return f'<table style="border-collapse:collapse"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{left}'


def shade(share: float) -> str:
    """The style of a background for a share between 0 and 1; none for NaN.

    >>> shade(0.5), shade(float("nan"))
    ('background:rgba(214,96,45,0.50)', '')
    """
    return "" if math.isnan(share) else f"background:rgba({_SHADE},{min(max(share, 0.0), 1.0):.2f})"


def shaded_text(pieces: Sequence[tuple[str, float, str]], label: str = "") -> str:
    """A text whose pieces are shaded.

    Arguments:
        pieces: text, share between 0 and 1 (NaN for no shade), and what pointing at it says.
        label: a line above the text.
    """
    spans = "".join(
        f'<span title="{escape(hint)}" style="{shade(share)}">{escape(text)}</span>' if hint else escape(text)
        for text, share, hint in pieces
    )
    above = f'<div style="opacity:.7">{escape(label)}</div>' if label else ""
    return f'{above}<p style="font-size:1.1em;line-height:1.8;margin:2px 0 10px;white-space:pre-wrap">{spans}</p>'


def map_svg(values: Floats, hints: Sequence[str], picture: Any = None, *, top: float = 1.0, label: str = "") -> str:
    """A map of shades, one cell for each position, over a picture if there is one.

    Arguments:
        values: (rows, columns), or (columns,) for a strip; NaN for no shade.
        hints: what pointing at a cell says, row by row.
        picture: (height, width) or (height, width, 3) numbers between 0 and 1.
        top: the value of the darkest shade.
        label: what the map shows, for those who cannot see it.
    """
    grid = np.atleast_2d(values)
    rows, columns = grid.shape
    side = min(_SIDE, _WIDEST / columns)
    width, height = columns * side, rows * side
    behind = ""
    if picture is not None:
        scale = min(_WIDEST / 2 / max(picture.shape[:2]), 16.0)
        height, width = (edge * scale for edge in picture.shape[:2])
        behind = (
            f'<image href="{png_uri(picture)}" width="{width:.1f}" height="{height:.1f}" '
            'preserveAspectRatio="none" style="image-rendering:pixelated"/>'
        )
    wide, high = width / columns, height / rows
    cells = "".join(
        f'<rect x="{place % columns * wide:.2f}" y="{place // columns * high:.2f}" width="{wide:.2f}" '
        f'height="{high:.2f}" fill="rgb({_SHADE})" fill-opacity="{_opacity(value, top):.2f}" '
        f'stroke="rgb({_SHADE})" stroke-opacity="0.25"><title>{escape(hint)}</title></rect>'
        for place, (value, hint) in enumerate(zip(grid.ravel().tolist(), hints, strict=True))
    )
    return (
        f'<svg role="img" aria-label="{escape(label)}" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {width:.2f} {height:.2f}" style="margin:4px 10px 4px 0">{behind}{cells}</svg>'
    )


def png_uri(picture: Any) -> str:
    """A picture, (height, width) or (height, width, 3) numbers between 0 and 1, as an address that holds it."""
    from PIL import Image

    file = io.BytesIO()
    Image.fromarray((np.clip(np.asarray(picture, dtype=np.float64), 0, 1) * 255).round().astype(np.uint8)).save(
        file, "PNG"
    )
    return f"data:image/png;base64,{base64.b64encode(file.getvalue()).decode()}"


def _opacity(value: float, top: float) -> float:
    return 0.0 if math.isnan(value) or top <= 0 else 0.85 * min(max(value / top, 0.0), 1.0)


def _shown(value: Any) -> str:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if isinstance(value, float):
        return f"{value:.4g}"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


def _align(value: Any) -> str:
    return _RIGHT if isinstance(value, int | float) and not isinstance(value, bool) else _LEFT
