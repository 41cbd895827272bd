"""Settings, names at the ends of lines, axes. The looks of series are in test_families."""

import itertools

import matplotlib
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.figure import Figure

from jostle.figures.style import HEAT, LogNumbers, PlainNumbers, number, set_linear, set_log, spread, styled, wrap

pieces = st.lists(st.tuples(st.floats(0, 100), st.floats(0.5, 5)), min_size=1, max_size=12)


def axes_with(y):
    axes = Figure().add_subplot()
    axes.plot(np.arange(len(y)), y)
    return axes


def test_settings_of_the_user_do_not_matter_and_come_back():
    with matplotlib.rc_context({"font.size": 33.0, "axes.facecolor": "red"}):
        with styled():
            assert matplotlib.rcParams["font.size"] == 9.5
            assert matplotlib.rcParams["axes.facecolor"] == "white"
        assert matplotlib.rcParams["font.size"] == 33.0


def test_settings_come_back_after_an_error():
    before = dict(matplotlib.rcParams)
    with pytest.raises(ZeroDivisionError), styled():
        1 / 0  # noqa: B018
    assert dict(matplotlib.rcParams) == before


def test_wrapping_loses_nothing():
    name = "google/vit-base-patch16-224-finetuned"
    lines = wrap(name, 12).split("\n")
    assert "".join(lines) == name
    assert max(map(len, lines)) <= 12


def test_heat_gets_darker_all_the_way():
    luminance = [0.299 * r + 0.587 * g + 0.114 * b for r, g, b, _ in (HEAT(i / 20) for i in range(21))]
    assert all(a > b for a, b in itertools.pairwise(luminance))


@given(pieces)
def test_pieces_keep_their_order_and_do_not_overlap(pieces):
    wanted, sizes = zip(*pieces, strict=True)
    middles = spread(wanted, sizes, 0.0, 100.0)
    order = np.argsort(wanted, kind="stable")
    below, above = order[:-1], order[1:]
    room = (np.asarray(sizes)[below] + np.asarray(sizes)[above]) / 2
    assert (middles[above] - middles[below] >= room - 1e-9).all()
    assert (middles - np.asarray(sizes) / 2 >= -1e-9).all()
    assert (middles + np.asarray(sizes) / 2 <= 100 + 1e-9).all()


def test_pieces_with_room_stay():
    assert spread([10.0, 1.0, 5.0], [2.0, 2.0, 2.0], 0.0, 20.0).tolist() == [10.0, 1.0, 5.0]


def test_pieces_move_no_farther_than_they_must():
    assert spread([5.0, 5.0], [2.0, 4.0], 0.0, 20.0).tolist() == pytest.approx([3.5, 6.5])


def test_too_many_pieces_overflow_at_the_top():
    assert spread([1.0, 1.0], [4.0, 4.0], 0.0, 5.0).tolist() == [2.0, 6.0]


def test_numbers_are_plain():
    assert [number(v) for v in (1e6, 0.1 + 0.2, -0.5)] == ["1,000,000", "0.3", "−0.5"]


def test_ticks_share_their_decimals():
    assert PlainNumbers().format_ticks([-0.1, 0, 0.05]) == ["−0.10", "0", "0.05"]
    assert PlainNumbers().format_ticks([0, 1e-5]) == ["0", "1e−05"]


@pytest.mark.parametrize(("values", "starts_at_zero"), [([0.1, 1.0], True), ([0.9, 1.0], False), ([-0.1, 1.0], False)])
def test_a_linear_axis_starts_at_zero_where_that_is_cheap(values, starts_at_zero):
    y = np.asarray(values, dtype=np.float64)
    axes = axes_with(y)
    set_linear(axes, "y", y, y)
    assert (axes.get_ylim()[0] == 0) == starts_at_zero


def test_whole_numbers_get_whole_ticks():
    x = np.arange(3, dtype=np.float64)
    axes = axes_with(x)
    set_linear(axes, "x", x, x)
    assert all(tick == round(tick) for tick in axes.get_xticks())


def test_positive_values_get_a_plain_logarithmic_axis():
    y = np.asarray([0.001, 0.1], dtype=np.float64)
    axes = axes_with(y)
    set_log(axes, "y", y, y)
    assert axes.get_yscale() == "log"


def test_a_zero_gets_a_place_of_its_own():
    y = np.asarray([0.0, 0.003, 0.1], dtype=np.float64)
    axes = axes_with(y)
    set_log(axes, "y", y, y)
    assert axes.get_yscale() == "symlog"
    assert axes.get_ylim()[0] == 0
    assert {0.0, 0.001, 0.01, 0.1} <= set(np.round(axes.get_yticks(), 10))
    heights = axes.transData.transform([(0, v) for v in (0.0, 0.001, 0.01, 0.1)])[:, 1]
    assert heights[2] - heights[1] == pytest.approx(heights[3] - heights[2])  # decades above the strip are equal
    assert 0 < heights[1] - heights[0] < heights[2] - heights[1]


def test_a_tiny_end_of_a_band_does_not_stretch_the_axis():
    y = np.asarray([0.02, 0.1], dtype=np.float64)
    axes = axes_with(y)
    set_log(axes, "y", y, np.asarray([0.0, 1e-12, 0.02, 0.1], dtype=np.float64))
    positive = [tick for tick in axes.get_yticks() if tick > 0]
    assert min(positive) == pytest.approx(0.01)


def test_nothing_positive_gives_a_linear_axis():
    y = np.zeros(3, dtype=np.float64)
    axes = axes_with(y)
    set_log(axes, "y", y, y)
    assert axes.get_yscale() == "linear"


def test_all_ticks_of_a_logarithmic_axis_have_one_format():
    assert LogNumbers().format_ticks([0.0001, 0.001, 1, 1e6]) == ["0.0001", "0.001", "1", "1,000,000"]
    assert LogNumbers().format_ticks([-1e-6, 0, 1e-6, 1, 2e3]) == ["−10⁻⁶", "0", "10⁻⁶", "10⁰", "2·10³"]


def test_a_tick_outside_the_figure_does_not_decide_the_format():
    y = np.asarray([0.001, 1.0], dtype=np.float64)
    axes = axes_with(y)
    set_log(axes, "y", y, y)
    ticks = [tick for tick in axes.get_yticks() if tick < 1e-4]
    shown = axes.yaxis.get_major_formatter().format_ticks([*ticks, 1e-9, 0.001, 0.01])
    assert shown[-2:] == ["0.001", "0.01"]
