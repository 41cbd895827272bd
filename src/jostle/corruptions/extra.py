"""The four extra corruptions, meant for choosing settings: speckle noise, Gaussian blur, spatter and saturate.

Hendrycks and Dietterich (2019), settings of CIFAR-10-C.
"""

import numpy as np
from scipy import ndimage

from jostle.corruptions.blur import blur_gaussian
from jostle.corruptions.corruption import Draws, Floats, corruption, scale_of
from jostle.corruptions.pixels import paint

_WATER = (175 / 255, 238 / 255, 238 / 255)
_MUD = (63 / 255, 42 / 255, 20 / 255)
_FARTHEST = 20.0  # pixels from a contour beyond which water looks the same
_RELIEF = np.asarray([[-2.0, -1.0, 0.0], [-1.0, 1.0, 1.0], [0.0, 1.0, 2.0]])  # lit from one corner


@corruption("speckle_noise", "extra", [(0.06,), (0.1,), (0.12,), (0.16,), (0.2,)])
def speckle_noise(images: Floats, draws: Draws, std: float) -> Floats:
    """x + x * std * z with z standard normal: noise that grows with the signal."""
    return images + images * std * draws.normals(0, *images.shape[1:])


@corruption("gaussian_blur", "extra", [(0.4,), (0.6,), (0.7,), (0.8,), (1.0,)])
def gaussian_blur(images: Floats, draws: Draws, sigma: float) -> Floats:  # noqa: ARG001
    """Convolution with a Gaussian; sigma in pixels of a 32 x 32 image."""
    return blur_gaussian(images, sigma * scale_of(images))


@corruption(
    "spatter",
    "extra",
    [
        (0.62, 0.1, 0.7, 0.7, 0.5, "water"),
        (0.65, 0.1, 0.8, 0.7, 0.5, "water"),
        (0.65, 0.3, 1.0, 0.69, 0.5, "water"),
        (0.65, 0.1, 0.7, 0.69, 0.6, "mud"),
        (0.65, 0.1, 0.5, 0.68, 0.6, "mud"),
    ],
)
def spatter(
    images: Floats, draws: Draws, mean: float, std: float, size: float, threshold: float, strength: float, what: str
) -> Floats:
    """Drops on the lens: pale water, added, at severities 1 to 3; brown mud, which covers, at 4 and 5.

    Drops are where normal noise, blurred by a Gaussian of std ``size``, exceeds a threshold. Differs: the rim of a
    drop, from which the shading of water is made, is the border of that set here; in CIFAR-10-C an edge detector finds
    it.
    """
    scale = scale_of(images)
    layer = mean + std * _blur_noise(draws.normals(0, *images.shape[2:]), size, scale)
    drops = layer >= threshold
    if what == "mud":
        cover = blur_gaussian(drops.astype(np.float64), strength * scale)
        cover = np.where(cover < 0.8, 0.0, cover)[:, None]
        return images * (1 - cover) + cover * paint(_MUD, images)
    shine = np.where(drops, layer, 0.0) * np.stack([_shading(one, scale) for one in drops])
    highest = shine.max(axis=(1, 2), keepdims=True)
    shine = strength * shine / np.where(highest > 0, highest, 1.0)
    return images + shine[:, None] * paint(_WATER, images)


def _blur_noise(noise: Floats, size: float, scale: float) -> Floats:
    """Noise blurred by ``size * scale``, with the std that ``size`` alone would leave: as many drops at any size."""
    return blur_gaussian(noise, size * scale) * (_spread(size) / _spread(size * scale))


def _spread(sigma: float) -> float:
    """The std of white noise of std 1 after blurring rows and columns: the sum of the squared weights of one."""
    point = np.zeros(2 * int(4 * sigma + 1.5) + 1)
    point[len(point) // 2] = 1.0
    return float((ndimage.gaussian_filter1d(point, sigma) ** 2).sum())


def _shading(drops: np.ndarray[tuple[int, ...], np.dtype[np.bool_]], scale: float) -> Floats:
    """From 0 to 1, how much light every pixel of one image catches: the relief of the distance to the nearest rim."""
    rim = drops & ~ndimage.binary_erosion(drops)
    if not rim.any():
        return np.zeros(drops.shape)
    distance = np.minimum(ndimage.distance_transform_edt(~rim) / scale, _FARTHEST)
    width = 2 * max(1, round(scale)) + 1
    distance = ndimage.uniform_filter(distance, width, mode="mirror")
    levels, place = np.unique(np.floor(distance), return_inverse=True)
    counts = np.bincount(place.ravel(), minlength=len(levels))
    ranks = (np.cumsum(counts) - counts[0]) / max(1, distance.size - counts[0])  # histogram equalised
    lit = np.clip(ndimage.correlate(ranks[place].reshape(drops.shape), _RELIEF, mode="mirror"), 0.0, 1.0)
    smooth: Floats = ndimage.uniform_filter(lit, width, mode="mirror")
    return smooth


@corruption("saturate", "extra", [(0.3, 0.0), (0.1, 0.0), (1.5, 0.0), (2.0, 0.1), (2.5, 0.2)])
def saturate(images: Floats, draws: Draws, factor: float, more: float) -> Floats:  # noqa: ARG001
    """The saturation of every pixel times a factor, plus a constant, at most 1; hue and value stay.

    Severities 1 and 2 take colour away, 3 to 5 add some. A grey pixel counts as red of saturation 0. A grey image, one
    channel, has no saturation and stays as it is.
    """
    if images.shape[1] == 1:
        return images
    value, lowest = images.max(axis=1, keepdims=True), images.min(axis=1, keepdims=True)
    spread = value - lowest
    saturation = spread / np.where(value > 0, value, 1.0)
    new = np.clip(saturation * factor + more, 0.0, 1.0)
    # How far every channel is below the largest, as a share of the smallest channel's distance: the hue.
    depth = np.where(
        spread > 0, (value - images) / np.where(spread > 0, spread, 1.0), np.reshape([0, 1, 1], (1, 3, 1, 1))
    )
    coloured: Floats = value * (1 - depth * new)
    return coloured
