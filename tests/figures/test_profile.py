from dataclasses import replace

import numpy as np
import pytest

from jostle.figures import profile_figure

from .made_up import measurement

GRID = np.asarray([[0.0, 0.25, 0.031], [np.nan, 0.1, 0.2]], dtype=np.float64)


@pytest.mark.parametrize("positions", [(2, 3), (1, 2, 3)])
def test_a_grid_of_positions_is_a_heat_map(positions):
    axes = profile_figure(measurement(GRID, positions)).axes[0]
    (image,) = axes.images
    assert np.ma.filled(image.get_array(), np.nan) == pytest.approx(GRID, nan_ok=True)
    assert axes.get_title(loc="left") == "vit"


def test_each_patch_carries_its_number_and_a_patch_never_jostled_none():
    axes = profile_figure(measurement(GRID, (2, 3))).axes[0]
    at = {text.get_position(): text.get_text() for text in axes.texts}
    assert at == {(0, 0): "0", (1, 0): "0.25", (2, 0): "0.03", (1, 1): "0.10", (2, 1): "0.20"}


def test_large_grids_carry_no_numbers():
    assert not profile_figure(measurement(np.full((20, 20), 0.1), (20, 20))).axes[0].texts


@pytest.mark.parametrize("positions", [(6,), (3, 2, 1)])
def test_other_positions_are_a_line_with_its_band(positions):
    (axes,) = profile_figure(measurement(GRID, positions)).axes
    assert axes.lines[0].get_ydata() == pytest.approx(GRID.ravel(), nan_ok=True)
    corners = np.concatenate([path.vertices for path in axes.collections[0].get_paths()])
    assert (corners[:, 1].min(), corners[:, 1].max()) == (pytest.approx(-0.01), pytest.approx(0.27))


def test_the_quantity_the_level_and_the_target_are_named():
    (axes,) = profile_figure(measurement(GRID, (6,))).axes
    assert [text.get_text() for text in axes.texts] == ["flip rate; 90% interval of each position for the inputs given"]
    heat = profile_figure(measurement(GRID, (2, 3), response="margin"))
    assert heat.axes[1].get_title(loc="left") == "mean margin"


def test_positions_at_which_most_texts_have_a_special_token_are_marked():
    plain = measurement(GRID, (6,))
    shares = np.asarray([1.0, 0.0, 0.4, 0.6, np.nan, 0.0])
    marked = replace(plain, estimate=replace(plain.estimate, profile=replace(plain.profile, special=shares)))
    (axes,) = profile_figure(marked).axes
    (marks,) = [line for line in axes.lines if line.get_marker() == "+"]
    assert np.asarray(marks.get_xdata()).tolist() == [0.0, 3.0]
    assert axes.get_xlabel() == "token position; + is a special token in most texts"
    assert profile_figure(plain).axes[0].get_xlabel() == "token position"
