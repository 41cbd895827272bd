"""Blur of a lens, a window, a movement: defocus, glass, motion and zoom blur. Hendrycks and Dietterich (2019).

Lengths are in pixels of a 32 x 32 image; they grow with the shorter side. Settings of CIFAR-10-C.
"""

import numpy as np
from scipy import ndimage

from jostle.corruptions.corruption import Draws, Floats, corruption, scale_of
from jostle.corruptions.pixels import smear, zoom

_TRUNCATE = 4.0  # standard deviations after which a Gaussian ends


def blur_gaussian(images: Floats, sigma: float) -> Floats:
    """The last two axes blurred by a Gaussian; edge pixels are repeated."""
    blurred: Floats = ndimage.gaussian_filter(images, sigma, mode="nearest", truncate=_TRUNCATE, axes=(-2, -1))
    return blurred


@corruption("defocus_blur", "blur", [(0.3, 0.4), (0.4, 0.5), (0.5, 0.6), (1.0, 0.2), (1.5, 0.1)])
def defocus_blur(images: Floats, draws: Draws, radius: float, softness: float) -> Floats:  # noqa: ARG001
    """Convolution with a disk of some radius whose rim is softened by a small Gaussian: out of focus.

    At 32 x 32 a disk with a radius below 1 is a single pixel, and the Gaussian does the blurring; so at any size.
    """
    scale = scale_of(images)
    kernel = disk(radius * scale if radius >= 1 else 0.0, softness * scale, max(1, round(scale)))
    blurred: Floats = ndimage.correlate(images, kernel[None, None], mode="mirror")
    return blurred


def disk(radius: float, softness: float, reach: int) -> Floats:
    """Weights of a disk on the pixel grid, blurred by a Gaussian cut off ``reach`` pixels from its centre; sum 1.

    >>> disk(1.0, 0.01, 1)[1:-1, 1:-1].round(2).tolist()
    [[0.0, 0.2, 0.0], [0.2, 0.2, 0.2], [0.0, 0.2, 0.0]]
    """
    half = int(radius) + reach
    offsets = np.arange(-half, half + 1)
    inside = (offsets[:, None] ** 2 + offsets**2 <= radius**2).astype(np.float64)
    bell = np.exp(-0.5 * (np.arange(-reach, reach + 1) / softness) ** 2)
    for axis in (0, 1):
        inside = ndimage.correlate1d(inside, bell / bell.sum(), axis, mode="constant")
    weights: Floats = inside / inside.sum()
    return weights


@corruption("glass_blur", "blur", [(0.05, 1), (0.25, 1), (0.4, 1), (0.25, 2), (0.4, 2)])
def glass_blur(images: Floats, draws: Draws, sigma: float, rounds: int) -> Floats:
    """Gaussian blur, then every pixel becomes one of its neighbours, then blur again: frosted glass.

    A pixel takes the value of the pixel -d .. d - 1 rows and columns away, d = 1 at 32 x 32, all at once; a border of
    d + 1 rows and columns on top and left, and of d - 1 on the other sides, stays. The published program means to swap
    neighbours one after the other but overwrites one of the two; at 32 x 32 this is what it then does.
    """
    scale = scale_of(images)
    images = blur_gaussian(images, sigma * scale)
    count, channels, height, width = images.shape
    delta = max(1, round(scale))
    rows, columns = np.arange(delta + 1, height - delta + 1), np.arange(delta + 1, width - delta + 1)
    for part in range(rounds):
        steps = np.floor(draws.between(part, -delta, delta, 2, len(rows), len(columns))).astype(np.int64)
        source = (rows[:, None] + steps[:, 0]) * width + columns + steps[:, 1]  # (images, rows, columns)
        flat = images.reshape(count, channels, -1)
        moved = np.take_along_axis(flat, source.reshape(count, 1, -1), axis=2)
        images = images.copy()
        images[:, :, rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1] = moved.reshape(
            count, channels, len(rows), len(columns)
        )
    return blur_gaussian(images, sigma * scale)


@corruption("motion_blur", "blur", [(6, 1.0), (6, 1.5), (6, 2.0), (8, 2.0), (9, 2.5)])
def motion_blur(images: Floats, draws: Draws, radius: float, sigma: float) -> Floats:
    """A smear in a direction between -45 and 45 degrees from the horizontal: a camera that moved."""
    scale = scale_of(images)
    return smear(images, radius * scale, sigma * scale, draws.between(0, -45.0, 45.0))


@corruption("zoom_blur", "blur", [(1.06,), (1.11,), (1.15,), (1.20,), (1.25,)])
def zoom_blur(images: Floats, draws: Draws, largest: float) -> Floats:  # noqa: ARG001
    """The mean of the image and of its magnifications by 1.00, 1.01 and so on up to the largest: it came near."""
    factors = 1 + np.arange(round((largest - 1) * 100) + 1) / 100
    total = images.copy()
    for factor in factors.tolist():
        total += zoom(images, factor)
    return total / (len(factors) + 1)
