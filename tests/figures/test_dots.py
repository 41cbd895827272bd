import pytest

from jostle.base.errors import UsageError
from jostle.figures import Series, dots, looks, svg

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
    assert [bar.get_segments()[0][:, 0].tolist() for bar in axes.collections] == [
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


def test_many_categories_share_a_line_each():
    apart, together = dots(ROWS, x_label="sensitivity"), dots(ROWS, x_label="sensitivity", on_one_line=True)
    first, second, third, fourth = (float(line.get_ydata()[0]) for line in together.axes[0].lines)
    assert first == second < third == fourth
    assert together.axes[0].get_yticks().tolist() == [first, third]
    assert together.get_figheight() < apart.get_figheight()
