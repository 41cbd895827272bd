import pytest

from jostle.base.errors import UsageError
from jostle.base.store import Store
from jostle.studies import STUDIES, CellsFailedError, markdown, run, scoreboard, to_plain
from jostle.studies.scoreboard import counts, in_words
from jostle.studies.verdict import Finding, Verdict
from tests.studies.toys import Toy, make_known


@pytest.fixture(autouse=True)
def _known(monkeypatch):
    make_known(monkeypatch)


def toy(out, scale="small", **options):
    return run(Toy.name, scale, out, progress=False, **options)


def test_rows_come_from_summaries_by_study_and_scale(tmp_path):
    small, smoke = toy(tmp_path), toy(tmp_path, "smoke")
    toy(tmp_path, overrides={"gap": -10}, seeds=4)
    Store(tmp_path / "demo" / "records.jsonl").append("settings", {"seed": 0})  # not a study
    rows = scoreboard(tmp_path)
    assert [(row.scale, row.status) for row in rows] == [
        ("smoke", "UNDECIDED"),
        ("small", "AGREES"),
        ("small, 4 instead of 3 seeds, modified: gap=-10.0", "DISAGREES"),
    ]
    assert [row.folder for row in rows[:2]] == [smoke.folder, small.folder]
    row = rows[1]
    assert row.claim == Toy.claim
    assert small.findings[0].measured in row.measured[0]
    assert row.measured[0].endswith("(expected < 0)")
    assert row.minutes == small.summary.seconds / 60
    assert counts(rows) == {"AGREES": 1, "DISAGREES": 1, "UNDECIDED": 1}
    assert to_plain(row)["folder"] == str(small.folder)


def test_a_changed_version_is_shown_and_so_is_a_study_that_is_gone(tmp_path, monkeypatch):
    toy(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(Toy, "version", 2)
        [row] = scoreboard(tmp_path)
    assert (row.status, row.verdict) == ("outdated", "outdated: AGREES by version 1, now it is 2")
    monkeypatch.delitem(STUDIES._things, Toy.name)
    assert [row.status for row in scoreboard(tmp_path)] == ["AGREES"]


def test_an_unfinished_run_has_no_verdict(tmp_path):
    with pytest.raises(CellsFailedError):
        toy(tmp_path, overrides={"broken": "mlp/seed=0"})
    [row] = scoreboard(tmp_path)
    assert (row.status, row.verdict, row.measured) == ("unfinished", "unfinished: 5 of 6 cells", ())
    assert row.claim == Toy.claim


def test_what_was_put_aside_does_not_count(tmp_path):
    toy(tmp_path)
    toy(tmp_path, fresh=True)
    assert len(scoreboard(tmp_path)) == 1


def test_the_markdown_table_has_one_line_a_row_whatever_the_text(tmp_path, monkeypatch):
    monkeypatch.setattr(Toy, "claim", "a | b\n<script> *c* [d]")
    toy(tmp_path)
    rows = scoreboard(tmp_path)
    heading, rule, line = markdown(rows).splitlines()
    assert heading == "| study | claim | what was measured | verdict | scale | minutes |"
    assert rule.count("|") == 7
    assert r"| a \| b \<script\> \*c\* \[d\] |" in line
    assert "| AGREES | small | 0.0 |" in line
    assert "<br>" in line


def test_a_missing_folder_and_a_damaged_summary_are_one_line(tmp_path):
    with pytest.raises(UsageError, match="does not exist; jostle run makes one"):
        scoreboard(tmp_path / "nothing")
    assert scoreboard(tmp_path) == []
    (toy(tmp_path).folder / "summary.json").write_text("{")
    with pytest.raises(UsageError, match=r"summary.json is damaged"):
        scoreboard(tmp_path)


def test_many_findings_are_counted_and_those_that_do_not_agree_shown():
    def finding(number, verdict=Verdict.AGREES, is_beyond=False):
        return Finding(f"statement {number}", "> 0", verdict, 1.0, is_beyond=is_beyond)

    few = [finding(0), finding(1, is_beyond=True)]
    assert in_words(few) == [
        "statement 0: 1 (expected > 0)",
        "statement 1: 1 (expected > 0; beyond the claim)",
    ]
    many = [finding(number) for number in range(6)] + [finding(6, Verdict.DISAGREES), finding(7, is_beyond=True)]
    assert in_words(many) == [
        "statement 0: 1 (expected > 0)",
        "statement 6: 1 (expected > 0)",
        "6 of 7 expectations of the claim agree, 1 of 1 beyond it",
    ]
    assert in_words([finding(number) for number in range(6)])[-1] == "6 of 6 expectations of the claim agree"


def test_a_file_in_the_place_of_a_folder_of_runs_is_said(tmp_path):
    (tmp_path / "mine.csv").write_text("x")
    with pytest.raises(UsageError, match=r"mine\.csv is not a folder; jostle run makes one"):
        scoreboard(tmp_path / "mine.csv")
