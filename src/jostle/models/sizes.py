"""The checks that every model makes on its sizes when it is built and on its images when it is called."""

import math
from collections.abc import Iterable

from torch import Tensor

from jostle.base.errors import UsageError
from jostle.base.registry import unknown_name


def check_positive(**sizes: object) -> None:
    """Raise unless every size is a whole number of at least 1.

    >>> check_positive(depth=0)
    Traceback (most recent call last):
    jostle.base.errors.UsageError: depth must be a whole number of at least 1, got 0
    """
    for name, size in sizes.items():
        if not isinstance(size, int) or isinstance(size, bool) or size < 1:
            raise UsageError(f"{name} must be a whole number of at least 1, got {size!r}")


def check_several(name: str, sizes: object, what: str) -> None:
    """Raise unless ``sizes`` is a tuple or a list, not empty, of whole numbers of at least 1.

    >>> check_several("blocks", 2, "the number of blocks in each stage, e.g. (2, 2)")
    Traceback (most recent call last):
    jostle.base.errors.UsageError: blocks must be the number of blocks in each stage, e.g. (2, 2), got 2
    """
    if not isinstance(sizes, tuple | list) or not sizes:
        raise UsageError(f"{name} must be {what}, got {sizes!r}")
    for size in sizes:
        check_positive(**{name: size})


def check_share(**shares: object) -> None:
    """Raise unless every share is a number from 0 to below 1.

    >>> check_share(dropout=10)
    Traceback (most recent call last):
    jostle.base.errors.UsageError: dropout must be a number from 0 to below 1, got 10
    """
    for name, share in shares.items():
        if not isinstance(share, int | float) or isinstance(share, bool) or not 0 <= share < 1:
            raise UsageError(f"{name} must be a number from 0 to below 1, got {share!r}")


def check_factor(**factors: object) -> None:
    """Raise unless every factor is a finite number above 0.

    >>> check_factor(layer_scale=0)
    Traceback (most recent call last):
    jostle.base.errors.UsageError: layer_scale must be a finite number above 0, got 0
    """
    for name, factor in factors.items():
        if not isinstance(factor, int | float) or isinstance(factor, bool) or not 0 < factor < math.inf:
            raise UsageError(f"{name} must be a finite number above 0, got {factor!r}")


def check_choice(name: str, choice: object, known: Iterable[str]) -> None:
    """Raise unless ``choice`` is one of the ``known`` names."""
    known = list(known)
    if choice not in known:
        raise unknown_name(name, str(choice), known)


def check_patches(image_size: int, patch_size: int) -> None:
    """Raise unless square patches tile the square image."""
    if image_size % patch_size:
        raise UsageError(f"image_size={image_size} must be a multiple of patch_size={patch_size}")


def check_images(images: Tensor, channels: int, image_size: int) -> None:
    """Raise unless ``images`` is a batch of the size the model was built for, (batch, channels, height, width)."""
    expected = (channels, image_size, image_size)
    if images.shape[1:] != expected:
        raise UsageError(
            f"the model was built for images of shape {expected}, got a batch of shape {tuple(images.shape)}; "
            "pass image_size and channels that match"
        )
