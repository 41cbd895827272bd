import re

import pytest

from jostle.report import recover, render, write
from jostle.studies import CellsFailedError, beyond, run, to_plain
from jostle.studies.page import page
from tests.studies.toys import Toy, make_known


@pytest.fixture(autouse=True)
def _known(monkeypatch):
    make_known(monkeypatch)


def toy(out, scale="small", **options):
    return run(Toy.name, scale, out, progress=False, **options)


def test_the_page_holds_everything_and_asks_nobody_for_anything(tmp_path):
    result = toy(tmp_path / "runs")
    changed = toy(tmp_path / "runs", overrides={"gap": -10, "verbose": True})
    write(page(tmp_path / "runs"), tmp_path / "report.html")
    html = (tmp_path / "report.html").read_text()
    for text in (
        "2 runs of studies: 1 in agreement, 1 in disagreement.",
        Toy.claim,
        Toy.source,
        "Differs from the paper: It is made up.",
        "Modified: not the study&#39;s own settings, but <code>gap=-10.0</code> <code>verbose=True</code>.",
        "Warning: UserWarning: mind vit (vit/seed=0)",
        "<code>size=4</code>",
        "<code>seeds=3</code>",
        "version 1 of the study",
        f"torch {result.summary.provenance[0]['torch']}",
        "Sensitivity by seed.",
        "The same once more.",
        "Two numbers.",
        *(finding.statement for finding in result.findings),
        *(finding.measured for finding in (*result.findings, *changed.findings)),
        *(finding.reason.replace("'", "&#39;") for finding in result.findings),
        "Verdict: AGREES.",
        "Verdict: DISAGREES.",
    ):
        assert text in html, text
    assert html.count("<svg") == 4
    assert html.index("Scoreboard") < html.index("Verdict: AGREES.")
    assert {address for address in re.findall(r"https?://[^\s\"'<>]*", html) if "www.w3.org" not in address} == set()
    assert not re.search(r"""(?:src|href)\s*=\s*["'](?!#|data:)""", html)
    data = recover(tmp_path / "report.html")
    assert [row["status"] for row in data["rows"]] == ["AGREES", "DISAGREES"]
    assert data["summaries"][0] == to_plain(result.summary)


def test_unfinished_runs_missing_figures_and_empty_folders_have_a_page(tmp_path):
    (tmp_path / "runs").mkdir()
    assert "no run of a study here yet" in render(page(tmp_path / "runs"))
    (toy(tmp_path / "runs").folder / "figures" / "again.svg").unlink()
    with pytest.raises(CellsFailedError):
        toy(tmp_path / "runs", overrides={"broken": "mlp/seed=0"})
    html = render(page(tmp_path / "runs"))
    assert html.count("<svg") == 1
    assert "The figure again.svg is missing" in html
    assert "This run is unfinished: 5 of 6 cells." in html


def test_a_reason_that_all_findings_share_is_said_once(tmp_path, monkeypatch):
    toy(tmp_path / "runs", "smoke")
    html = render(page(tmp_path / "runs")).partition("<script")[0]
    assert html.count("smoke scale shows that it runs and decides nothing") == 1
    assert '<th scope="col">why</th>' not in html


def test_text_of_a_study_is_only_text(tmp_path, monkeypatch):
    monkeypatch.setattr(Toy, "claim", "<script>alert(1)</script>")
    toy(tmp_path)
    assert "<script>alert" not in render(page(tmp_path))


def test_what_is_beyond_the_paper_is_marked(tmp_path, monkeypatch):
    expectations = Toy.expectations
    monkeypatch.setattr(Toy, "expectations", lambda *arguments: [*map(beyond, expectations(*arguments))])
    assert "(beyond the claim)" in str(toy(tmp_path))
    html = render(page(tmp_path))
    assert html.count(">AGREES (beyond the claim)<") == 2
    assert "; beyond the claim)" in html
    assert "Verdict: UNDECIDED." in html


def test_the_scoreboard_leads_to_the_studies_and_tells_verdicts_apart(tmp_path):
    result = toy(tmp_path)
    toy(tmp_path, overrides={"gap": -10})
    html = render(page(tmp_path))
    board = html[html.index('id="s-scoreboard"') : html.index("</section>")]
    links = re.findall(r'<th scope="row"[^>]*><a href="#([^"]+)">', board)
    assert len(set(links)) == 2
    assert all(f'<section id="{link}">' in html for link in links)
    assert '<span class="tone good">AGREES</span>' in board
    assert '<span class="tone bad">DISAGREES</span>' in board
    assert board.count('<ul class="lines">') == 2
    assert board.count("<li>") == 2 * len(result.findings)
