"""The records that are committed can be read as what they were, and would be written again byte for byte."""

import json
from pathlib import Path

import pytest

from jostle import studies
from jostle.studies import from_plain, to_plain
from jostle.studies.folder import CellLine, SessionLine, StudyLine, Summary
from jostle.studies.settings import override_settings, plain_settings

RESULTS = Path(__file__).parents[3] / "docs" / "results" / "studies"
FOLDERS = sorted(path.parent for path in RESULTS.rglob("records.jsonl"))
KINDS = {"study": StudyLine, "session": SessionLine, "cell": CellLine}


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: str(folder.relative_to(RESULTS)))
def test_every_line_is_read_and_written_as_it_is(folder):
    lines = [json.loads(line) for line in (folder / "records.jsonl").read_text().splitlines()]
    name = lines[0]["record"]["name"]
    kind = studies.get(name).record_type
    for line in lines:
        entry = from_plain(KINDS[line["key"].partition("/")[0]], line["record"], line["key"])
        assert json.dumps(to_plain(entry)) == json.dumps(line["record"])
        if isinstance(entry, CellLine):
            record = from_plain(kind, entry.record, line["key"])
            assert json.dumps(to_plain(record)) == json.dumps(entry.record), line["key"]


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: str(folder.relative_to(RESULTS)))
def test_settings_and_summaries_are_read_and_written_as_they_are(folder):
    text = (folder / "summary.json").read_text()
    summary = from_plain(Summary, json.loads(text), "summary")
    assert json.dumps(to_plain(summary), indent=1) + "\n" == text
    standard = studies.get(summary.name).scales[summary.scale]
    settings = override_settings(standard, summary.modified)
    given = {name: value for name, value in plain_settings(settings).items() if value not in (None, "", [], {})}
    assert given == {name: value for name, value in summary.settings.items() if value not in (None, "", [], {})}
    whole = override_settings(standard, summary.settings)
    assert plain_settings(whole) == plain_settings(settings)
