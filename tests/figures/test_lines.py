import itertools

import numpy as np
import pytest

from jostle.base.errors import UsageError
from jostle.figures import Series, curves, looks, svg
from jostle.figures.style import BACKGROUND

LABELS = {"x_label": "step", "y_label": "flip rate"}


def texts(axes):
    return [text.get_text() for text in axes.texts]


def test_a_band_reaches_from_low_to_high():
    x, y = np.asarray([1.0, 2.0, 4.0]), np.asarray([0.2, 0.3, 0.5])
    (axes,) = curves([Series("vit", x, y, y - 0.1, y + 0.05)], **LABELS).axes
    (band,) = axes.collections
    corners = band.get_paths()[0].vertices
    for at, low, high in zip(x, y - 0.1, y + 0.05, strict=True):
        here = corners[corners[:, 0] == at][:, 1]
        assert (here.min(), here.max()) == (pytest.approx(low), pytest.approx(high))


def test_without_ends_there_is_no_band():
    (axes,) = curves([Series("vit", [1, 2], [3, 4])], **LABELS).axes
    assert not axes.collections


def test_one_point_has_a_whisker():
    (axes,) = curves([Series("vit", [1], [0.5], [0.4], [0.7])], **LABELS).axes
    (segment,) = axes.collections[0].get_segments()
    assert segment.tolist() == [[1.0, 0.4], [1.0, 0.7]]


def test_lines_are_the_series_in_their_looks():
    series = [Series("a", [1, 2], [3, 4]), Series("b", [1, 2], [5, 6]), Series("a", [1, 2], [7, 8])]
    (axes,) = curves(series, **LABELS).axes
    drawn = [line for line in axes.lines if line.get_label() in ("a", "b")]
    assert [line.get_ydata().tolist() for line in drawn] == [[3, 4], [5, 6], [7, 8]]
    by_name = looks(["a", "b"])
    assert [line.get_color() for line in drawn] == [by_name[name].color for name in "aba"]
    assert [line.get_marker() for line in drawn] == [by_name[name].marker for name in "aba"]


def test_names_stand_at_the_ends_without_overlap():
    series = [Series(name, [1, 2], [0.1, 0.5 + 1e-6 * i]) for i, name in enumerate("abcdef")]
    figure = curves(series, **LABELS)
    names = [text for text in figure.axes[0].texts if text.get_text() in "abcdef"]
    boxes = sorted((text.get_window_extent() for text in names), key=lambda box: box.y0)
    assert len(boxes) == 6
    assert all(above.y0 >= below.y1 for below, above in itertools.pairwise(boxes))
    assert all(box.x0 > figure.axes[0].get_window_extent().x1 for box in boxes)
    assert all(box.x1 <= figure.bbox.x1 for box in boxes)


def test_the_order_of_names_is_the_order_of_ends():
    figure = curves([Series("low", [1, 2], [5, 1]), Series("high", [1, 2], [0, 2])], **LABELS)
    at = {text.get_text(): text.get_window_extent().y0 for text in figure.axes[0].texts}
    assert at["low"] < at["high"]


def test_the_only_name_is_not_repeated_under_a_title_that_is_it():
    one = Series("vit", [1, 2], [3, 4])
    assert "vit" not in texts(curves([one], title="vit", **LABELS).axes[0])
    assert "vit" in texts(curves([one], title="of four", **LABELS).axes[0])


@pytest.mark.filterwarnings("error")
def test_zeros_and_gaps_survive_logarithms():
    y = np.asarray([0.0, np.nan, 0.01, 0.1])
    series = [
        Series("a", [0.0, 1.0, 10.0, 100.0], y, y * 0.0, y * 2),
        Series("b", [1.0], [np.nan]),
        Series("c", [], []),
    ]
    figure = curves(series, log_x=True, log_y=True, **LABELS)
    assert figure.axes[0].get_xscale() == figure.axes[0].get_yscale() == "symlog"
    assert "nan" not in svg(figure).lower()
    assert {"b (no value)", "c (no value)"} <= set(texts(figure.axes[0]))


def test_names_in_any_script():
    assert "模型" in svg(curves([Series("模型", [1, 2], [3, 4])], **LABELS))


def test_the_name_of_the_vertical_axis_and_the_title_are_written():
    text = svg(curves([Series("a", [1, 2], [3, 4])], title="a < b", **LABELS))
    assert all(f">{words}</text>" in text for words in ("a &lt; b", "flip rate", "step"))


@pytest.mark.parametrize("lines", [1, 2, 3])
def test_the_title_is_above_all_lines_of_the_other_name(lines):
    figure = curves([Series("a", [1, 2], [3, 4])], x_label="x", y_label="\n".join(["name"] * lines), title="Title")
    (axes,) = figure.axes
    figure.canvas.draw()
    (above,) = [text for text in axes.texts if text.get_gid() == "y-label"]
    (title,) = [text for text in axes.get_children() if getattr(text, "get_text", str)() == "Title"]
    assert title.get_window_extent().y0 >= above.get_window_extent().y1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([1, 2], [1]), r"one number a point .* x \(2,\), y \(1,\)"),
        (([[1]], [[1]]), "one number a point"),
        (([1], [1], [0]), "only one end of its band"),
        (([1], [1], None, [0]), "only one end of its band"),
    ],
)
def test_a_series_that_does_not_fit_together_is_refused(arguments, message):
    with pytest.raises(UsageError, match=message):
        Series("vit", *arguments)


def test_no_series_is_refused():
    with pytest.raises(UsageError, match="at least one series"):
        curves([], **LABELS)


def test_a_background_series_is_thin_grey_and_behind_the_others():
    runs = [Series(f"seed {seed}", [0, 1], [seed, seed + 1], is_background=True) for seed in range(3)]
    figure = curves([*runs, Series("vit", [0, 1], [1, 2])], **LABELS)
    lines = {line.get_label(): line for line in figure.axes[0].get_lines()}
    assert {lines[run.name].get_color() for run in runs} == {BACKGROUND.color}
    assert all(lines[run.name].get_linewidth() < lines["vit"].get_linewidth() for run in runs)
    assert list(lines)[:3] == ["seed 0", "seed 1", "seed 2"]
