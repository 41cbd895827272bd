"""What every corruption must do, and what ``corrupt`` says to images it cannot use."""

import itertools
import sys

import numpy as np
import pytest
import torch

from jostle.base.errors import UsageError
from jostle.corruptions import CORRUPTIONS, corrupt, names
from tests.corruptions.pictures import natural

# The published settings do not grow: a smaller shear and more displacement; less colour, then more; rounds of a blur
# that grows, then shrinks; clearness that falls, so that the added ice and the lost light cancel; water, then mud.
NOT_GROWING = {"elastic_transform", "saturate", "glass_blur", "frost", "spatter"}
DETERMINISTIC = {
    "defocus_blur",
    "zoom_blur",
    "brightness",
    "contrast",
    "pixelate",
    "jpeg_compression",
    "gaussian_blur",
    "saturate",
}
SIZES = [(28, 28), (33, 33), (17, 40), (4, 4), (50, 35)]


def distances(name, images):
    return [np.abs(corrupt(images, name, s, value_range=(0, 1)) - images).mean() for s in range(1, 6)]


@pytest.mark.parametrize("name", names())
class TestEveryCorruption:
    def test_severity_0_is_the_identity_bit_for_bit(self, name):
        for images in (torch.from_numpy(natural(3)) * 2 - 1, natural(3).astype(np.float32) * 2 - 1):
            same = corrupt(images, name, severity=0)
            assert (same == images).all()
            assert same is not images

    def test_every_severity_changes_the_images_but_not_their_range(self, name):
        images = natural(4) * 2 - 1
        before = images.copy()
        for severity in range(1, 6):
            corrupted = corrupt(images, name, severity)
            assert corrupted.shape == images.shape
            assert np.isfinite(corrupted).all()
            assert corrupted.min() >= -1
            assert corrupted.max() <= 1
            assert (corrupted != images).any(axis=(1, 2, 3)).all()
        assert (images == before).all()

    @pytest.mark.parametrize("kind", ["float16", "bfloat16", "float32", "float64", "uint8"])
    def test_type_is_kept_and_means_the_same(self, name, kind):
        dtype = getattr(torch, kind)
        images = torch.from_numpy(natural(3))
        given = (images * 255).round().to(dtype) if kind == "uint8" else (images * 2 - 1).to(dtype)
        corrupted = corrupt(given, name, severity=3)
        assert (corrupted.dtype, corrupted.device, corrupted.shape) == (dtype, given.device, given.shape)
        exact = corrupt((given.double() / 127.5 - 1) if kind == "uint8" else given.double(), name, severity=3)
        found = corrupted.double() / 127.5 - 1 if kind == "uint8" else corrupted.double()
        rounding = {"uint8": 1 / 255 + 1e-9, "float16": 1e-3, "bfloat16": 8e-3, "float32": 1e-6, "float64": 0}[kind]
        assert (found - exact).abs().max() <= rounding

    def test_arrays_and_tensors_agree_and_ranges_are_only_names(self, name):
        images = natural(3)
        expected = corrupt(images, name, 4, value_range=(0, 1))
        assert (corrupt(torch.from_numpy(images), name, 4, value_range=(0, 1)).numpy() == expected).all()
        other = corrupt(images * 5 - 3, name, 4, value_range=(-3, 2))
        # shot noise and glass have steps, JPEG rounds: a value in ten thousand may fall on the other side
        assert np.quantile(np.abs((other + 3) / 5 - expected), 0.999) < 1e-9

    def test_seed_and_index_decide_and_nothing_else(self, name):
        images = natural(6, seed=1)
        whole = corrupt(images, name, 3, seed=5, value_range=(0, 1))
        assert (corrupt(images, name, 3, seed=5, value_range=(0, 1)) == whole).all()
        for rows in ([4], [5, 0, 2], [1, 2, 3]):
            part = corrupt(images[rows], name, 3, seed=5, value_range=(0, 1), indices=rows)
            assert (part == whole[rows]).all()
        twice = corrupt(images[[0, 0]], name, 3, seed=5, value_range=(0, 1))
        assert (twice[0] == whole[0]).all()
        assert (twice[1] == twice[0]).all() == (name in DETERMINISTIC)
        assert (corrupt(images, name, 3, seed=6, value_range=(0, 1)) == whole).all() == (name in DETERMINISTIC)

    def test_memory_pieces_do_not_show(self, name, monkeypatch):
        images = natural(5, height=17, width=20)
        whole = corrupt(images, name, 2, value_range=(0, 1))
        monkeypatch.setattr(sys.modules["jostle.corruptions.corruption"], "_VALUES_AT_ONCE", 2 * images[0].size)
        assert (corrupt(images, name, 2, value_range=(0, 1)) == whole).all()

    @pytest.mark.parametrize("size", SIZES)
    @pytest.mark.parametrize("channels", [1, 3])
    def test_any_size(self, name, size, channels):
        images = natural(1, channels, *size)
        for severity in (1, 5):
            corrupted = corrupt(images, name, severity, value_range=(0, 1))
            assert corrupted.shape == images.shape
            assert np.isfinite(corrupted).all()

    @pytest.mark.parametrize(("size", "count"), [(28, 12), (32, 12), (64, 3)])
    def test_distance_from_clean_grows_with_severity(self, name, size, count):
        found = distances(name, natural(count, height=size, width=size, seed=2))
        assert min(found) > 0.001
        if name not in NOT_GROWING:
            assert all(later >= 0.99 * earlier for earlier, later in itertools.pairwise(found)), found
            assert found[4] > 1.3 * found[0]
        assert max(found) < 0.35

    def test_images_without_a_picture(self, name):
        for level in (0.0, 1.0):
            corrupted = corrupt(np.full((2, 3, 32, 32), level), name, 5, value_range=(0, 1))
            assert np.isfinite(corrupted).all()


GREY_IS_COLOUR = ["brightness", "contrast", "defocus_blur", "elastic_transform", "fog", "gaussian_blur", "glass_blur"]
GREY_IS_COLOUR += ["motion_blur", "pixelate", "snow", "zoom_blur"]


@pytest.mark.parametrize("name", GREY_IS_COLOUR)
def test_grey_is_colour_with_equal_channels(name):
    grey = natural(3, channels=1)
    for severity in (1, 3, 5):
        alone = corrupt(grey, name, severity, value_range=(0, 1))
        colour = corrupt(grey.repeat(3, axis=1), name, severity, value_range=(0, 1))
        np.testing.assert_allclose(colour, alone.repeat(3, axis=1), atol=1e-12)


def test_grey_jpeg_is_colour_jpeg_up_to_rounding():
    grey = natural(3, channels=1)
    alone, colour = (corrupt(x, "jpeg_compression", 3, value_range=(0, 1)) for x in (grey, grey.repeat(3, axis=1)))
    assert np.abs(colour - alone).max() <= 2.01 / 255


def test_spatter_and_frost_in_grey_are_as_bright_as_in_colour():
    grey = natural(3, channels=1) * 0.3 + 0.2  # far from being clipped
    luma = np.asarray([0.299, 0.587, 0.114])[:, None, None]
    for name, severity in (("frost", 1), ("spatter", 4)):
        alone = corrupt(grey, name, severity, value_range=(0, 1))
        colour = corrupt(grey.repeat(3, axis=1), name, severity, value_range=(0, 1))
        np.testing.assert_allclose((colour * luma).sum(axis=1, keepdims=True), alone, atol=0.01)


def test_names_and_families():
    assert len(names()) == 19
    assert sorted(names()) == CORRUPTIONS.names()
    assert [len(names(family)) for family in ("noise", "blur", "weather", "digital", "extra")] == [3, 4, 4, 4, 4]
    assert names("common") == [name for name in names() if name not in names("extra")]
    with pytest.raises(UsageError, match="unknown family of corruptions 'wheather'; did you mean weather"):
        names("wheather")


def test_tensors_stay_where_they_are_and_get_no_gradient():
    images = torch.rand(2, 1, 8, 8, requires_grad=True)
    assert not corrupt(images, "fog", 2, value_range=(0, 1)).requires_grad
    strided = torch.rand(2, 8, 8, 3).permute(0, 3, 1, 2)
    expected = corrupt(strided.contiguous(), "snow", 2, value_range=(0, 1))
    assert torch.equal(corrupt(strided, "snow", 2, value_range=(0, 1)), expected)


def test_no_images_are_no_error():
    assert corrupt(np.zeros((0, 3, 32, 32)), "fog").shape == (0, 3, 32, 32)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"name": "fogg"}, "unknown corruption 'fogg'; did you mean fog"),
        ({"severity": 6}, "severity=6 must be a whole number from 0 to 5"),
        ({"severity": 1.5}, "severity=1.5 must be a whole number"),
        ({"severity": True}, "severity=True must be a whole number"),
        ({"seed": 0.5}, "seed=0.5 must be a whole number"),
        ({"images": [[1.0]]}, "images must be a tensor or a numpy array, got list"),
        ({"images": np.zeros((3, 32, 32))}, "add the missing axis"),
        ({"images": np.zeros((5, 32, 32, 3))}, "if the channels come last, move them"),
        ({"images": np.zeros((5, 2, 32, 32))}, "with 1 or 3 channels"),
        ({"images": np.zeros((5, 3, 32, 3))}, "at least 4 pixels a side"),
        ({"images": np.zeros((5, 3, 32, 32), dtype=np.int64)}, "images have type int64; expected floats"),
        ({"images": torch.zeros(5, 3, 32, 32, dtype=torch.bool)}, "images have type torch.bool"),
        ({"images": np.full((2, 1, 8, 8), 200.0)}, "they look like pixels from 0 to 255: convert them to uint8"),
        ({"images": np.full((2, 1, 8, 8), -2.1)}, "from -2.1 to -2.1, outside of value_range=(-1, 1); give the values"),
        ({"images": np.full((2, 1, 8, 8), np.nan)}, "not finite"),
        ({"value_range": (1, 1)}, "value_range=(1, 1) must be the values of black and white"),
        ({"value_range": "x"}, "value_range='x' must be"),
        ({"value_range": 3}, "value_range=3 must be"),
        ({"indices": [0]}, "indices must be 2 whole numbers"),
        ({"indices": [0, -1]}, "indices must be 2 whole numbers"),
        ({"indices": [0.0, 1.0]}, "indices must be 2 whole numbers"),
    ],
)
def test_wrong_use_is_one_clear_line(changes, message):
    given = {"images": np.zeros((2, 3, 32, 32)), "name": "contrast", **changes}
    with pytest.raises(UsageError) as caught:
        corrupt(**given)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_images_that_look_scaled_to_0_1_are_warned_about():
    with pytest.warns(UserWarning, match=r"none of 8 images has a value below 0.*give value_range=\(0, 1\)"):
        corrupt(natural(8), "contrast")
    corrupt(natural(7), "contrast")  # too few to tell
    corrupt(np.zeros((8, 1, 8, 8)), "contrast")  # plain grey


def test_rounding_beyond_the_range_is_forgiven():
    images = np.full((1, 1, 8, 8), np.float32(1 + 1e-6))
    assert corrupt(images, "gaussian_blur", 1).max() <= 1
