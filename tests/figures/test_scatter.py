"""Points are drawn where they are, each kind with a look and a name of its own."""

import pytest

from jostle.base.errors import UsageError
from jostle.figures import scatter, svg


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
