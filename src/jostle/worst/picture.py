"""Pictures of a worst case: one input with its worst token and the change, or curves over the radii."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from jostle.base import specs
from jostle.base.errors import UsageError
from jostle.figures import Series, curves
from jostle.figures.style import INK, MUTED, OVERLAY, STRONG, WIDTH, Floats, styled, wrap
from jostle.tokens import VIEWS, Inputs, TextView, TokenView

if TYPE_CHECKING:
    from jostle.worst.result import WorstCase

_PANEL, _GAP = 2.2, 0.1  # inches
_LINE, _CHARACTER, _SPACE = 0.34, 0.083, 0.09  # inches that a line of words, a character and a space take


class Shown(NamedTuple):
    """Which change a picture shows.

    Arguments:
        input: the number of the input.
        position: the position of its token.
        place: the place of the radius among the radii.
    """

    input: int
    position: int
    place: int


def radius_figure(result: "WorstCase", *, narrow: bool = False) -> Figure:
    """Mean of the draws, max of the draws and largest found against the radius, with bands over inputs."""
    rows = [result.at(radius) for radius in result.radii]
    names = {
        "largest found": [row.largest for row in rows],
        f"max of {result.settings.draws} draws": [row.max_of_draws for row in rows],
        "mean of draws": [row.mean for row in rows],
    }
    series = [
        Series(name, result.radii, *(np.asarray([getattr(m, k) for m in means]) for k in ("value", "low", "high")))
        for name, means in names.items()
    ]
    quantity = "share flippable" if result.settings.is_flip else result.settings.response
    band = f"{result.settings.level:.0%} interval over inputs"
    y_label = f"{quantity} (lower bound); {band}"
    return curves(series, x_label=f"radius, {result.settings.unit}", y_label=y_label, title=result.name, narrow=narrow)


def choose_shown(result: "WorstCase", index: int | None = None, radius: float | None = None) -> Shown:
    """Which change a picture shows: an input, its worst position, and a radius.

    Arguments:
        result: what was found.
        index: the input; by default the one that changes most.
        radius: of the ball; by default the largest, and for flips the smallest at which this input flips.
    """
    place = result.place_of(radius)
    positions = result.worst_positions(result.radii[place])
    values = result.values[place][np.arange(len(positions)), positions]
    values = np.where(np.isfinite(values), values, -np.inf)
    if index is None:
        index = int(np.argmax(values))
    if not 0 <= index < len(positions):
        raise UsageError(f"index={index} is not an input: there are {len(positions)}")
    if radius is None and result.settings.is_flip:
        flipped = np.flatnonzero((result.values[:, index] > 0).any(axis=1))
        place = int(flipped[0]) if len(flipped) else place
    return Shown(index, int(result.worst_positions(result.radii[place])[index]), place)


def change_figure(
    result: "WorstCase",
    inputs: Any,
    index: int | None = None,
    *,
    radius: float | None = None,
    words: Sequence[str] | None = None,
    classes: Sequence[str] = (),
) -> Figure:
    """One input with its worst token outlined, the change that was found, and its effect.

    Patches of an image are shown as pictures before and after; other tokens as a row of words, darker if they can be
    changed more.

    Arguments:
        result: what was found.
        inputs: the inputs that were searched, as given to ``worst_case``.
        index, radius: as for ``choose_shown``.
        words: for token ids, the word of each id; for other tokens, the words of this input.
        classes: the names of classes, if they have any.
    """
    view = specs.build(VIEWS, result.settings.tokens, "tokens", TokenView)
    shown = choose_shown(result, index, radius)
    held = Inputs(inputs, view)
    given = held.batch(np.asarray([shown.input]))[held.key][0]
    is_image = len(result.positions) == 2 and given.dim() in (2, 3) and given.shape[0] in (1, 3, given.shape[-2])
    with styled():
        if is_image and not isinstance(view, TextView):
            return _image(result, shown, view, given, classes)
        return _sentence(result, shown, token_labels(held, shown, given, words), classes)


def caption(result: "WorstCase", shown: Shown, classes: Sequence[str] = ()) -> str:
    """The effect of the change, in one line; ``classes`` are the names of classes, if they have any."""
    at = (shown.place, shown.input, shown.position)
    radius = specs.written(result.radii[shown.place])
    size = float(np.linalg.norm(result.changes[at]))
    unit = result.settings.unit
    most = f"at most {radius}" if unit == "absolute length" else f"at most {radius} times {unit}"
    where = f"input {shown.input}, token {shown.position}, moved by a length of {size:.3g} ({most})"
    if result.predictions is None or result.clean_predictions is None or result.margins is None:
        return f"{where}: {result.settings.response} {result.values[at]:.4g}"
    before, after = (
        class_name(int(number), classes) for number in (result.clean_predictions[shown.input], result.predictions[at])
    )
    if before != after:
        return f"{where}: the prediction changes from {before} to {after}"
    return f"{where}: no flip was found; the lowest margin of {before} that was found is {result.margins[at]:.3g}"


def class_name(number: int, classes: Sequence[str]) -> str:
    """The name of a class, or its number.

    >>> class_name(1, ["cat", "dog"]), class_name(1, [])
    ('dog', '1')
    """
    return classes[number] if 0 <= number < len(classes) else str(number)


def _image(result: "WorstCase", shown: Shown, view: TokenView, clean: Any, classes: Sequence[str]) -> Figure:
    import torch

    change = torch.from_numpy(result.changes[shown.place, shown.input, shown.position]).to(clean.dtype)
    at = torch.tensor([shown.position])
    token = view.pick(clean[None], torch.zeros(1, dtype=torch.int64), at)
    after = view.put(clean[None].clone(), at, token + change)[0]
    pictures = [_pixels(part) for part in (clean, after - clean, after)]
    ends = min(float(pictures[0].min()), float(pictures[2].min())), max(float(p.max()) for p in pictures[::2])
    ratio = pictures[0].shape[0] / pictures[0].shape[1]
    width, height = 3 * _PANEL + 4 * _GAP, _PANEL * ratio + 0.95
    figure = Figure(figsize=(width, height))
    titles = ("before", "the change", "after")
    for number, (pixels, title) in enumerate(zip(pictures, titles, strict=True)):
        left = _GAP + number * (_PANEL + _GAP)
        axes = figure.add_axes((left / width, 0.6 / height, _PANEL / width, _PANEL * ratio / height))
        reach = float(np.abs(pixels).max()) or 1.0
        low, high = (-reach, reach) if number == 1 else ends
        scaled = np.clip((pixels - low) / ((high - low) or 1.0), 0, 1)
        axes.imshow(scaled, cmap="gray", vmin=0, vmax=1, interpolation="none")
        axes.set_axis_off()
        axes.set_title(title, loc="left", fontsize=9.5)
        _outline(axes, result.positions, shown.position, pixels.shape[:2])
    _write_caption(figure, caption(result, shown, classes))
    return figure


def _outline(axes: Axes, positions: tuple[int, ...], position: int, shape: tuple[int, ...]) -> None:
    row, column = divmod(position, positions[1])
    height, width = shape[0] / positions[0], shape[1] / positions[1]
    corner = (column * width - 0.5, row * height - 0.5)
    axes.add_patch(Rectangle(corner, width, height, fill=False, edgecolor=STRONG, linewidth=1.6))


def _pixels(image: Any) -> Floats:
    """An image as matplotlib takes it: channels last, or none."""
    values: Floats = np.asarray(image, dtype=np.float64)
    if values.ndim == 2:
        return values
    return values.transpose(1, 2, 0) if values.shape[0] == 3 else values.mean(axis=0)


def token_labels(held: Inputs, shown: Shown, given: Any, words: Sequence[str] | None) -> list[str]:
    """A word for each position of the input that is shown, in the order of its profile."""
    count = held.num_tokens
    if held.padding is None:
        named = list(words) if words is not None else [str(number) for number in range(count)]
        return (named + [""] * count)[:count]
    labels = [""] * count
    for column in range(int(held.padding.first[shown.input]), int(held.padding.stop[shown.input])):
        token = int(given[column])
        place = int(held.profile_positions(np.asarray([shown.input]), np.asarray([column]))[0])
        labels[place] = words[token] if words is not None and token < len(words) else f"#{token}"
    return labels


def _sentence(result: "WorstCase", shown: Shown, labels: list[str], classes: Sequence[str]) -> Figure:
    """Words in lines, darker if they can be changed more, with the worst word outlined."""
    found = result.values if result.margins is None else -result.margins
    depth = found[shown.place, shown.input]
    known = np.isfinite(depth)
    low, high = (float(depth[known].min()), float(depth[known].max())) if known.any() else (0.0, 1.0)
    places, x, y = [], _GAP, 0.0
    for label in labels:
        size = _CHARACTER * len(label) + _SPACE
        if x + size > WIDTH - _GAP and x > _GAP:
            x, y = _GAP, y + _LINE
        places.append((x, y))
        x += size + _SPACE if label else 0.0
    height = y + _LINE + 0.75
    figure = Figure(figsize=(WIDTH, height))
    axes = figure.add_axes((0.0, 0.0, 1.0, 1.0))
    axes.set_axis_off()
    axes.set(xlim=(0, WIDTH), ylim=(height, 0))
    for position, (label, (left, top)) in enumerate(zip(labels, places, strict=True)):
        if not label:
            continue
        share = (depth[position] - low) / ((high - low) or 1.0) if known[position] else 0.0
        is_worst = position == shown.position
        box = Rectangle(
            (left, top + 0.08),
            _CHARACTER * len(label) + _SPACE,
            _LINE - 0.06,
            facecolor=OVERLAY(0.6 * share),
            edgecolor=STRONG if is_worst else "none",
            linewidth=1.8 if is_worst else 0.0,
        )
        axes.add_patch(box)
        axes.text(left + _SPACE / 2, top + 0.08 + (_LINE - 0.06) / 2, label, color=INK, va="center", family="monospace")
    _write_caption(figure, caption(result, shown, classes) + "; darker: can be changed more")
    return figure


def _write_caption(figure: Figure, text: str) -> None:
    width, height = figure.get_size_inches()
    figure.text(_GAP / width, 0.12 / height, wrap(text, int(width / 0.078)), color=MUTED, fontsize=8.5, va="bottom")
