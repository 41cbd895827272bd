import pytest
import torch

from jostle.base.errors import UsageError
from jostle.models.images import check_images, check_patches


def test_images_and_patches_that_fit():
    check_patches(28, 7)
    check_images(torch.zeros(5, 3, 8, 8), 3, 8)


def test_patches():
    with pytest.raises(UsageError, match="image_size=28 must be a multiple of patch_size=8"):
        check_patches(28, 8)


@pytest.mark.parametrize("shape", [(5, 3, 8), (3, 8, 8), (5, 3, 8, 9), (5, 3, 9, 8)])
def test_images(shape):
    with pytest.raises(UsageError, match=r"built for images of shape \(3, 8, 8\)"):
        check_images(torch.zeros(shape), 3, 8)
