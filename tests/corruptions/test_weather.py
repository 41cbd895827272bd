import colorsys

import numpy as np
import pytest

from jostle.corruptions import corrupt
from jostle.corruptions.pixels import luminance, paint
from tests.corruptions.pictures import natural


def weathered(images, name, severity, seed=0):
    return corrupt(images, name, severity, seed, value_range=(0, 1))


@pytest.mark.parametrize(("severity", "more"), list(enumerate([0.05, 0.1, 0.15, 0.2, 0.3], start=1)))
def test_brightness_adds_to_the_value_of_hsv(severity, more):
    images = natural(1, height=6, width=6)
    images[0, :, 0, 0] = 0.0
    images[0, :, 0, 1] = 0.4
    found = weathered(images, "brightness", severity)
    for row, column in np.ndindex(6, 6):
        hue, saturation, value = colorsys.rgb_to_hsv(*images[0, :, row, column])
        expected = colorsys.hsv_to_rgb(hue, saturation, min(value + more, 1.0))
        np.testing.assert_allclose(found[0, :, row, column], expected, atol=1e-12)
    grey = natural(2, channels=1)
    np.testing.assert_allclose(weathered(grey, "brightness", severity), np.minimum(grey + more, 1.0), atol=1e-12)


@pytest.mark.parametrize(("severity", "thickness"), list(enumerate([0.2, 0.5, 0.75, 1.0, 1.5], start=1)))
def test_fog_adds_one_cloud_to_all_channels(severity, thickness):
    images = natural(3)
    brightest = images.max(axis=(1, 2, 3), keepdims=True)
    clouds = (weathered(images, "fog", severity) * (brightest + thickness) / brightest - images) / thickness
    np.testing.assert_allclose(clouds, clouds[:, :1].repeat(3, axis=1), atol=1e-9)
    assert clouds.min(axis=(1, 2, 3)) == pytest.approx(0, abs=1e-9)
    assert clouds.max(axis=(1, 2, 3)) == pytest.approx(1)


def test_frost_has_the_mean_colour_and_spread_of_the_published_photographs():
    ice = weathered(np.zeros((400, 3, 32, 32)), "frost", 1) / 0.2
    levels = ice.mean(axis=(2, 3))
    error = 0.15 / np.sqrt(400)
    assert (np.abs(levels.mean(axis=0) - [0.565, 0.648, 0.695]) < 4 * error).all()
    assert levels.mean(axis=1).std() == pytest.approx(0.15, rel=0.15)
    assert ice.mean(axis=1).std(axis=(1, 2)).mean() == pytest.approx(0.087, rel=0.2)


def test_frost_is_a_mixture():
    images = natural(2) * 0.5
    ice = weathered(np.zeros_like(images), "frost", 4) / 0.4
    np.testing.assert_allclose(weathered(images, "frost", 4), 0.85 * images + 0.4 * ice, atol=1e-12)


def test_snow_is_white_and_symmetric_on_black():
    black = np.zeros((30, 3, 32, 32))
    for severity, clearness in ((1, 0.95), (5, 0.8)):
        flakes = weathered(black, "snow", severity)
        assert (flakes == flakes[:, :1]).all()
        np.testing.assert_allclose(flakes, flakes[:, :, ::-1, ::-1], atol=1e-12)
        assert flakes.min() >= (1 - clearness) * 0.5 - 1e-12  # black turns to 1.5 * 0 + 0.5
    none = np.isclose(weathered(black, "snow", 1), 0.05 * 0.5)
    assert 0.1 < none.mean() < 0.9


def test_luminance_and_colours_of_grey_images():
    images = natural(2)
    expected = 0.299 * images[:, 0] + 0.587 * images[:, 1] + 0.114 * images[:, 2]
    np.testing.assert_allclose(luminance(images)[:, 0], expected)
    assert paint((0.1, 0.2, 0.3), images).ravel().tolist() == [0.1, 0.2, 0.3]
    assert paint((1.0, 1.0, 1.0), images[:, :1]).shape == (1, 1, 1, 1)
    assert paint((1.0, 1.0, 1.0), images[:, :1]).item() == pytest.approx(1)
