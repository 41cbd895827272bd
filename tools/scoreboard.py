"""Write the scoreboard into README.md and docs/reproducing.md from the records under docs/results/studies.

No study is run here: ``jostle run NAME --scale small --out docs/results/studies`` makes the records.
"""

import re
from pathlib import Path

from jostle.base.files import write_text
from jostle.studies.folder import read_summary
from jostle.studies.scoreboard import Row, markdown, scoreboard

ROOT = Path(__file__).resolve().parent.parent
STUDIES = ROOT / "docs" / "results" / "studies"
README = ROOT / "README.md"
PAGE = ROOT / "docs" / "reproducing.md"
MARKED = re.compile(r"(<!-- scoreboard: written by make scoreboard -->\n).*?(<!-- end of scoreboard -->)", re.DOTALL)

HEAD = """# Reproducing the papers

Written by `make scoreboard` from the records in [results/studies](results/studies); run a study again with
`jostle run NAME --scale small --workers 2 --out runs`, and make a page of your own runs with `jostle report runs`.
A verdict comes from intervals: AGREES if they lie where the claim puts them, DISAGREES if they exclude it, UNDECIDED
otherwise. The intervals for what is claimed cover together with 95 %, and so do those for the questions that go beyond
the claim, which are judged alike and are no part of the verdict. A claim is a paper's, in our words; studies called
jostle/... judge claims of ours, which no paper makes.

Several studies look at the same trained networks. They are kept in `runs/networks`, so a second study finds what a
first one trained; deleting that folder costs time and changes no number. Minutes are those of one core, and leave out
the training of networks that were already there.

"""


def main() -> None:
    """Write both files."""
    rows = scoreboard(STUDIES)
    text = README.read_text(encoding="utf-8")
    if not MARKED.search(text):
        raise SystemExit("README.md has lost its markers")
    write_text(README, MARKED.sub(lambda found: found[1] + table(rows) + found[2], text))
    write_text(PAGE, HEAD + table(rows) + "\n" + "\n".join(details(row) for row in rows))


def table(rows: list[Row]) -> str:
    """The scoreboard."""
    return markdown(rows)


def details(row: Row) -> str:
    """One study: claim, findings, figures, settings."""
    summary = read_summary(row.folder)
    if summary is None:
        return f"## {row.name}, {row.scale}\n\n{row.verdict}\n"
    place = row.folder.relative_to(PAGE.parent).as_posix()
    lines = [f"## {row.name}, {row.scale}: {row.verdict}", "", f"*{summary.title}.* {summary.source}."]
    lines += ["", "| finding | expected | measured | verdict | why |", "|---|---|---|---|---|"]
    for finding in summary.findings:
        beyond = " (beyond the claim)" if finding.is_beyond else ""
        cells = (finding.statement, finding.expected, finding.measured, f"{finding.verdict}{beyond}", finding.reason)
        lines.append("| " + " | ".join(cell.replace("|", "\\|").replace("<", "&lt;") for cell in cells) + " |")
    for figure in summary.figures:
        lines += ["", f"![{figure.alt}]({place}/figures/{figure.stem}.svg)", "", figure.caption]
    settings = ", ".join(f"{name} {_plain(value)}" for name, value in summary.settings.items())
    lines += ["", *(f"* Differs: {sentence}" for sentence in summary.deviations)]
    lines += [f"* Settings: {settings}; {summary.seeds} seeds; {row.minutes:.1f} minutes on one core."]
    return "\n".join(lines) + "\n"


def _plain(value: object) -> str:
    """Settings in words: lists with commas, dicts as name (entry value, ...), what is not set left out."""
    if isinstance(value, dict):
        entries = [
            f"{name} ({_plain(v)})" if isinstance(v, dict) else f"{name} {_plain(v)}"
            for name, v in value.items()
            if v not in (None, "", {}, [])
        ]
        return ", ".join(entries)
    if isinstance(value, list):
        return ", ".join(map(_plain, value)) or "none"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


if __name__ == "__main__":
    main()
