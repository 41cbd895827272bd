"""README and docs: links lead somewhere, numbers are those of the records. test_docs.py runs what they show."""

import dataclasses
import json
import re
import runpy

import pytest

from jostle.studies.verdict import Finding, Verdict
from tests.documents import ROOT, pages


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(page):
    links = re.findall(r"\]\(([^)#]+)\)", page.read_text())
    for link in links:
        assert link.startswith("https://") or (page.parent / link).exists(), link


def test_the_readme_is_short_and_names_the_two_commands():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(text.encode()) <= 8 * 1024
    assert "make demo" in text
    assert "make test" in text


def test_the_readme_counts_passes_as_the_record_does():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    records = json.loads((ROOT / "docs" / "results" / "benchmarks.json").read_text(encoding="utf-8"))
    found = re.search(r"takes 1/(\d+) of the passes of the papers' grid", text)[1]
    assert f'"grid_passes_over_ours": {found}' in json.dumps(records)


def test_the_page_of_the_demo_is_what_the_records_say():
    tool = runpy.run_path(str(ROOT / "tools" / "demo_page.py"))
    shown = tool["MARKED"].search((ROOT / "docs" / "demo.md").read_text(encoding="utf-8"))
    assert shown[0] == shown[1] + tool["block"](tool["DemoRecords"](tool["RECORDS"])) + shown[2]


@pytest.fixture
def board(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "tools")
    return runpy.run_path(str(ROOT / "tools" / "scoreboard.py"))


def test_the_scoreboard_is_what_the_records_say(board):
    shown = board["MARKED"].search((ROOT / "README.md").read_text(encoding="utf-8"))
    assert shown[0] == shown[1] + board["brief"](board["summaries"]()) + shown[2]
    made = board["pages"]()
    written = {*(ROOT / "docs" / "studies").rglob("*.md"), *(ROOT / "docs" / "papers").glob("*.md")}
    assert written == set(made) - {board["PAGE"], *board["citing"]()}
    site = board["LISTED"].search((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))
    assert site[0] == site[1] + board["listed"]() + site[2]
    for path, text in made.items():
        assert path.read_text(encoding="utf-8") == text, f"{path} is out of date: make scoreboard"
    rows = board["scoreboard"](board["STUDIES"])
    assert {row.status for row in rows} <= set(Verdict)  # no run is unfinished or outdated


PROSE = (
    "average-to-worst", "certainty", "features", "grokking", "hardness", "language", "parity", "robustness",
    "stability", "synthetic", "vision",
)  # fmt: skip


@pytest.mark.parametrize("name", PROSE)
def test_findings_in_prose_are_cited_and_not_typed(board, name):
    text = board["cited"].CITED.sub("", (ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8"))
    text = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    assert re.findall(r"-?\d[\d.,]*\s+\[-?\d[\d.]*,\s+-?\d[\d.]*\]", text) == []


def test_a_citation_can_turn_the_sign_and_make_a_factor_of_a_logarithm(board):
    finding = Finding("slope", "< 0", Verdict.AGREES, -0.5, -0.7, -0.2, 0.95)
    summary = dataclasses.replace(next(iter(board["summaries"]().values())), findings=[finding])
    said = board["cited"].said
    assert said(summary, "slope") == "-0.50 [-0.70, -0.20]"
    assert said(summary, "minus slope") == "0.50 [0.20, 0.70]"
    assert said(summary, "exp slope") == "0.61 [0.50, 0.82]"
    empty = dataclasses.replace(summary, findings=[dataclasses.replace(finding, low=None)])
    with pytest.raises(SystemExit, match="no interval"):
        said(empty, "minus slope")


def test_every_undecided_claim_says_what_would_decide_it(board):
    said = re.compile(r"\d (seeds|runs|networks|images)|more seeds|no number of seeds")
    for row in board["scoreboard"](board["STUDIES"]):
        summary = board["read_summary"](row.folder)
        if summary.verdict == "UNDECIDED":
            assert ": " in board["verdict"](row, summary), row.name
            for finding in filter(board["is_open"], summary.findings):
                assert said.search(board["need"](finding)), finding.statement


def test_a_claim_that_disagrees_says_where_its_setting_is_ours(board):
    words = ("at our setting", "as printed", "our reading")
    for row in board["scoreboard"](board["STUDIES"]):
        if row.status == Verdict.DISAGREES:
            assert any(word in row.claim.lower() for word in words), row.name


def test_questions_are_answered_for_every_verdict(board):
    """A sentence for each verdict, from the first source with records; a finding that is not there is an error."""
    found = board["summaries"]()
    assert 9 <= board["brief"](found).count("\n| ") <= 12
    for question in board["QUESTIONS"]:
        source = question.source(found)
        for verdict in board["Verdict"]:
            changed = {**found, source.study: dataclasses.replace(found[source.study], verdict=verdict)}
            sentence = source.answer(changed)
            short = source.answer(changed, brief=True)
            for text in (sentence, short):
                assert text.endswith(".")
                assert "[" in text  # a number with its interval
            assert len(short) <= len(sentence)


def test_minutes_have_the_training_of_another_study(board):
    epochs = [{"epoch": 0, "loss": 0.7, "accuracy": 0.5}, {"epoch": 1, "loss": 0.1, "accuracy": 1.0}]
    assert board["trained"]({"epochs": epochs}) == board["trained"]({"epochs": epochs, "more": 1}) != ""
    assert board["trained"]({"epochs": [dict(epochs[0], loss=0.6)]}) != board["trained"]({"epochs": epochs[:1]})
    assert board["trained"]({"epochs": 5}) == board["trained"]({}) == ""


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.relative_to(ROOT).as_posix())
def test_files_that_a_page_names_exist(page):
    text = page.read_text(encoding="utf-8")
    pattern = r"`((?:src/|examples/|tools/|benchmarks/|tests/|docs/|jostle/|jostle_papers/)[\w/.-]+\.[a-z]+)`"
    named = re.findall(pattern, text)
    assert named or page.name not in ("architecture.md", "add-your-own.md")
    missing = [name for name in named if not any((ROOT / place / name).exists() for place in ("", "src"))]
    assert missing == []


def test_the_page_of_benchmarks_is_what_the_records_say():
    tool = runpy.run_path(str(ROOT / "tools" / "benchmarks.py"))
    records = json.loads((ROOT / "docs" / "results" / "benchmarks.json").read_text(encoding="utf-8"))
    assert (ROOT / "docs" / "benchmarks.md").read_text(encoding="utf-8") == tool["page"](records)
