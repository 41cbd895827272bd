import numpy as np
import pytest
from scipy import ndimage

from jostle.base.randomness import Stream
from jostle.corruptions import CORRUPTIONS, Draws, corrupt
from jostle.corruptions.blur import disk, glass_blur
from tests.corruptions.pictures import natural


def test_disks_of_cifar():
    """Radius 0.3 to 0.5 is a pixel under a Gaussian of 3 x 3, radius 1 a plus, radius 1.5 a square of 3 x 3."""
    bell = np.exp(-0.5 * (np.arange(-1, 2) / 0.4) ** 2)
    bell /= bell.sum()
    np.testing.assert_allclose(disk(0.3, 0.4, 1), np.outer(bell, bell), atol=1e-12)
    np.testing.assert_allclose(disk(1.5, 0.1, 1)[1:-1, 1:-1], 1 / 9, atol=1e-12)
    plus = disk(1.0, 0.2, 1)[1:-1, 1:-1]
    assert plus[0, 1] == pytest.approx(0.2, abs=1e-4)
    assert plus[0, 0] < 1e-4
    for radius, softness, reach in [(0.3, 0.4, 1), (1.5, 0.1, 1), (7.0, 1.4, 7)]:
        assert disk(radius, softness, reach).sum() == pytest.approx(1)


@pytest.mark.parametrize("name", ["defocus_blur", "gaussian_blur", "motion_blur", "zoom_blur", "glass_blur"])
def test_blurs_keep_plain_images_and_take_away_detail(name):
    plain = np.full((2, 3, 32, 32), 0.25)
    assert corrupt(plain, name, 5, value_range=(0, 1)) == pytest.approx(plain)
    checks = np.indices((32, 32)).sum(axis=0)[None, None] % 2 * 1.0
    spread = [corrupt(checks, name, s, value_range=(0, 1)).std() for s in (3, 5)]
    assert all(found < 0.47 for found in spread)


def test_gaussian_blur_of_a_point_has_the_variance_asked_for():
    point = np.zeros((1, 1, 33, 33))
    point[0, 0, 16, 16] = 1.0
    blurred = corrupt(point, "gaussian_blur", 5, value_range=(0, 1))[0, 0]
    rows = np.arange(33) - 16
    sigma = 33 / 32  # severity 5 is 1 pixel of 32
    assert (blurred.sum(axis=1) * rows**2).sum() == pytest.approx(sigma**2, rel=0.01)
    np.testing.assert_allclose(blurred, ndimage.gaussian_filter(point[0, 0], sigma), atol=1e-12)


def test_glass_takes_values_from_neighbours_up_and_to_the_left():
    images = np.arange(32 * 32.0).reshape(1, 1, 32, 32) / 1024
    draws = Draws(Stream(0, "glass"), np.arange(1))
    found = np.rint(glass_blur(images, draws, 0.05, 1)[0, 0] * 1024).astype(int)  # sigma 0.05 blurs nothing
    rows, columns = found // 32, found % 32
    down, right = rows - np.arange(32)[:, None], columns - np.arange(32)
    assert (found[:2] == images[0, 0, :2] * 1024).all()
    assert (found[:, :2] == images[0, 0, :, :2] * 1024).all()
    inside = down[2:, 2:], right[2:, 2:]
    assert all(set(np.unique(steps)) == {-1, 0} for steps in inside)
    # four equally likely steps: 900 pixels, four standard errors
    both = (inside[0] == -1) & (inside[1] == -1)
    assert abs(both.mean() - 0.25) < 4 * np.sqrt(0.25 * 0.75 / 900)


def test_glass_on_large_images_reaches_further():
    images = natural(1, 1, 128, 128)
    ramp = np.linspace(0, 1, 128)[None, None, :, None] * np.ones((1, 1, 128, 128))
    draws = Draws(Stream(0, "glass"), np.arange(1))
    moved = np.rint((glass_blur(ramp, draws, 0.0, 1) - ramp) * 127)
    assert (moved.min(), moved.max()) == (-4, 3)
    assert glass_blur(images, draws, 0.4, 2).shape == images.shape


def test_zoom_blur_is_the_mean_of_its_magnifications():
    assert CORRUPTIONS.get("zoom_blur").settings == ((1.06,), (1.11,), (1.15,), (1.20,), (1.25,))
    ramp = np.arange(33.0)[None, None, :, None] / 33 * np.ones((1, 1, 33, 33))
    found = corrupt(ramp, "zoom_blur", 1, value_range=(0, 1))[0, 0, :, 5] * 33
    factors = [1.0, 1.0, 1.01, 1.02, 1.03, 1.04, 1.05, 1.06]  # the image itself, then seven magnifications
    np.testing.assert_allclose(found, [16 + (row - 16) * np.mean([1 / f for f in factors]) for row in range(33)])


def test_motion_blur_directions_are_between_minus_45_and_45_degrees():
    point = np.zeros((200, 1, 33, 33))
    point[:, 0, 16, 16] = 1.0
    blurred = corrupt(point, "motion_blur", 5, seed=1, value_range=(0, 1))[:, 0]
    offsets = np.arange(33) - 16
    rows, columns = (blurred.sum(axis=2) * offsets).sum(axis=1), (blurred.sum(axis=1) * offsets).sum(axis=1)
    degrees = np.degrees(np.arctan2(-rows, -columns))
    assert (np.abs(degrees) < 47).all()
    assert abs(degrees.mean()) < 4 * 26 / np.sqrt(200)
    assert (degrees.min(), degrees.max()) == pytest.approx((-45, 45), abs=4)
