"""What a newcomer gives by mistake: refused in one line, or warned about once."""

import warnings

import numpy as np
import pytest
import torch

from jostle.base.errors import UsageError
from jostle.corruptions import corrupt
from jostle.corruptions.corruption import read_names, read_severities

BYTES = np.random.default_rng(0).integers(0, 256, (8, 3, 8, 8), dtype=np.uint8)
FLOATS = BYTES / 127.5 - 1


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"name": None}, "name=None must be the name of a corruption, for example 'fog'"),
        ({"name": 3}, "name=3 must be the name of a corruption"),
        ({"name": ["fog"]}, "name=['fog'] must be the name of a corruption"),
        ({"value_range": (1, -1)}, "value_range=(1, -1) must be the values of black and white, the smaller first"),
        ({"value_range": (1, -1), "images": BYTES}, "value_range=(1, -1) must be the values"),
        ({"value_range": (1, -1), "images": FLOATS[:0]}, "value_range=(1, -1) must be the values"),
        ({"value_range": (np.nan, 1)}, "value_range=(nan, 1) must be the values"),
        ({"images": FLOATS[:0].astype(np.int64)}, "images have type int64"),
        ({"images": torch.zeros(2, 3, 8, 8).to(torch.float8_e4m3fn)}, "images have type torch.float8_e4m3fn"),
        ({"images": torch.zeros(2, 3, 8, 8).to_sparse()}, "images must be a dense tensor with values"),
        ({"images": torch.zeros(2, 3, 8, 8, device="meta")}, "images must be a dense tensor with values"),
        ({"indices": [[1], [1, 2]]}, "indices must be 8 whole numbers"),
        ({"severity": 0, "seed": 0.5}, "seed=0.5 must be a whole number"),
    ],
)
def test_wrong_use_is_one_clear_line(changes, message):
    with pytest.raises(UsageError) as caught:
        corrupt(**{"images": FLOATS, "name": "contrast", **changes})
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_dataset_is_told_where_its_images_are():
    class Held:
        inputs = FLOATS

    with pytest.raises(UsageError, match=r"got Held; give its \.inputs"):
        corrupt(Held(), "fog")


@pytest.mark.parametrize("shape", [(5, 3, 1, 1), (5, 1, 8, 1), (5, 3, 2, 3)])
def test_small_images_are_not_taken_for_images_with_the_channels_last(shape):
    with pytest.raises(UsageError, match=r"at least 4 pixels a side$"):
        corrupt(np.zeros(shape), "fog")


@pytest.mark.parametrize(
    ("images", "value_range", "message"),
    [
        (BYTES % 2, (-1, 1), "above 1, where white is 255; .* multiply by 255 before converting to uint8"),
        (BYTES / 255, (0, 255), r"above 1, where white is 255; .* give value_range=\(0, 1\)"),
        (BYTES / 255, (-1, 1), r"below 0, with value_range=\(-1, 1\); .* give value_range=\(0, 1\)"),
    ],
)
def test_another_scale_that_fits_is_warned_about_where_it_was_called(images, value_range, message):
    with pytest.warns(UserWarning, match=f"none of 8 images has a value {message}") as caught:
        corrupt(images, "contrast", value_range=value_range)
    assert [warning.filename for warning in caught] == [__file__]


@pytest.mark.parametrize(
    ("images", "value_range"),
    [(BYTES[:7] % 2, (-1, 1)), (BYTES * 0, (-1, 1)), (BYTES, (0, 1)), (BYTES / 1.0, (0, 255)), (FLOATS, (-1, 1))],
)
def test_few_images_black_ones_and_right_ones_are_not(images, value_range):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        corrupt(images, "contrast", value_range=value_range)


@pytest.mark.parametrize("kind", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
def test_every_kind_of_float_keeps_its_kind_and_its_range(kind):
    found = corrupt(torch.from_numpy(FLOATS).to(kind), "gaussian_noise", 5)
    assert found.dtype == kind
    assert found.abs().max() <= 1


def test_names_and_severities_in_all_their_forms():
    assert read_names("fog") == ("fog",)
    assert read_names(iter(["fog", "snow", "fog"])) == ("fog", "snow")
    assert len(read_names("common")) == 15
    assert read_severities(torch.tensor([2, 1, 2])) == (2, 1)
    assert read_severities(np.array([5])) == (5,)
    assert read_severities(iter([3])) == (3,)
