"""Digital processing: contrast, elastic transform, pixelate and JPEG. Hendrycks and Dietterich (2019).

Settings of CIFAR-10-C.
"""

import io

import numpy as np
from scipy import ndimage

from jostle.corruptions.corruption import Draws, Floats, corruption
from jostle.corruptions.pixels import bilinear


@corruption("contrast", "digital", [(0.75,), (0.5,), (0.4,), (0.3,), (0.15,)])
def contrast(images: Floats, draws: Draws, share: float) -> Floats:  # noqa: ARG001
    """mean + share * (x - mean), with the mean of every channel over the image."""
    mean = images.reshape(*images.shape[:2], -1).mean(axis=2)[:, :, None, None]
    flatter: Floats = mean + share * (images - mean)
    return flatter


@corruption(
    "elastic_transform",
    "digital",
    [(0.0, 0.0, 0.08), (0.05, 0.2, 0.07), (0.08, 0.06, 0.06), (0.1, 0.04, 0.05), (0.1, 0.03, 0.03)],
)
def elastic_transform(images: Floats, draws: Draws, stretch: float, smoothness: float, shear: float) -> Floats:
    """A random affine map, then a random displacement of every pixel; lengths are shares of the shorter side.

    Three corners of a square in the middle move by up to ``shear`` in each direction and take the image with them. The
    displacement is uniform noise in [-1, 1], blurred by a Gaussian of std ``smoothness``, times ``stretch``. Mind that
    severity 1 has the largest shear and no displacement.
    """
    height, width = images.shape[2:]
    side = min(height, width)
    rows, columns = np.meshgrid(np.arange(height), np.arange(width), indexing="ij")
    maps = _affine(draws.between(0, -shear * side, shear * side, 3, 2), height // 2, width // 2, side // 3)
    y, x = (maps[:, axis, 0, None, None] * rows + maps[:, axis, 1, None, None] * columns for axis in (0, 1))
    images = bilinear(images, y + maps[:, 0, 2, None, None], x + maps[:, 1, 2, None, None])
    if stretch == 0:
        return images
    noise = draws.between(1, -1.0, 1.0, 2, height, width)
    shift = stretch * side * ndimage.gaussian_filter(noise, smoothness * side, truncate=3.0, axes=(2, 3))
    return bilinear(images, rows + shift[:, 0], columns + shift[:, 1])


def _affine(moves: Floats, row: int, column: int, reach: int) -> Floats:
    """For every image the affine map from a pixel to where its colour comes from, # (images, 2, 3): [A | b].

    The corners (row + reach, column + reach), (row + reach, column - reach) and (row - reach, column - reach) go to
    where ``moves``, # (images, 3, 2), takes them; the map that is returned takes them back.
    """
    corners = np.asarray([row, column]) + reach * np.asarray([[1, 1], [1, -1], [-1, -1]])
    moved = corners + moves
    # Cramer's rule on the two edges that meet in the middle corner: its bits do not depend on the batch.
    (a, c), (b, d) = (moved[:, 0] - moved[:, 1]).T, (moved[:, 2] - moved[:, 1]).T  # edges as columns (a c), (b d)
    inverse = np.stack([d, -b, -c, a], axis=1).reshape(-1, 2, 2) / (a * d - b * c)[:, None, None]
    edges = np.stack([corners[0] - corners[1], corners[2] - corners[1]], axis=1).astype(np.float64)
    linear = edges[:, [0]] * inverse[:, [0]] + edges[:, [1]] * inverse[:, [1]]
    middle = moved[:, 1]
    offset = corners[1] - linear[:, :, 0] * middle[:, [0]] - linear[:, :, 1] * middle[:, [1]]
    return np.concatenate([linear, offset[:, :, None]], axis=2)


@corruption("pixelate", "digital", [(0.95,), (0.9,), (0.85,), (0.75,), (0.65,)])
def pixelate(images: Floats, draws: Draws, share: float) -> Floats:  # noqa: ARG001
    """Scaled down to a share of the size by means over boxes, then up again by repeating pixels."""
    for axis in (2, 3):
        images = _boxes(images, max(1, int(images.shape[axis] * share)), axis)
    return images


def _boxes(images: Floats, count: int, axis: int) -> Floats:
    """Every pixel replaced by the mean of its box, of ``count`` boxes along ``axis``.

    Box k holds the pixels whose centres lie in (k s, (k + 1) s], s = size / count, and is shown at the pixels whose
    centres lie in [k s, (k + 1) s): Pillow's box filter, down and up.
    """
    size = images.shape[axis]
    starts = (2 * np.arange(count) * size - count) // (2 * count) + 1  # in whole numbers: no rounding at a border
    widths = np.diff(np.append(starts, size)).reshape([-1 if one == axis else 1 for one in range(4)])
    means = np.add.reduceat(images, starts, axis) / widths
    shown: Floats = means.take((2 * np.arange(size) + 1) * count // (2 * size), axis)
    return shown


@corruption("jpeg_compression", "digital", [(80,), (65,), (58,), (50,), (40,)])
def jpeg_compression(images: Floats, draws: Draws, quality: int) -> Floats:  # noqa: ARG001
    """Rounded to 8 bits, written as JPEG of some quality and read again, by Pillow."""
    from PIL import Image  # a moment to import, and only needed here

    pixels = np.rint(images * 255).astype(np.uint8).transpose(0, 2, 3, 1)
    read = np.empty(pixels.shape, dtype=np.uint8)
    for one, result in zip(pixels, read, strict=True):
        file = io.BytesIO()
        Image.fromarray(one if one.shape[2] == 3 else one[:, :, 0]).save(file, format="JPEG", quality=quality)
        with Image.open(file) as opened:
            result[:] = np.asarray(opened).reshape(one.shape)
    return read.transpose(0, 3, 1, 2) / 255.0
