"""Points are drawn where they are, each kind with a look and a name of its own."""

import pytest

from jostle.base.errors import UsageError
from jostle.figures import Series, dots, looks, scatter, svg

ROWS = {
    "one patch": [Series("vit", [0], [0.02], [0.01], [0.03]), Series("cnn", [0], [0.05], [0.04], [0.06])],
    "whole image": [Series("vit", [0], [0.3], [0.2], [0.4]), Series("cnn", [0], [0.1])],
}


def test_every_value_stands_in_its_row_with_its_whisker():
    figure = dots(ROWS, x_label="sensitivity")
    (axes,) = figure.axes
    assert [float(line.get_xdata()[0]) for line in axes.lines] == [0.02, 0.05, 0.3, 0.1]
    heights = [float(line.get_ydata()[0]) for line in axes.lines]
    assert heights == sorted(heights)  # from top to bottom
    assert axes.get_ylim()[0] > axes.get_ylim()[1]
    whiskers = [bar for bar in axes.collections if hasattr(bar, "get_segments")]
    assert [bar.get_segments()[0][:, 0].tolist() for bar in whiskers] == [
        [0.01, 0.03],
        [0.04, 0.06],
        [0.2, 0.4],
    ]
    first, second = axes.get_yticks()
    assert heights[0] < first < heights[1] < heights[2] < second < heights[3]
    assert axes.get_xlim()[0] <= 0


def test_a_series_looks_the_same_in_every_row_and_is_named_once():
    figure = dots(ROWS, x_label="sensitivity")
    colors = [line.get_color() for line in figure.axes[0].lines]
    expected = looks(["vit", "cnn"])
    assert colors == [expected["vit"].color, expected["cnn"].color] * 2
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["vit", "cnn"]
    assert "whole image" in svg(figure)


def test_a_series_that_only_a_later_row_has_is_named_too():
    rows = {
        "first": [Series("vit", [0.0], [0.1])],
        "second": [Series("vit", [0.0], [0.2]), Series("cnn", [0.0], [0.3])],
    }
    figure = dots(rows, x_label="sensitivity")
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["vit", "cnn"]


@pytest.mark.parametrize("rows", [{}, {"empty": []}])
def test_nothing_to_draw(rows):
    with pytest.raises(UsageError, match="dots needs at least one category"):
        dots(rows, x_label="sensitivity")


def test_the_points_of_many_categories_are_close_together():
    apart, dense = dots(ROWS, x_label="sensitivity"), dots(ROWS, x_label="sensitivity", is_dense=True)
    heights = [float(line.get_ydata()[0]) for line in dense.axes[0].lines]
    assert heights == sorted(set(heights))  # no point hides another
    assert dense.get_figheight() < apart.get_figheight()
    assert dense.axes[0].get_xlim()[0] > 0.01 - 0.05


def test_points_of_one_series_are_drawn_as_their_categories():
    """A point for each network: the networks have their colours, and no legend repeats the axis."""
    rows = {name: [Series("sensitivity", [0], [value])] for name, value in {"cnn": 0.05, "vit": 0.02}.items()}
    figure = dots(rows, x_label="sensitivity")
    expected = looks(rows)
    assert [line.get_color() for line in figure.axes[0].lines] == [look.color for look in expected.values()]
    assert figure.legends == []
    other = dots(rows, x_label="flip rate")
    assert [text.get_text() for text in other.legends[0].get_texts()] == ["sensitivity"]


def test_values_of_several_decades_take_a_logarithmic_axis():
    assert dots(ROWS, x_label="sensitivity", log_x=True).axes[0].get_xscale() == "log"


def test_points_lines_and_names():
    figure = scatter(
        {"a": ([1, 2], [3, 4]), "b": ([5], [6])}, x_label="x", y_label="y", lines={"bound": ([0, 6], [0, 6])}
    )
    drawn = {line.get_label(): line for line in figure.axes[0].get_lines()}
    assert list(drawn) == ["bound", "a", "b"]
    assert drawn["a"].get_xydata().tolist() == [[1, 3], [2, 4]]
    assert drawn["a"].get_marker() != drawn["b"].get_marker()
    assert drawn["bound"].get_xydata().tolist() == [[0, 0], [6, 6]]
    assert all(f">{name}<" in svg(figure) for name in ("bound", "a", "b"))


def test_logarithmic_axes():
    axes = scatter({"a": ([1e-6, 1e-3], [1, 100])}, x_label="x", y_label="y", log_x=True, log_y=True).axes[0]
    assert axes.get_xscale() != "linear"
    assert axes.get_yscale() != "linear"


@pytest.mark.parametrize(
    ("groups", "message"),
    [({}, "at least one point"), ({"a": ([], [])}, "at least one point"), ({"a": ([1, 2], [1])}, "one x and one y")],
)
def test_wrong_points(groups, message):
    with pytest.raises(UsageError, match=message):
        scatter(groups, x_label="x", y_label="y")
