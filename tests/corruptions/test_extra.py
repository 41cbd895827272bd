import colorsys

import numpy as np
import pytest

from jostle.corruptions import corrupt
from jostle.corruptions.extra import _blur_noise
from tests.corruptions.pictures import natural


@pytest.mark.parametrize(
    ("severity", "factor", "more"), [(1, 0.3, 0), (2, 0.1, 0), (3, 1.5, 0), (4, 2, 0.1), (5, 2.5, 0.2)]
)
def test_saturate_changes_the_saturation_of_hsv(severity, factor, more):
    images = natural(1, height=6, width=6)
    images[0, :, 0, 0] = 0.0
    images[0, :, 0, 1] = 0.4  # grey: hue 0, red
    found = corrupt(images, "saturate", severity, value_range=(0, 1))
    for row, column in np.ndindex(6, 6):
        hue, saturation, value = colorsys.rgb_to_hsv(*images[0, :, row, column])
        expected = colorsys.hsv_to_rgb(hue, min(saturation * factor + more, 1.0), value)
        np.testing.assert_allclose(found[0, :, row, column], expected, atol=1e-12)


def test_a_grey_image_has_no_saturation():
    grey = natural(2, channels=1)
    np.testing.assert_allclose(corrupt(grey, "saturate", 5, value_range=(0, 1)), grey, atol=1e-15)


def test_water_adds_light_and_mud_covers():
    images = natural(20) * 0.3 + 0.1
    for severity in (1, 2, 3):
        added = corrupt(images, "spatter", severity, value_range=(0, 1)) - images
        assert added.min() >= -1e-12
        # pale turquoise, at most by half: red is weaker than green and blue
        assert added[:, 1].max() <= 0.5 * 238 / 255 + 1e-12
        np.testing.assert_allclose(added[:, 0], added[:, 1] * 175 / 238, atol=1e-12)
        assert added.max(axis=(1, 2, 3)).mean() > 0.25
    for severity in (4, 5):
        found = corrupt(images, "spatter", severity, value_range=(0, 1))
        changed = (found != images).all(axis=1)
        assert 0.01 < changed.mean() < 0.4
        assert np.abs(found[:, 0][changed] - 63 / 255).max() <= 0.2 * 0.4


def test_drops_cover_the_same_share_at_any_size():
    covered = []
    for side in (32, 96):
        images = np.ones((60, 1, side, side))
        covered.append((corrupt(images, "spatter", 5, value_range=(0, 1)) < 1).mean())
    assert covered[1] == pytest.approx(covered[0], rel=0.5)
    noise = np.random.default_rng(0).standard_normal((4, 300, 300))
    assert _blur_noise(noise, 0.7, 4.0).std() == pytest.approx(_blur_noise(noise, 0.7, 1.0).std(), rel=0.05)
