"""Operations on pixels that several corruptions share: reading between pixels, smearing, luminance.

Each image is computed by itself and with the same order of additions, so that its bits do not depend on the batch.
Matrix products and Fourier transforms would not promise that.
"""

from collections.abc import Sequence

import numpy as np

from jostle.corruptions.corruption import Floats

_NEGLIGIBLE = 1e-6  # share of the largest weight; far below a step of 8 bits
_LUMA = (0.299, 0.587, 0.114)  # ITU-R BT.601


def interpolate(images: Floats, positions: Floats, axis: int) -> Floats:
    """Linear interpolation of ``images`` along ``axis`` at ``positions``; beyond an edge its pixel is repeated.

    >>> interpolate(np.asarray([[0.0, 1.0, 4.0]]), np.asarray([0.5, 2.0, 9.0]), axis=1).tolist()
    [[0.5, 4.0, 4.0]]
    """
    last = images.shape[axis] - 1
    inside = np.clip(positions, 0, last)
    left = np.minimum(inside.astype(np.int64), last - 1)
    share = (inside - left).reshape([-1 if one == axis else 1 for one in range(images.ndim)])
    between: Floats = images.take(left, axis) * (1 - share) + images.take(left + 1, axis) * share
    return between


def zoom(images: Floats, factor: float) -> Floats:
    """``images`` magnified about their centre, # the same shape: the pixel p shows what was at c + (p - c) / factor."""
    for axis in (2, 3):
        centre = (images.shape[axis] - 1) / 2
        images = interpolate(images, centre + (np.arange(images.shape[axis]) - centre) / factor, axis)
    return images


def stretch_layers(layers: Floats, height: int, width: int) -> Floats:
    """``layers`` # (images, rows, columns) spread over # (images, height, width), corner to corner."""
    _, rows, columns = layers.shape
    tall = interpolate(layers, np.linspace(0, rows - 1, height), axis=1)
    return interpolate(tall, np.linspace(0, columns - 1, width), axis=2)


def bilinear(images: Floats, rows: Floats, columns: Floats) -> Floats:
    """Every image at its own positions, by bilinear interpolation; beyond an edge the picture is mirrored.

    Arguments:
        images: (images, channels, height, width).
        rows, columns: where to read, # (images, height, width).
    """
    count, channels, height, width = images.shape
    (top, down), (left, right) = _split(rows, height), _split(columns, width)
    flat, start = images.reshape(count, channels, -1), top * width + left

    def corner(offset: int) -> Floats:
        index = (start + offset).reshape(count, 1, -1)
        found: Floats = np.take_along_axis(flat, index, axis=2).reshape(images.shape)
        return found

    down, right = down[:, None], right[:, None]
    upper = corner(0) * (1 - right) + corner(1) * right
    lower = corner(width) * (1 - right) + corner(width + 1) * right
    return upper * (1 - down) + lower * down


def _split(positions: Floats, size: int) -> tuple[np.ndarray[tuple[int, ...], np.dtype[np.int64]], Floats]:
    """Positions, mirrored into 0 .. size - 1, as a whole part of at most size - 2 and the rest."""
    period = 2 * (size - 1)
    folded = np.mod(positions, period)
    folded = np.minimum(folded, period - folded)
    whole = np.minimum(folded.astype(np.int64), size - 2)
    return whole, folded - whole


def smear(images: Floats, radius: float, sigma: float, degrees: Floats) -> Floats:
    """Every image smeared along a direction of its own, with weights that fall like half of a Gaussian.

    out(p) = sum over i = 0 .. 2 radius of w_i image(p + i (sin a, cos a)), positions rounded to pixels, edges repeated,
    w_i proportional to exp(-i^2 / (2 sigma^2)): the motion blur of ImageMagick, which made CIFAR-10-C.

    Arguments:
        images: (images, channels, height, width).
        radius: half of the length in pixels; rounded.
        sigma: of the Gaussian, in pixels.
        degrees: the direction a of every image, from the horizontal, # (images,).
    """
    taps = np.arange(2 * max(1, round(radius)) + 1)
    weights = np.exp(-0.5 * (taps / sigma) ** 2)
    taps, weights = taps[weights > _NEGLIGIBLE], weights[weights > _NEGLIGIBLE]
    weights /= weights.sum()
    height, width = images.shape[2:]
    margin = int(taps[-1])
    padded = np.pad(images, ((0, 0), (0, 0), (margin, margin), (margin, margin)), mode="edge")
    blurred = np.zeros_like(images)
    down = margin + np.rint(taps * np.sin(np.radians(degrees))[:, None]).astype(np.int64)  # (images, taps)
    right = margin + np.rint(taps * np.cos(np.radians(degrees))[:, None]).astype(np.int64)
    # One image at a time: a window into memory costs less than gathering pixels of a batch by their indices.
    for one, wide, tops, lefts in zip(blurred, padded, down.tolist(), right.tolist(), strict=True):
        for weight, top, left in zip(weights.tolist(), tops, lefts, strict=True):
            one += weight * wide[:, top : top + height, left : left + width]
    return blurred


def luminance(images: Floats) -> Floats:
    """The brightness of every pixel, # (images, 1, height, width); a grey image stays as it is."""
    if images.shape[1] == 1:
        return images
    return sum((weight * images[:, [channel]] for channel, weight in enumerate(_LUMA)), np.zeros(1))


def paint(colour: Sequence[float], images: Floats) -> Floats:
    """``colour`` in the channels of ``images``, # (1, channels, 1, 1): its luminance if they are grey."""
    whole = np.asarray(colour, dtype=np.float64).reshape(1, 3, 1, 1)
    return whole if images.shape[1] == 3 else luminance(whole)
