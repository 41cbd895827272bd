"""The checks that every model makes on its sizes when it is built and on its images when it is called."""

from collections.abc import Iterable

from torch import Tensor

from jostle.errors import UsageError
from jostle.registry import unknown_name


def check_positive(**sizes: object) -> None:
    """Raise unless every size is a whole number of at least 1.

    >>> check_positive(depth=0)
    Traceback (most recent call last):
    jostle.errors.UsageError: depth must be a whole number of at least 1, got 0
    """
    for name, size in sizes.items():
        if not isinstance(size, int) or isinstance(size, bool) or size < 1:
            raise UsageError(f"{name} must be a whole number of at least 1, got {size!r}")


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
