"""What README and docs show must run, and what they link to must exist."""

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


def test_the_scoreboard_is_what_the_records_say():
    tools = runpy.run_path(str(ROOT / "tools" / "scoreboard.py"))
    rows = tools["scoreboard"](tools["STUDIES"])
    shown = tools["MARKED"].search((ROOT / "README.md").read_text(encoding="utf-8"))
    assert shown[0] == shown[1] + tools["table"](rows) + shown[2]
    page = (ROOT / "docs" / "reproducing.md").read_text(encoding="utf-8")
    assert page == tools["HEAD"] + tools["table"](rows) + "\n" + "\n".join(tools["details"](row) for row in rows)
    assert {row.status for row in rows} <= {"AGREES", "DISAGREES", "UNDECIDED"}  # no run is unfinished or outdated


@pytest.mark.parametrize("page", ["architecture.md", "add-your-own.md"])
def test_files_that_a_page_names_exist(page):
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    named = re.findall(r"`((?:src/)?(?:jostle|jostle_papers|tests)/[\w/.]+)`", text)
    assert named
    missing = [name for name in named if not any((ROOT / place / name).exists() for place in ("", "src"))]
    assert missing == []
