"""Reading between pixels, against loops and scipy."""

import math

import numpy as np
import pytest
from scipy import ndimage

from jostle.corruptions.pixels import bilinear, interpolate, smear, stretch_layers, zoom
from tests.corruptions.pictures import natural


def test_interpolation_is_exact_at_pixels_and_for_straight_lines():
    images = natural(2, 3, 9, 7)
    assert (interpolate(images, np.arange(9.0), 2) == images).all()
    line = np.arange(9.0)[None, None, :, None] * np.ones((1, 1, 9, 7))
    positions = np.asarray([0.0, 0.25, 3.7, 7.999, 8.0])
    np.testing.assert_allclose(interpolate(line, positions, 2)[0, 0, :, 3], positions, atol=1e-12)
    assert (interpolate(line, np.asarray([-4.0, 20.0]), 2)[0, 0, :, 0] == [0.0, 8.0]).all()


def test_bilinear_is_scipys_mirror():
    generator = np.random.default_rng(0)
    images = natural(3, 2, 11, 8)
    rows, columns = generator.uniform(-15, 25, (3, 11, 8)), generator.uniform(-12, 20, (3, 11, 8))
    found = bilinear(images, rows, columns)
    for image, channel in np.ndindex(3, 2):
        expected = ndimage.map_coordinates(
            images[image, channel], [rows[image], columns[image]], order=1, mode="mirror"
        )
        np.testing.assert_allclose(found[image, channel], expected, atol=1e-12)


def test_bilinear_at_pixels_is_the_image():
    images = natural(2, 3, 6, 5)
    rows, columns = np.meshgrid(np.arange(6.0), np.arange(5.0), indexing="ij")
    assert (bilinear(images, rows[None].repeat(2, 0), columns[None].repeat(2, 0)) == images).all()


@pytest.mark.parametrize("factor", [1.0, 1.1, 2.0])
def test_zoom_magnifies_about_the_centre(factor):
    ramp = np.arange(9.0)[:, None] + 10 * np.arange(7.0)
    found = zoom(ramp[None, None], factor)[0, 0]
    rows, columns = np.meshgrid(4 + (np.arange(9) - 4) / factor, 3 + (np.arange(7) - 3) / factor, indexing="ij")
    np.testing.assert_allclose(found, rows + 10 * columns, atol=1e-12)


def test_stretching_goes_from_corner_to_corner():
    layer = np.asarray([[[0.0, 1.0], [2.0, 3.0]]])
    found = stretch_layers(layer, 3, 5)[0]
    np.testing.assert_allclose(found[1], [1.0, 1.25, 1.5, 1.75, 2.0])
    assert (found[0, 0], found[-1, -1]) == (0.0, 3.0)
    same = natural(1, 1, 6, 7)[0]
    assert (stretch_layers(same, 6, 7) == same).all()


def test_motion_blur_is_a_sum_along_a_line():
    image = natural(1, 2, 12, 14)
    for degrees in (-120.0, -45.0, 0.0, 33.0):
        found = smear(image, 3, 1.5, np.asarray([degrees]))
        weights = [math.exp(-(i**2) / (2 * 1.5**2)) for i in range(7)]
        for row, column in [(0, 0), (5, 6), (11, 13), (3, 12)]:
            total = np.zeros(2)
            for i, weight in enumerate(weights):
                r = min(max(row + round(i * math.sin(math.radians(degrees))), 0), 11)
                c = min(max(column + round(i * math.cos(math.radians(degrees))), 0), 13)
                total += weight * image[0, :, r, c]
            np.testing.assert_allclose(found[0, :, row, column], total / sum(weights), atol=1e-5)


def test_motion_blur_keeps_plain_images_and_uses_each_direction():
    assert smear(np.full((1, 1, 8, 8), 0.3), 6, 2.0, np.zeros(1)) == pytest.approx(0.3)
    stripes = np.zeros((2, 1, 9, 9))
    stripes[:, :, 4] = 1.0  # a horizontal line: unchanged by a horizontal smear, spread by a vertical one
    across, along = smear(stripes, 3, 2.0, np.asarray([90.0, 0.0]))
    assert across[0, 4, 4] < 0.5
    assert along == pytest.approx(stripes[1])
