"""Random textures: clouds for fog, ice crystals for frost."""

import math

import numpy as np

from jostle.corruptions.corruption import CIFAR_SIDE, Draws, Floats
from jostle.corruptions.pixels import interpolate

_CRYSTALS = 14
_SINE = math.sqrt(3) / 2  # of 60 degrees


def clouds(draws: Draws, part: int, height: int, width: int, decay: float) -> Floats:
    """Fractal clouds from 0 to 1, # (images, height, width): diamond-square on a torus, read off at the image's pixels.

    The middle of every square, then of every diamond, is the mean of its four corners plus a uniform number between -a
    and a, where a falls by ``decay`` squared from one scale to the next, as in the program that made CIFAR-10-C. The
    grid is the smallest power of two that holds the longer side; at 32 x 32 its points are the pixels.
    """
    side = max(height, width)
    size = 2 ** math.ceil(math.log2(side))
    grid = _diamond_square(2 * draws.uniforms(part, size * size) - 1, size, decay)
    lowest, highest = grid.min(axis=(1, 2), keepdims=True), grid.max(axis=(1, 2), keepdims=True)
    grid = (grid - lowest) / (highest - lowest)
    for axis, length in ((1, height), (2, width)):
        around = np.concatenate([grid, grid.take([0], axis)], axis)  # the torus closes
        grid = interpolate(around, np.arange(length) * size / side, axis)
    return grid


def _diamond_square(noise: Floats, size: int, decay: float) -> Floats:
    """Heights on a torus, # (images, size, size), from uniform numbers in [-1, 1], # (images, size * size)."""
    count = len(noise)
    grid = np.zeros((count, size, size))
    step, amplitude, used = size, 1.0, 0
    while step >= 2:
        half, squares = step // 2, size // step
        bumps = amplitude * noise[:, used : used + 3 * squares * squares].reshape(count, 3, squares, squares)
        used += 3 * squares * squares
        corner = grid[:, ::step, ::step]
        below = np.roll(corner, -1, axis=1)
        centre = (corner + below + np.roll(corner + below, -1, axis=2)) / 4 + bumps[:, 0]
        grid[:, half::step, half::step] = centre
        sides = corner + np.roll(corner, -1, axis=2) + centre + np.roll(centre, 1, axis=1)
        grid[:, ::step, half::step] = sides / 4 + bumps[:, 1]
        grid[:, half::step, ::step] = (corner + below + centre + np.roll(centre, 1, axis=2)) / 4 + bumps[:, 2]
        step, amplitude = half, amplitude / decay**2
    return grid


def crystals(draws: Draws, part: int, height: int, width: int) -> Floats:
    """Ice crystals from 0 (none) to 1, # (images, height, width): six arms with side branches, at random places.

    In the coordinates of a crystal, folded into one sector of 60 degrees, u runs along the arm and v across it. The arm
    is exp(-v / w), its branches, at 60 degrees, are where (u - v / sqrt 3) / q is near a whole number, and both fade
    linearly from the centre to the tip. Where crystals overlap, the brighter one shows.
    """
    side = min(height, width)
    unit = side / CIFAR_SIDE
    row, column, turn, reach, strength = draws.uniforms(part, 5, _CRYSTALS).transpose(
        1, 2, 0
    )  # each (crystals, images)
    shape = (-1, 1, 1)
    texture = np.zeros((len(draws.indices), height, width))
    for number in range(_CRYSTALS):
        y = np.arange(height)[:, None] - ((1.2 * row[number] - 0.1) * height).reshape(shape)
        x = np.arange(width) - ((1.2 * column[number] - 0.1) * width).reshape(shape)
        angle = (turn[number] * math.pi / 3).reshape(shape)
        u, v = _fold(x * np.cos(angle) + y * np.sin(angle), y * np.cos(angle) - x * np.sin(angle))
        tip = ((0.25 + 0.45 * reach[number]) * side).reshape(shape)
        spacing, thickness = 0.09 * side, 0.55 * unit
        turns = (u - v / (2 * _SINE)) / spacing
        branch = np.abs(turns - np.rint(turns)) * spacing * _SINE
        fading = np.maximum(1 - np.hypot(u, v) / tip, 0.0) * (0.5 + 0.5 * strength[number]).reshape(shape)
        texture = np.maximum(texture, fading * np.exp(-np.minimum(v, 1.3 * branch) / thickness))
    return texture


def _fold(x: Floats, y: Floats) -> tuple[Floats, Floats]:
    """A point turned and mirrored into the sector from 0 to 30 degrees of a hexagonal star."""
    x, y = np.abs(x), np.abs(y)
    beyond = np.maximum(y / 2 - _SINE * x, 0.0)  # in front of the mirror at 60 degrees
    x, y = x + 2 * _SINE * beyond, y - beyond
    beyond = np.maximum(_SINE * y - x / 2, 0.0)  # and of the one at 30 degrees
    return x + beyond, np.abs(y - 2 * _SINE * beyond)
