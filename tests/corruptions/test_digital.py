import io
from fractions import Fraction

import numpy as np
import pytest
from PIL import Image

from jostle.corruptions import corrupt
from jostle.corruptions.digital import _affine, _boxes
from tests.corruptions.pictures import natural


@pytest.mark.parametrize(("severity", "share"), list(enumerate([0.75, 0.5, 0.4, 0.3, 0.15], start=1)))
def test_contrast_shrinks_around_the_mean_of_each_channel(severity, share):
    images = natural(2)
    mean = images.mean(axis=(2, 3), keepdims=True)
    found = corrupt(images, "contrast", severity, value_range=(0, 1))
    np.testing.assert_allclose(found, mean + share * (images - mean), atol=1e-12)
    np.testing.assert_allclose(found.std(axis=(2, 3)), share * images.std(axis=(2, 3)))


@pytest.mark.parametrize(("severity", "share"), list(enumerate([0.95, 0.9, 0.85, 0.75, 0.65], start=1)))
@pytest.mark.parametrize("size", [(32, 32), (28, 28), (28, 40)])  # no pixel halfway between two boxes
def test_pixelate_is_pillows_box_filter_down_and_up(severity, share, size):
    height, width = size
    pixels = (natural(1, 1, height, width)[0, 0] * 255).astype(np.uint8)
    small = Image.fromarray(pixels).resize((int(width * share), int(height * share)), Image.Resampling.BOX)
    expected = np.asarray(small.resize((width, height), Image.Resampling.BOX)).astype(float)
    found = corrupt(pixels[None, None] / 255.0, "pixelate", severity, value_range=(0, 1))[0, 0] * 255
    assert np.abs(found - expected).max() <= 1.01  # Pillow rounds to 8 bits after each direction


def test_boxes_that_fit_are_block_means():
    images = natural(2, 3, 12, 8)
    found = _boxes(_boxes(images, 4, 2), 2, 3)
    means = images.reshape(2, 3, 4, 3, 2, 4).mean(axis=(3, 5))
    np.testing.assert_allclose(found, means.repeat(3, axis=2).repeat(4, axis=3))


@pytest.mark.parametrize(("size", "count"), [(17, 14), (33, 21), (5, 3), (7, 7), (9, 1)])
def test_boxes_of_any_size_hold_whole_pixels(size, count):
    line = natural(1, 1, size, 4)[0, 0, :, 0]
    centres = [Fraction(2 * pixel + 1, 2) for pixel in range(size)]
    width = Fraction(size, count)
    boxes = [[pixel for pixel in range(size) if k * width < centres[pixel] <= (k + 1) * width] for k in range(count)]
    expected = [np.mean(line[boxes[int(centre // width)]]) for centre in centres]
    np.testing.assert_allclose(_boxes(line[None, None, :, None], count, 2)[0, 0, :, 0], expected)


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("size", [(32, 32), (17, 40)])
def test_jpeg_is_pillows(channels, size):
    pixels = (natural(2, channels, *size) * 255).round().astype(np.uint8)
    found = corrupt(pixels, "jpeg_compression", 5)
    for one, result in zip(pixels, found, strict=True):
        file = io.BytesIO()
        Image.fromarray(one.transpose(1, 2, 0).squeeze()).save(file, format="JPEG", quality=40)
        expected = np.asarray(Image.open(file)).reshape(*size, channels)
        assert (result.transpose(1, 2, 0) == expected).all()


def test_affine_maps_take_moved_corners_back():
    moves = np.random.default_rng(0).uniform(-3, 3, (20, 3, 2))
    maps = _affine(moves, 16, 14, 9)
    corners = np.asarray([[25.0, 23.0], [25.0, 5.0], [7.0, 5.0]])
    for one, move in zip(maps, moves, strict=True):
        np.testing.assert_allclose((corners + move) @ one[:, :2].T + one[:, 2], corners, atol=1e-9)
    np.testing.assert_allclose(_affine(np.zeros((1, 3, 2)), 16, 14, 9)[0], [[1, 0, 0], [0, 1, 0]], atol=1e-12)


def test_elastic_transform_moves_by_a_few_pixels_and_invents_no_values():
    rows = np.arange(32.0)[:, None] / 32 * np.ones((100, 1, 32, 32))
    for severity, reach in ((1, 0.08), (5, 0.03)):
        found = corrupt(rows, "elastic_transform", severity, value_range=(0, 1))
        assert found.min() >= 0
        assert found.max() <= 31 / 32 + 1e-12
        shift = (found - rows)[:, 0, 10:22, 10:22] * 32
        assert 0.2 * reach * 32 < np.abs(shift).mean() < 1.5 * reach * 32
        assert abs(shift.mean()) < 4 * shift.mean(axis=(1, 2)).std() / np.sqrt(100)
