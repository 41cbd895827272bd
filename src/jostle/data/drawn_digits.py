"""Digits that jostle draws itself, so that there are labelled images without any file or package.

A digit is a few strokes in a unit square. Every drawing moves the points of the strokes a little, turns, slants,
stretches and shifts them, chooses the width of the pen, and adds faint grain. The drawings are the same everywhere.
"""

import functools

import numpy as np
from numpy.typing import NDArray

from jostle.base.randomness import Stream
from jostle.data import register
from jostle.data.dataset import Dataset
from jostle.data.images import Images

SIDE, CLASSES = 28, 10
COUNTS = {"train": 4000, "test": 1000}
_SEED = 28
_DRAWN_AT_ONCE = 250
_WOBBLE, _TURN, _SLANT, _STRETCH, _SHIFT = 0.02, 0.25, 0.25, 0.15, 0.07  # at most, in units of the square and radians
_PEN, _GRAIN = (0.035, 0.07), 6.0  # half of the pen's width, and the std of the grain in pixel values

Floats = NDArray[np.float64]
Point = tuple[float, float]


def _arc(centre: Point, radii: Point, start: float, stop: float) -> list[Point]:
    """Points on an ellipse from one angle to another, in degrees; 0 is right, 90 is down."""
    angles = np.radians(np.linspace(start, stop, 13))
    return [(centre[0] + radii[0] * float(np.cos(a)), centre[1] + radii[1] * float(np.sin(a))) for a in angles]


_STROKES: tuple[tuple[list[Point], ...], ...] = (
    (_arc((0.5, 0.5), (0.22, 0.34), 0, 360),),
    ([(0.36, 0.3), (0.53, 0.15), (0.53, 0.85)],),
    ([*_arc((0.5, 0.34), (0.21, 0.19), 190, 400), (0.28, 0.84), (0.74, 0.84)],),
    (_arc((0.48, 0.32), (0.2, 0.17), 200, 450), _arc((0.48, 0.67), (0.22, 0.18), 270, 520)),
    ([(0.6, 0.85), (0.6, 0.15), (0.25, 0.62), (0.78, 0.62)],),
    ([(0.7, 0.16), (0.36, 0.16), (0.33, 0.47), *_arc((0.48, 0.64), (0.22, 0.2), 235, 500)],),
    ([(0.62, 0.15), (0.4, 0.38), *_arc((0.5, 0.65), (0.2, 0.19), 190, 550)],),
    ([(0.27, 0.17), (0.73, 0.17), (0.43, 0.85)],),
    (_arc((0.5, 0.32), (0.17, 0.16), 90, 450), _arc((0.5, 0.67), (0.2, 0.18), 270, 630)),
    ([*_arc((0.49, 0.35), (0.19, 0.19), 0, 360), (0.66, 0.6), (0.58, 0.85)],),
)


@register("drawn-digits")
def drawn_digits(split: str) -> Dataset:
    """4,000 training and 1,000 test digits that jostle draws, 28 x 28 grey pixels scaled to [-1, 1].

    Classes are equally frequent, in a random order.
    """
    pixels, labels = _draw_split(split)
    return Images(pixels, labels, CLASSES).dataset("drawn-digits", split, np.arange(len(labels)))


@functools.cache
def _draw_split(split: str) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    count = COUNTS[split]
    labels = (Stream(_SEED, f"drawn-digits {split}").permutation(count) % CLASSES).astype(np.uint8)
    pixels = np.empty((count, 1, SIDE, SIDE), dtype=np.uint8)
    for digit in range(CLASSES):
        rows = np.flatnonzero(labels == digit)
        for start in range(0, len(rows), _DRAWN_AT_ONCE):
            part = rows[start : start + _DRAWN_AT_ONCE]
            pixels[part, 0] = draw(digit, Stream(_SEED, f"digit {split}"), part)
    return pixels, labels


def draw(digit: int, stream: Stream, numbers: NDArray[np.int64]) -> NDArray[np.uint8]:
    """Drawings of one digit, (drawings, 28, 28) from 0, paper, to 255, ink.

    Arguments:
        digit: 0 to 9.
        stream: of random numbers.
        numbers: (drawings,) which of its drawings.
    """
    zeros = np.zeros(len(numbers))
    choice = stream.uniforms(numbers, zeros, zeros, size=8)  # (drawings, 8)
    distance = np.full((len(numbers), SIDE, SIDE), np.inf)
    for place, stroke in enumerate(_STROKES[digit]):
        wobble = stream.uniforms(numbers, zeros + place + 1, zeros, size=2 * len(stroke)).reshape(-1, len(stroke), 2)
        points = _place(np.asarray(stroke) + _WOBBLE * (2 * wobble - 1), choice)
        distance = np.minimum(distance, _distance(points))
    pen = _PEN[0] + (_PEN[1] - _PEN[0]) * choice[:, 6, None, None]
    ink = np.clip((pen - distance) * SIDE + 0.5, 0, 1)  # a pixel at the edge is partly covered
    grain = stream.uniforms(numbers, zeros + 9, zeros, size=SIDE * SIDE).reshape(-1, SIDE, SIDE) - 0.5
    values = 255 * ink * (0.8 + 0.2 * choice[:, 7, None, None]) + _GRAIN * np.sqrt(12) * grain
    drawn: NDArray[np.uint8] = np.clip(np.round(values), 0, 255).astype(np.uint8)
    return drawn


def _place(points: Floats, choice: Floats) -> Floats:
    """Turn, slant, stretch and shift the points of every drawing, (drawings, points, 2)."""
    turn, slant, wide, high, right, down = (2 * choice[:, :6] - 1).T
    angle = _TURN * turn
    cos, sin = np.cos(angle), np.sin(angle)
    matrix = np.stack([np.stack([cos, -sin], axis=-1), np.stack([sin, cos], axis=-1)], axis=-2)  # (drawings, 2, 2)
    matrix[:, 0, 1] += _SLANT * slant
    scale = np.stack([1 + _STRETCH * wide, 1 + _STRETCH * high], axis=-1)[:, None, :]
    moved: Floats = np.einsum("nij,npj->npi", matrix, (points - 0.5) * scale) + 0.5
    return moved + _SHIFT * np.stack([right, down], axis=-1)[:, None, :]


def _distance(points: Floats) -> Floats:
    """The distance of every pixel from the line through the points, (drawings, 28, 28)."""
    middle = (np.arange(SIDE) + 0.5) / SIDE
    pixels = np.stack(np.meshgrid(middle, middle), axis=-1).reshape(-1, 2)  # (784, 2), x before y
    nearest = np.full((len(points), len(pixels)), np.inf)
    for start, stop in zip(points[:, :-1].swapaxes(0, 1), points[:, 1:].swapaxes(0, 1), strict=True):
        along = stop - start  # (drawings, 2)
        offset = pixels[None] - start[:, None]  # (drawings, 784, 2)
        length = np.maximum((along**2).sum(axis=1), 1e-12)[:, None]
        share = np.clip((offset @ along[:, :, None])[:, :, 0] / length, 0, 1)
        gap = offset - share[:, :, None] * along[:, None]
        nearest = np.minimum(nearest, np.sqrt((gap**2).sum(axis=2)))
    return nearest.reshape(-1, SIDE, SIDE)
