"""Every study at smoke scale, from cells to a verdict; and its figures again from the records alone."""

import json

import pytest

from jostle import studies
from jostle.studies import Records, Verdict
from jostle.studies.settings import SCALES
from jostle.studies.study import make_cells


@pytest.mark.parametrize("name", studies.names())
def test_smoke(name, tmp_path):
    result = studies.run(name, scale="smoke", out=tmp_path, progress=False)
    assert result.verdict == Verdict.UNDECIDED  # smoke decides nothing
    assert result.findings
    assert any(finding.value is not None for finding in result.findings)
    assert json.loads((result.folder / "summary.json").read_text())["verdict"] == "UNDECIDED"
    before = {path.name: path.read_bytes() for path in (result.folder / "figures").iterdir()}
    assert before
    study = studies.get(name)
    study.measure = None  # from records alone
    again = {f"{drawing.stem}.svg" for drawing in study.figures(result.records)}
    assert again == set(before)
    assert all(drawing.caption and drawing.alt for drawing in study.figures(result.records))
    assert isinstance(result.records, Records)


@pytest.mark.parametrize("name", studies.names())
@pytest.mark.parametrize("scale", SCALES)
def test_cells_are_distinct_and_seeds_only_add_cells(name, scale):
    study = studies.get(name)
    settings = study.scales[scale]
    one, two = (make_cells(study, settings, range(seeds)) for seeds in (1, 2))
    assert {cell.key for cell in one} <= {cell.key for cell in two}
    assert len(two) > len(one)
