import itertools

import pytest

from jostle.base.errors import UsageError
from jostle.figures import differences, svg
from jostle.figures.forest import UNDECIDED
from jostle.figures.style import STRONG

from .made_up import difference

PAIRS = [
    difference("cnn", "vit", (0.01, 0.02, 0.035)),
    difference("mlp", "vit", (-0.01, 0.02, 0.03)),
    difference("mlp", "cnn", (-0.03, -0.02, -0.011)),
]


def rows(figure):
    """(low, high, value, colour, is_filled) from top to bottom."""
    (axes,) = figure.axes
    points = [line for line in axes.lines if line.get_marker() == "o"]
    found = []
    for bar, point in zip(axes.collections, points, strict=True):
        (low, middle), (high, _) = bar.get_segments()[0]
        assert point.get_ydata()[0] == middle
        color = point.get_markeredgecolor()
        found.append((middle, low, high, point.get_xdata()[0], color, point.get_markerfacecolor() == color))
    assert found == sorted(found)  # the vertical axis points down
    assert axes.get_ylim()[0] > axes.get_ylim()[1]
    return [row[1:] for row in found]


def test_rows_are_the_pairs_coloured_by_what_they_decide():
    assert rows(differences(PAIRS)) == [
        (0.01, 0.035, 0.02, STRONG, True),
        (-0.01, 0.03, 0.02, UNDECIDED, False),
        (-0.03, -0.011, -0.02, STRONG, True),
    ]


def test_there_is_a_line_at_zero_even_if_all_are_far_from_it():
    (axes,) = differences(PAIRS[:1]).axes
    assert axes.lines[0].get_xdata() == [0, 0]
    assert axes.get_xlim()[0] <= 0


def test_names_and_numbers_are_written():
    text = svg(differences(PAIRS))
    assert "cnn − vit" in text
    assert "+0.0200  [−0.0100, +0.0300]" in text
    assert "95% interval for the inputs given" in text


def test_long_names_are_wrapped_whole_and_fit():
    first, second = "google/vit-base-patch16-224-finetuned-cifar10", "microsoft/resnet-50-finetuned-cifar10"
    figure = differences([difference(first, second, (0.01, 0.02, 0.03)), *PAIRS])
    figure.draw_without_rendering()
    names = figure.axes[0].get_yticklabels()
    assert names[0].get_text().replace("\n", "") == f"{first}− {second}"
    boxes = [name.get_window_extent() for name in names]
    assert all(box.x0 >= 0 for box in boxes)
    assert all(upper.y0 > lower.y1 for upper, lower in itertools.pairwise(boxes))
    assert figure.axes[0].get_window_extent().width > 0.3 * figure.bbox.width


def test_no_pairs_are_refused():
    with pytest.raises(UsageError, match="at least one difference"):
        differences([])
