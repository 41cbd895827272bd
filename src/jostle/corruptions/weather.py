"""Weather: snow, frost, fog and brightness. Hendrycks and Dietterich (2019), settings of CIFAR-10-C.

Lengths are in pixels of a 32 x 32 image; they grow with the shorter side.
"""

import math

import numpy as np

from jostle.corruptions.corruption import Draws, Floats, corruption, scale_of
from jostle.corruptions.pixels import luminance, paint, smear, stretch_layers
from jostle.corruptions.textures import clouds, crystals

# Mean colour and spread of the published photographs at the size at which CIFAR-10-C uses them.
_FROST_COLOUR = (0.565, 0.648, 0.695)
_FROST_LEVEL_STD = 0.15  # from one cut-out to another


@corruption(
    "snow",
    "weather",
    [
        (0.1, 0.2, 1.0, 0.6, 8, 3.0, 0.95),
        (0.1, 0.2, 1.0, 0.5, 10, 4.0, 0.9),
        (0.15, 0.3, 1.75, 0.55, 10, 4.0, 0.9),
        (0.25, 0.3, 2.25, 0.6, 12, 6.0, 0.85),
        (0.3, 0.3, 1.25, 0.65, 14, 12.0, 0.8),
    ],
)
def snow(
    images: Floats,
    draws: Draws,
    mean: float,
    std: float,
    flake: float,
    threshold: float,
    radius: float,
    sigma: float,
    clearness: float,
) -> Floats:
    """White flakes, smeared as they fall, over a whitened image.

    Flakes are normal noise, magnified, cut off below a threshold and smeared at -135 to -45 degrees; they are added
    once as they are and once turned by 180 degrees. The image turns to max(x, 1.5 grey + 0.5) by 1 - clearness.
    """
    height, width = images.shape[2:]
    scale = scale_of(images)
    magnification = flake * scale
    layer = mean + std * draws.normals(0, math.ceil(height / magnification), math.ceil(width / magnification))
    layer = stretch_layers(layer, height, width)
    layer = np.where(layer < threshold, 0.0, np.minimum(layer, 1.0))[:, None]  # (images, 1, height, width)
    layer = smear(layer, radius * scale, sigma * scale, draws.between(1, -135.0, -45.0))
    whitened = np.maximum(images, 1.5 * luminance(images) + 0.5)
    return clearness * images + (1 - clearness) * whitened + layer + layer[:, :, ::-1, ::-1]


@corruption("frost", "weather", [(1.0, 0.2), (1.0, 0.3), (0.9, 0.4), (0.85, 0.4), (0.75, 0.45)])
def frost(images: Floats, draws: Draws, clearness: float, thickness: float) -> Floats:
    """clearness * x + thickness * ice, where the ice is drawn by a formula, not photographed.

    Differs: CIFAR-10-C adds cut-outs of five photographs. Ours is six-armed crystals and clouds in a bluish grey, with
    the mean colour of those photographs, the spread of brightness between them and about that within them.
    """
    height, width = images.shape[2:]
    level = math.sqrt(3) * _FROST_LEVEL_STD * (2 * draws.uniforms(0, 1, 1) - 1)  # uniform, with that std
    texture = 0.45 * crystals(draws, 1, height, width) + 0.2 * clouds(draws, 2, height, width, 1.4)
    texture = texture - texture.reshape(len(texture), -1).mean(axis=1)[:, None, None]
    ice = np.clip(paint(_FROST_COLOUR, images) + (level + texture)[:, None], 0.0, 1.0)
    iced: Floats = clearness * images + thickness * ice
    return iced


@corruption("fog", "weather", [(0.2, 3.0), (0.5, 3.0), (0.75, 2.5), (1.0, 2.0), (1.5, 1.75)])
def fog(images: Floats, draws: Draws, thickness: float, decay: float) -> Floats:
    """(x + thickness * clouds) * m / (m + thickness), with m the largest value of the image."""
    height, width = images.shape[2:]
    brightest = images.max(axis=(1, 2, 3), keepdims=True)
    layer = clouds(draws, 0, height, width, decay)[:, None]
    foggy: Floats = (images + thickness * layer) * brightest / (brightest + thickness)
    return foggy


@corruption("brightness", "weather", [(0.05,), (0.1,), (0.15,), (0.2,), (0.3,)])
def brightness(images: Floats, draws: Draws, more: float) -> Floats:  # noqa: ARG001
    """The value (largest channel) of every pixel plus a constant, at most 1; hue and saturation stay: daylight."""
    value = images.max(axis=1, keepdims=True)
    brighter = np.minimum(value + more, 1.0)
    # A black pixel has no colour to keep: it turns grey.
    lit: Floats = np.where(value > 0, images * (brighter / np.where(value > 0, value, 1.0)), brighter)
    return lit
