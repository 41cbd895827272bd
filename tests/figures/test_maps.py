import numpy as np
import pytest

from jostle.base.errors import UsageError
from jostle.figures import heat_maps, svg

PICTURE = np.linspace(-3.0, 5.0, 64, dtype=np.float64).reshape(8, 8)
ONE = np.asarray([[0.0, 0.1], [0.4, np.nan]], dtype=np.float64)
TWO = np.asarray([[0.2, 0.1], [0.0, 0.0]], dtype=np.float64)


def test_panels_share_one_scale_up_to_the_largest_value():
    figure = heat_maps(PICTURE, {"one": ONE, "two": TWO}, label="flip rate")
    picture, one, two, scale = figure.axes
    assert [len(axes.images) for axes in (picture, one, two)] == [1, 2, 2]
    assert one.images[1].norm is two.images[1].norm
    assert (one.images[1].norm.vmin, one.images[1].norm.vmax) == (0.0, 0.4)
    assert np.ma.filled(one.images[1].get_array(), np.nan) == pytest.approx(ONE, nan_ok=True)
    assert scale.get_title(loc="left") == "flip rate"


def test_vmax_can_be_given():
    figure = heat_maps(PICTURE, {"one": ONE}, label="flip rate", vmax=1.0)
    assert figure.axes[1].images[1].norm.vmax == 1.0


def test_the_largest_patch_is_outlined_and_named():
    axes = heat_maps(PICTURE, {"one": ONE}, label="flip rate").axes[1]
    (box,) = axes.patches
    assert box.get_xy() == (0.0, 1.0)  # column 0, row 1
    assert [text.get_text() for text in axes.texts] == ["largest 0.4"]
    assert axes.get_title(loc="left") == "one"


def test_pixels_are_square_whatever_the_patches():
    wide = np.zeros((4, 12), dtype=np.float64)
    figure = heat_maps(wide, {"one": np.ones((2, 3), dtype=np.float64)}, label="flip rate")
    figure.draw_without_rendering()
    for axes in figure.axes[:2]:
        box = axes.get_window_extent()
        assert box.width / box.height == pytest.approx(3.0)


def test_a_map_never_jostled_says_so():
    figure = heat_maps(PICTURE, {"one": np.full((2, 2), np.nan)}, label="flip rate")
    assert "never jostled" in svg(figure)
    assert not figure.axes[1].patches


def test_many_models_wrap_into_rows_inside_the_figure():
    figure = heat_maps(PICTURE, {f"model-{i}-with-a-long-name": ONE for i in range(7)}, label="flip rate")
    bottoms = {round(axes.get_position().y0, 6) for axes in figure.axes[:8]}
    assert len(bottoms) == 2
    assert figure.get_size_inches()[0] <= 7.2 + 1e-9
    assert all(0 <= edge <= 1 for axes in figure.axes for edge in axes.get_position().extents)


def test_colour_pictures_are_shown_in_colour_first_and_in_grey_below_the_maps():
    colour = np.random.default_rng(0).random((6, 6, 3))
    figure = heat_maps(colour, {"one": ONE}, label="flip rate")
    assert figure.axes[0].images[0].get_array().shape == (6, 6, 3)
    assert figure.axes[1].images[0].get_array().shape == (6, 6)


def test_two_by_two_numbers_take_few_bytes():
    assert len(svg(heat_maps(PICTURE, {"one": ONE}, label="flip rate"))) < 12_000


@pytest.mark.parametrize("shape", [(3, 8, 8), (8,), (0, 0)])
def test_a_picture_of_another_shape_is_refused(shape):
    with pytest.raises(UsageError, match="channels last"):
        heat_maps(np.zeros(shape, dtype=np.float64), {"one": ONE}, label="flip rate")


def test_maps_of_another_shape_and_no_maps_are_refused():
    with pytest.raises(UsageError, match=r"the map of 'one' has shape \(4,\)"):
        heat_maps(PICTURE, {"one": ONE.ravel()}, label="flip rate")
    with pytest.raises(UsageError, match="at least one map"):
        heat_maps(PICTURE, {}, label="flip rate")
