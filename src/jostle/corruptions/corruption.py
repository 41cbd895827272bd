"""What a corruption is: a function of images, random numbers and five settings, filed under a name and a family.

Here: the registry and the random numbers of an image. The corruptions themselves are in one file per family; what
``corrupt`` checks and converts around them is in ``corrupting``.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from jostle.errors import UsageError
from jostle.randomness import Stream
from jostle.registry import Registry, unknown_name

Floats = NDArray[np.float64]

FAMILIES = ("noise", "blur", "weather", "digital", "extra")
COMMON = "common"  # the first four families: the fifteen corruptions of the benchmark
MOST_SEVERE = 5
CIFAR_SIDE = 32


@dataclass(frozen=True)
class Draws:
    """The random numbers of the images of a batch: those of an image depend on seed, name and its index alone.

    Severity is no part of the address: a corruption that only grows stronger grows on the same noise.

    Arguments:
        stream: named after the corruption.
        indices: of the images, # (images,).
    """

    stream: Stream
    indices: NDArray[np.int64]

    def uniforms(self, part: int, *shape: int) -> Floats:
        """Numbers strictly between 0 and 1, # (images, *shape); every ``part`` of a corruption has its own."""
        zeros = np.zeros_like(self.indices)
        numbers = self.stream.uniforms(self.indices, zeros + part, zeros, int(np.prod(shape)))
        return numbers.reshape(len(self.indices), *shape)

    def between(self, part: int, low: float, high: float, *shape: int) -> Floats:
        """Uniform numbers between ``low`` and ``high``, # (images, *shape)."""
        return low + (high - low) * self.uniforms(part, *shape)

    def normals(self, part: int, *shape: int) -> Floats:
        """Standard normal numbers, # (images, *shape)."""
        numbers: Floats = special.ndtri(self.uniforms(part, *shape))
        return numbers


Apply = Callable[..., Floats]


class Corruption:
    """One corruption and its five settings.

    Arguments:
        name: as registered.
        family: one of ``FAMILIES``.
        settings: for the severities 1 to 5, what ``apply`` takes after images and draws.
        apply: from images in [0, 1], # (images, channels, height, width), their ``Draws`` and the settings to new
            images; what leaves [0, 1] is clipped by the caller.
    """

    def __init__(self, name: str, family: str, settings: tuple[tuple[Any, ...], ...], apply: Apply) -> None:
        self.name, self.family, self.settings, self._apply = name, family, settings, apply
        self.__doc__ = apply.__doc__

    def __repr__(self) -> str:
        return f"Corruption({self.name!r}, family={self.family!r})"

    def __call__(self, images: Floats, severity: int, draws: Draws) -> Floats:
        """The corrupted images, clipped to [0, 1]; ``severity`` from 1 to 5."""
        return np.clip(self._apply(images, draws, *self.settings[severity - 1]), 0.0, 1.0)


CORRUPTIONS = Registry[Corruption]("corruption", modules=[f"jostle.corruptions.{family}" for family in FAMILIES])


def corruption(name: str, family: str, settings: Iterable[tuple[Any, ...]]) -> Callable[[Apply], Apply]:
    """A decorator that registers a function as the corruption ``name``; see ``Corruption`` for its arguments."""
    five = tuple(settings)
    if family not in FAMILIES:
        raise unknown_name("family of corruptions", family, FAMILIES)
    if len(five) != MOST_SEVERE:
        raise UsageError(f"corruption {name!r} has {len(five)} settings; give one tuple for each severity from 1 to 5")

    def file(apply: Apply) -> Apply:
        CORRUPTIONS.register(name)(Corruption(name, family, five, apply))
        return apply

    return file


def names(family: str | None = None) -> list[str]:
    """Names of corruptions, family by family.

    >>> names("blur")
    ['defocus_blur', 'glass_blur', 'motion_blur', 'zoom_blur']
    >>> len(names("common")), len(names())
    (15, 19)

    Arguments:
        family: ``noise``, ``blur``, ``weather``, ``digital`` or ``extra``; ``common`` for the first four together, the
            fifteen of the benchmark; everything if left out.
    """
    if family is None:
        wanted: tuple[str, ...] = FAMILIES
    elif family == COMMON:
        wanted = FAMILIES[:-1]
    elif family in FAMILIES:
        wanted = (family,)
    else:
        raise unknown_name("family of corruptions", str(family), (*FAMILIES, COMMON))
    family_of = {name: CORRUPTIONS.get(name).family for name in CORRUPTIONS.names()}
    return [name for one in wanted for name in family_of if family_of[name] == one]


def scale_of(images: Floats) -> float:
    """By which lengths in pixels are multiplied: shorter side / 32, at least 1, so that they are CIFAR-10-C's at 32.

    Smaller images keep those lengths: a blur of a pixel's radius, made smaller, would be none.
    """
    height, width = images.shape[2:]
    return max(1.0, float(min(height, width)) / CIFAR_SIDE)
