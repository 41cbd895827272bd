"""The influence of each token on each prediction: a matrix with the tokens at its sides, and the text in shades."""

from html import escape
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from jostle.figures.maps import SCALE_HEIGHT, color_scale, largest
from jostle.figures.output import svg
from jostle.figures.style import HEAT, MUTED, WIDTH, styled

if TYPE_CHECKING:
    from jostle.estimates import Influence, PromptInfluence

_MOST_NAMED = 72  # tokens at a side; more have no room for their names
_LONGEST_NAME = 12  # characters
_LEFT, _TOP, _RIGHT = 1.2, 0.95, 0.1  # inches for names, and for room
_LABELS = {
    "next-token-flip": "share of draws in which the prediction changes",
    "label-flip": "share of draws in which the label changes",
    "kl": "Kullback-Leibler divergence, nats",
    "total-variation": "total variation",
    "surprisal": "change of surprisal, nats",
}


def influence_figure(prompt: "PromptInfluence", response: str = "next-token-flip") -> Figure:
    """A square for each entry of the matrix: down, the token that moves; across, the token at which is predicted.

    Entries that cannot change, before the token that moves, are empty.

    Arguments:
        prompt: whose matrix is drawn.
        response: what counted as a change.
    """
    rows, columns = prompt.values.shape
    side = float(np.clip((WIDTH - _LEFT - _RIGHT) / max(columns, 1), 0.06, 0.3))
    with styled():
        width, height = max(_LEFT + side * columns + _RIGHT, 4.2), _TOP + side * rows + 0.35 + SCALE_HEIGHT
        figure = Figure(figsize=(width, height))
        axes = figure.add_axes(
            (_LEFT / width, 1 - (_TOP + side * rows) / height, side * columns / width, side * rows / height)
        )
        vmax = 1.0 if response in ("next-token-flip", "label-flip", "total-variation") else largest([prompt.values])
        mapped = axes.imshow(prompt.values, cmap=HEAT, norm=Normalize(0.0, vmax), interpolation="none", aspect="auto")
        axes.grid(visible=False)
        axes.spines[:].set_visible(False)
        axes.tick_params(length=0, labelsize=float(np.clip(60 * side, 4.5, 8.5)))
        axes.xaxis.tick_top()
        axes.xaxis.set_label_position("top")
        axes.set_xlabel("prediction after", color=MUTED)
        axes.set_ylabel("token that moves", color=MUTED)
        across = prompt.tokens if columns == rows else prompt.predictions
        for axis, names in ((axes.xaxis, across), (axes.yaxis, prompt.tokens)):
            if len(names) <= _MOST_NAMED:
                axis.set_ticks(np.arange(len(names)), [_name(one) for one in names])
            else:
                axis.set_major_locator(MaxNLocator(integer=True))
        axes.tick_params(axis="x", rotation=90)
        color_scale(figure, mapped, _LABELS.get(response, response), left=_LEFT)
    return figure


def influence_svg(prompt: "PromptInfluence", response: str = "next-token-flip") -> str:
    """``influence_figure`` as SVG; every square has a tooltip with its tokens, number, interval and draws."""
    figure = influence_figure(prompt, response)
    (width, height), box = 72 * figure.get_size_inches(), figure.axes[0].get_position()  # points, shares of them
    rows, columns = prompt.values.shape
    side = box.width * width / columns, box.height * height / rows
    hints = []
    for i, j in np.argwhere(np.isfinite(prompt.values)).tolist():
        left, top = box.x0 * width + j * side[0], (1 - box.y1) * height + i * side[1]
        hints.append(
            f'<rect x="{left:.2f}" y="{top:.2f}" width="{side[0]:.2f}" height="{side[1]:.2f}" fill="none" '
            f'pointer-events="all"><title>{escape(entry_hint(prompt, i, j), quote=False)}</title></rect>'
        )
    return f"{svg(figure).removesuffix('</svg>')}<g>{''.join(hints)}</g></svg>"


def entry_hint(prompt: "PromptInfluence", i: int, j: int) -> str:
    """One entry of the matrix in words."""
    value, low, high = (part[i, j] for part in (prompt.values, prompt.low, prompt.high))
    place = f" after {prompt.tokens[j].strip()!r}" if prompt.values.shape[1] == len(prompt.tokens) else f" number {j}"
    draws = f"{prompt.draws[i]:,} draw{'' if prompt.draws[i] == 1 else 's'}"
    return (
        f"{prompt.tokens[i].strip()!r} moved, prediction{place} ({prompt.predictions[j].strip()!r}): "
        f"{value:.3g} [{low:.3g}, {high:.3g}], {draws}"
    )


def influence_html(result: "Influence", most: int = 10) -> str:
    """Prompts for a notebook: the text shaded by influence on the last prediction, and the matrix below it.

    Arguments:
        result: of ``jostle.influence``.
        most: prompts that are shown.
    """
    parts = []
    for prompt in result.prompts[:most]:
        values = np.nan_to_num(prompt.on()[0])
        top = float(values.max()) or 1.0
        scale = 1.0 if top <= 1 and result.settings.response in ("next-token-flip", "total-variation") else top
        words = "".join(
            f'<span title="{escape(entry_hint(prompt, i, -1))}" style="background:rgba(214,96,45,{value / scale:.2f})">'
            f"{escape(prompt.tokens[i])}</span>"
            for i, value in enumerate(values)
        )
        parts.append(
            f'<p style="font-size:1.1em;line-height:1.8">{words}<b> &rarr; {escape(prompt.predictions[-1])}</b></p>'
            f'<div style="max-width:720px">{influence_svg(prompt, result.settings.response)}</div>'
        )
    return f'<div><pre style="white-space:pre-wrap">{escape(str(result))}</pre>{"".join(parts)}</div>'


def _name(token: str) -> str:
    """A token as a tick: without spaces around it, and not too long."""
    shown = token.strip().replace("$", r"\$") or repr(token)[1:-1]
    return shown if len(shown) <= _LONGEST_NAME else f"{shown[:_LONGEST_NAME]}…"
