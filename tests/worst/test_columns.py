"""Tables: radii are in units of each column, as the noise of ``measure`` is."""

import pytest
import torch

import jostle


@pytest.fixture
def table():
    """Columns whose sizes differ by a thousand, and a plane that cuts them: (rows, columns), weights, shift."""
    torch.manual_seed(0)
    rows = torch.randn(12, 3) * torch.tensor([0.01, 1.0, 10.0]) + torch.tensor([5.0, 0.0, -3.0])
    weights = torch.tensor([60.0, 0.7, 0.05])
    return rows, weights, -float(rows.mean(dim=0) @ weights)


def test_a_cell_is_flippable_exactly_if_the_plane_is_within_that_many_standard_deviations(table):
    rows, weights, shift = table
    radii = (0.5, 1.0, 2.0)
    w = jostle.worst_case(
        lambda x: x @ weights + shift, rows, tokens=jostle.Columns(), radius=radii, starts=2, steps=5, draws=8
    )
    needed = (rows @ weights + shift).abs()[:, None] / (weights.abs() * rows.std(dim=0, correction=0))
    for place, radius in enumerate(radii):
        assert w.values[place].tolist() == (needed < radius).double().tolist()
    assert "each column's standard deviation" in str(w)
    assert not w.settings.relative


def test_without_scaling_radii_are_what_they_were(table):
    rows, weights, shift = table
    arguments = {"radius": 1.0, "response": "margin", "starts": 2, "steps": 5, "draws": 8, "relative": False}
    w = jostle.worst_case(lambda x: x @ weights + shift, rows, tokens=jostle.Columns(scaled=False), **arguments)
    torch.testing.assert_close(torch.from_numpy(w.values[0]), weights.double().abs().expand(12, 3))
    assert "absolute length" in str(w)


def test_columns_that_never_change_are_named_as_that(table):
    rows, weights, shift = table
    rows = rows.clone()
    rows[:, 1] = 7.0
    with pytest.warns(jostle.JostleWarning, match="never change"):
        w = jostle.worst_case(lambda x: x @ weights + shift, rows, tokens="columns", draws=2, starts=1, steps=1)
    (said,) = [text for text in w.warnings if "never change" in text]
    assert said.startswith("12 of 36 values are in columns that never change")
    assert "relative=False" not in said


def test_pictures_and_pages_name_the_unit(table, tmp_path):
    rows, weights, shift = table
    w = jostle.worst_case(lambda x: x @ weights + shift, rows, tokens="columns", radius=2.0, starts=1, steps=2, draws=4)
    assert "radius, each column's standard deviation" in w.plot().axes[0].get_xlabel()
    w.report(tmp_path / "w.html")
    assert "2 times each column" in (tmp_path / "w.html").read_text(encoding="utf-8")
    assert jostle.worst_case(lambda x: x @ weights, rows, tokens="columns", draws=2, starts=1, steps=1).value >= 0
