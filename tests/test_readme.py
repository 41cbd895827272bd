"""What README and docs show must run, and what they link to must exist."""

import dataclasses
import json
import re
import runpy
from pathlib import Path

import pytest
import torch

import jostle

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]


def blocks(page: Path) -> list[str]:
    return re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL)


def test_the_code_of_the_readme_prints_what_it_promises(capsys):
    torch.set_default_dtype(torch.float32)
    exec(compile(blocks(ROOT / "README.md")[0], "README.md", "exec"), {})
    measured, compared = capsys.readouterr().out.splitlines()
    shown = re.search(r"```text\n(.*?)\n(.*?)\n```", (ROOT / "README.md").read_text())
    assert measured == shown[1]
    assert compared.split(":")[0] == shown[2].split(":")[0]
    value, low, high, exact = (float(number) for number in re.findall(r"0\.\d+", measured))
    assert exact == 0.273
    assert low <= value <= high
    assert high - low <= 0.0201
    assert abs(value - exact) < 0.02
    assert compared.startswith("cnn - mlp: ")


def test_the_penalty_of_the_readme_joins_any_loss():
    model, images = jostle.models.create("mlp", image_size=8, channels=1, seed=0), torch.randn(6, 1, 8, 8)
    criterion, labels = torch.nn.CrossEntropyLoss(), torch.arange(6)
    names = {"jostle": jostle, "model": model, "images": images, "criterion": criterion, "labels": labels}
    exec(compile(blocks(ROOT / "README.md")[1], "README.md", "exec"), names)
    assert names["loss"] > criterion(model(images), labels)


@pytest.mark.parametrize(
    "page", [page for page in PAGES if page.name != "README.md" and blocks(page)], ids=lambda p: p.name
)
def test_the_code_of_the_docs_runs(page, capsys):
    for block in blocks(page):
        exec(compile(block, page.name, "exec"), {"__name__": "docs"})
    assert capsys.readouterr().out


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    links = re.findall(r"\]\(([^)#]+)\)", page.read_text())
    for link in links:
        assert link.startswith("https://") or (page.parent / link).exists(), link


def test_the_readme_names_the_two_commands_and_holds_the_record():
    text = (ROOT / "README.md").read_text()
    assert "make demo" in text
    assert "make test" in text
    assert "| ViT |" in text
    assert (ROOT / "docs" / "results" / "demo.jsonl").exists()


@pytest.fixture
def board(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "tools")
    return runpy.run_path(str(ROOT / "tools" / "scoreboard.py"))


def test_the_scoreboard_is_what_the_records_say(board):
    shown = board["MARKED"].search((ROOT / "README.md").read_text(encoding="utf-8"))
    assert shown[0] == shown[1] + board["questions"](board["summaries"](), "docs/") + shown[2]
    pages = board["pages"]()
    assert set((ROOT / "docs" / "studies").rglob("*.md")) == set(pages) - {board["PAGE"]}
    for path, text in pages.items():
        assert path.read_text(encoding="utf-8") == text, f"{path} is out of date: make scoreboard"
    rows = board["scoreboard"](board["STUDIES"])
    assert {row.status for row in rows} <= {"AGREES", "DISAGREES", "UNDECIDED"}  # no run is unfinished or outdated


def test_every_undecided_claim_says_what_would_decide_it(board):
    for row in board["scoreboard"](board["STUDIES"]):
        summary = board["read_summary"](row.folder)
        if summary.verdict == "UNDECIDED":
            assert ": " in board["verdict"](row, summary), row.name


def test_questions_are_answered_for_every_verdict(board):
    """A sentence for each verdict, from the first source with records; a finding that is not there is an error."""
    found = board["summaries"]()
    assert 9 <= len(board["QUESTIONS"]) <= 12
    for question in board["QUESTIONS"]:
        source = question.source(found)
        for verdict in board["Verdict"]:
            changed = {**found, source.study: dataclasses.replace(found[source.study], verdict=verdict)}
            sentence = source.answer(changed)
            assert sentence.endswith(".")
            assert "[" in sentence  # a number with its interval


def test_minutes_have_the_training_of_another_study(board):
    epochs = [{"epoch": 0, "loss": 0.7, "accuracy": 0.5}, {"epoch": 1, "loss": 0.1, "accuracy": 1.0}]
    assert board["trained"]({"epochs": epochs}) == board["trained"]({"epochs": epochs, "more": 1}) != ""
    assert board["trained"]({"epochs": [dict(epochs[0], loss=0.6)]}) != board["trained"]({"epochs": epochs[:1]})
    assert board["trained"]({"epochs": 5}) == board["trained"]({}) == ""


@pytest.mark.parametrize("page", ["architecture.md", "add-your-own.md"])
def test_files_that_a_page_names_exist(page):
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    named = re.findall(r"`((?:src/)?(?:jostle|jostle_papers|tests)/[\w/.]+)`", text)
    assert named
    missing = [name for name in named if not any((ROOT / place / name).exists() for place in ("", "src"))]
    assert missing == []


def test_the_page_of_benchmarks_is_what_the_records_say():
    tool = runpy.run_path(str(ROOT / "tools" / "benchmarks.py"))
    records = json.loads((ROOT / "docs" / "results" / "benchmarks.json").read_text(encoding="utf-8"))
    assert (ROOT / "docs" / "benchmarks.md").read_text(encoding="utf-8") == tool["page"](records)
