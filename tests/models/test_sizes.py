import pytest
import torch

from jostle.base.errors import UsageError
from jostle.models.sizes import (
    check_choice,
    check_factor,
    check_images,
    check_patches,
    check_positive,
    check_several,
    check_share,
)


def test_good_sizes_pass():
    check_positive(depth=1, dim=64)
    check_choice("attention", "relu", ["softmax", "relu"])
    check_patches(28, 7)
    check_images(torch.zeros(5, 3, 8, 8), 3, 8)
    check_several("blocks", (2, 1), "blocks")
    check_several("blocks", [2], "blocks")
    check_share(dropout=0, embedding_dropout=0.99)
    check_factor(layer_scale=1e-6, other=3)


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


@pytest.mark.parametrize("share", [-0.1, 1, 1.5, float("nan"), "0.1", None, True])
def test_shares(share):
    with pytest.raises(UsageError, match=f"dropout must be a number from 0 to below 1, got {share!r}"):
        check_share(other=0.5, dropout=share)


@pytest.mark.parametrize("factor", [0, -1.0, float("inf"), float("nan"), "1", None, True])
def test_factors(factor):
    with pytest.raises(UsageError, match=f"layer_scale must be a finite number above 0, got {factor!r}"):
        check_factor(other=1, layer_scale=factor)


@pytest.mark.parametrize("sizes", [(), [], 3, "12", None, {2: 3}])
def test_several_needs_a_list(sizes):
    with pytest.raises(UsageError, match="blocks must be how many, got"):
        check_several("blocks", sizes, "how many")


def test_several_checks_every_entry():
    with pytest.raises(UsageError, match="blocks must be a whole number of at least 1, got -1"):
        check_several("blocks", (1, -1), "blocks")
