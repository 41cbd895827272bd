import pytest
import torch

from jostle.errors import UsageError
from jostle.models.sizes import check_choice, check_images, check_patches, check_positive


def test_good_sizes_pass():
    check_positive(depth=1, dim=64)
    check_choice("attention", "relu", ["softmax", "relu"])
    check_patches(28, 7)
    check_images(torch.zeros(5, 3, 8, 8), 3, 8)


def test_the_second_size_is_checked_too():
    with pytest.raises(UsageError, match="dim must be a whole number of at least 1, got 0"):
        check_positive(depth=1, dim=0)


@pytest.mark.parametrize("choice", ["rleu", 3])
def test_choice(choice):
    with pytest.raises(UsageError, match=f"unknown attention '{choice}'"):
        check_choice("attention", choice, ["softmax", "relu"])


def test_patches():
    with pytest.raises(UsageError, match="image_size=28 must be a multiple of patch_size=8"):
        check_patches(28, 8)


@pytest.mark.parametrize("shape", [(5, 3, 8), (3, 8, 8), (5, 3, 8, 9), (5, 3, 9, 8)])
def test_images(shape):
    with pytest.raises(UsageError, match=r"built for images of shape \(3, 8, 8\)"):
        check_images(torch.zeros(shape), 3, 8)
