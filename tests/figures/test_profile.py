import re
from dataclasses import replace

import numpy as np
import pytest

from jostle.figures import profile_figure
from jostle.figures.profile import profile_svg

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
    marked = replace(plain, profile=replace(plain.profile, special=shares))
    (axes,) = profile_figure(marked).axes
    (marks,) = [line for line in axes.lines if line.get_marker() == "+"]
    assert np.asarray(marks.get_xdata()).tolist() == [0.0, 3.0]
    assert axes.get_xlabel() == "token position; + is a special token in most texts"
    assert profile_figure(plain).axes[0].get_xlabel() == "token position"


def test_every_cell_of_a_heat_map_says_its_numbers_where_it_is():
    plain = measurement(GRID, (2, 3))
    counts = np.asarray([100, 1200, 1, 0, 100, 100])
    m = replace(plain, profile=replace(plain.profile, counts=counts))
    figure, drawn = profile_figure(m), profile_svg(m)
    rects = re.findall(
        r'<rect x="([\d.]+)" y="([\d.]+)" width="([\d.]+)" height="([\d.]+)" fill="none" pointer-events="all">'
        r"<title>([^<]*)</title></rect>",
        drawn,
    )
    assert [rect[4] for rect in rects][:4] == [
        "row 0, column 0: 0.0000 [-0.0100, 0.0200], 100 trials",
        "row 0, column 1: 0.2500 [0.2400, 0.2700], 1,200 trials",
        "row 0, column 2: 0.0310 [0.0210, 0.0510], 1 trial",
        "row 1, column 0: never jostled",
    ]
    height = 72 * figure.get_size_inches()[1]
    for (row, column), rect in zip(np.ndindex(2, 3), rects, strict=True):
        x, y = figure.axes[0].transData.transform((column, row)) / figure.dpi * 72  # points, from below
        left, top, wide, high = map(float, rect[:4])
        assert (left + wide / 2, top + high / 2) == pytest.approx((x, height - y), abs=0.02)
    assert drawn.startswith("<svg")
    assert drawn.endswith("</svg>")


def test_columns_of_a_table_are_points_with_intervals_and_no_line_joins_them():
    plain = measurement(np.asarray([0.1, np.nan, 0.3]), (3,))
    named = replace(plain, profile=replace(plain.profile, names=("age", "city", "height")))
    (axes,) = profile_figure(named).axes
    assert [text.get_text() for text in axes.get_yticklabels()] == ["height", "age"]  # city was never jostled
    (points,) = axes.lines
    assert points.get_linestyle() == "None"
    assert points.get_xdata() == pytest.approx([0.3, 0.1])
    ends = [segment[:, 0].tolist() for segment in axes.collections[0].get_segments()]
    assert np.asarray(ends) == pytest.approx(np.asarray([[0.29, 0.32], [0.09, 0.12]]))
    many = measurement(np.linspace(0, 1, 40), (40,))
    many = replace(many, profile=replace(many.profile, names=tuple(f"c{number}" for number in range(40))))
    (axes,) = profile_figure(many).axes
    assert len(axes.get_yticklabels()) == 30
    assert any("the 30 largest of 40" in text.get_text() for text in axes.texts)
