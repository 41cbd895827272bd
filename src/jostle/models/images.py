"""The checks that models of images share: a batch has the size the model was built for, patches tile the image."""

from torch import Tensor

from jostle.base.errors import UsageError


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
