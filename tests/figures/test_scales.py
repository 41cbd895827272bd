import numpy as np
import pytest
from matplotlib.figure import Figure

from jostle.figures.style import PlainNumbers, number, set_linear, set_log


def axes_with(y):
    axes = Figure().add_subplot()
    axes.plot(np.arange(len(y)), y)
    return axes


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
