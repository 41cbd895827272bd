"""All runs under a folder as one page: the scoreboard, then each study with its findings and figures."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from jostle.base.estimate import provenance
from jostle.report import Entry, Page, Section, Table
from jostle.report.page import Value
from jostle.studies.folder import FIGURES, Summary, read_summary
from jostle.studies.schema import to_plain
from jostle.studies.scoreboard import COLUMNS, Row, counts, scoreboard
from jostle.studies.verdict import Verdict

_TONES: dict[str, str] = {
    Verdict.AGREES: "good", Verdict.DISAGREES: "bad", Verdict.ALIKE: "bad", Verdict.UNDECIDED: "open",
}  # fmt: skip
_SAID: dict[str, str] = {
    Verdict.AGREES: "in agreement",
    Verdict.DISAGREES: "in disagreement",
    Verdict.ALIKE: "alike where a difference is claimed",
}


def page(runs: str | Path) -> Page:
    """The report of all studies run under ``runs``."""
    rows = scoreboard(runs)
    summaries = [read_summary(row.folder) for row in rows]
    studies = [section for row, summary in zip(rows, summaries, strict=True) for section in _study(row, summary)]
    origin = provenance()
    return Page(
        title="Studies: what was claimed, what was measured",
        lead=_lead(rows),
        sections=[_board(rows), *studies],
        footer=f"Made by jostle {origin['jostle']}, {origin['time']}.",
        data={"rows": [to_plain(row) for row in rows], "summaries": [one and to_plain(one) for one in summaries]},
    )


def _lead(rows: list[Row]) -> str:
    if not rows:
        return "There is no run of a study here yet."
    found = ", ".join(f"{count} {_SAID.get(status, status.lower())}" for status, count in counts(rows).items())
    return f"{len(rows)} run{'s' if len(rows) > 1 else ''} of studies: {found}."


def _board(rows: list[Row]) -> Section:
    lines: list[list[Value | Entry]] = [
        [
            Entry(row.name, link=_title(row)),
            row.claim,
            "\n".join(row.measured),
            Entry(row.verdict, tone=_TONES.get(row.status, "")),
            row.scale,
            Entry(f"{row.minutes:.1f}", row.minutes),
        ]
        for row in rows
    ]
    return Section(
        title="Scoreboard",
        text=[
            "A verdict comes from intervals alone: it agrees if the whole interval lies where the claim puts it, "
            "disagrees if none of it does, and is undecided otherwise. A claim agrees if all of its findings do, and "
            "disagrees if one of them does by Holm's rule. Each interval has a level of its own, 95 % if there was one "
            "look at the seeds. "
            "The smoke scale only shows that a study runs: it decides nothing."
        ],
        table=Table(COLUMNS, lines, caption="One row for each run."),
    )


def _study(row: Row, summary: Summary | None) -> Iterator[Section]:
    """The section of a run, and one more for each figure after the first."""
    title = _title(row)
    if summary is None:
        yield Section(title, [f"Claim: {row.claim}", f"This run is {row.verdict}."])
        return
    first, *others = list(_figures(title, row.folder, summary)) or [Section(title)]
    text = [f"{summary.title}. Claim ({summary.source}): {summary.claim}", f"Verdict: {row.verdict}.", *first.text]
    yield replace(first, text=text, table=_findings(summary), notes=_notes(summary))
    for number, section in enumerate(others, start=2):
        yield replace(section, title=f"{title}, figure {number}", is_listed=False)


def _title(row: Row) -> str:
    return f"{row.name} ({row.scale})"


def _figures(title: str, folder: Path, summary: Summary) -> Iterator[Section]:
    """A section for each figure, with nothing but the figure."""
    for figure in summary.figures:
        path = folder / FIGURES / f"{figure.stem}.svg"
        found = path.read_text(encoding="utf-8").strip() if path.exists() else ""
        if found.startswith("<svg"):
            yield Section(title, figure_svg=found, caption=figure.caption, alt=figure.alt)
        else:
            yield Section(title, [f"The figure {path.name} is missing; start the study again to draw it anew."])


def _findings(summary: Summary) -> Table:
    whys = ["; ".join(part for part in (finding.reason, finding.needs) if part) for finding in summary.findings]
    is_one = len(whys) > 1 and len(set(whys)) == 1  # said once, not on every line
    rows = [
        [
            finding.statement,
            finding.expected,
            Entry(finding.measured, finding.value),
            "exact" if finding.level is None else Entry(f"{finding.level:.4g}", finding.level),
            Entry(
                finding.verdict.value + (" (beyond the claim)" if finding.is_beyond else ""),
                tone=_TONES[finding.verdict],
            ),
            *([] if is_one else [why]),
        ]
        for finding, why in zip(summary.findings, whys, strict=True)
    ]
    columns = ["expectation", "expected", "measured", "level", "verdict", *([] if is_one else ["why"])]
    caption = "Findings, with intervals. What is beyond the claim is no part of the verdict."
    return Table(columns, rows, caption=f"{caption} Of all of them: {whys[0]}." if is_one and whys[0] else caption)


def _notes(summary: Summary) -> list[str]:
    settings = " ".join(f"`{name}={value}`" for name, value in summary.settings.items())
    notes = [f"Differs from the paper: {sentence}" for sentence in summary.deviations]
    if summary.modified:
        changed = " ".join(f"`{name}={value}`" for name, value in summary.modified.items())
        notes.append(f"Modified: not the study's own settings, but {changed}.")
    notes.append(f"Settings: {settings} `seeds={summary.seeds}`; version {summary.version} of the study.")
    notes += [f"Warning: {warning}" for warning in summary.warnings]
    for origin in summary.provenance:
        parts = ", ".join(f"{name} {value}" for name, value in origin.items() if name != "time")
        notes.append(f"Made with {parts}; started {origin.get('time', 'at an unknown time')}.")
    return notes
