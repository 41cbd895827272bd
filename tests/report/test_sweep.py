"""The page of a sweep says the numbers of the sweep."""

import pytest
import torch

import jostle
from jostle.report import recover, render
from jostle.report.sweep import sweep_page

INPUTS = torch.randn(60, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
MODELS = {"sum": lambda x: x.sum(dim=1), "<b>first</b>": lambda x: x[:, 0]}


@pytest.fixture(scope="module")
def found():
    return jostle.sweep(MODELS, INPUTS, tokens="coordinates", stds=[0.5, 4.0], plan="grid:3")


def test_every_number_is_in_the_table(found, tmp_path):
    page = sweep_page(found, inputs="x", command="jostle sweep")
    curves, pairs = page.sections
    for row, strength in zip(curves.table.rows, (0.5, 4.0), strict=True):
        measured = [found[name][strength] for name in found.names]
        assert [entry.key for entry in row] == [strength, *(m.value for m in measured)]
        assert row[1].text == f"{measured[0].value:.4f} [{measured[0].low:.4f}, {measured[0].high:.4f}]"
    assert [row[-1] for row in pairs.table.rows] == [pair.verdict for pair in found.differences().values()]
    assert page.lead == found.crossings()[0]
    assert "<b>first" not in render(page)
    found.report(tmp_path / "page.html")
    assert recover(tmp_path / "page.html")["result"]["strengths"] == [0.5, 4.0]


def test_one_model_has_no_pairs():
    found = jostle.sweep(MODELS["sum"], INPUTS, tokens="coordinates", stds=[0.0, 2.0], plan="grid:2", response="margin")
    page = sweep_page(found, inputs="x")
    assert [section.title for section in page.sections] == ["Against the strength"]
    assert "goes from 0 at std 0 to" in page.lead
