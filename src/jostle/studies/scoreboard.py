"""All runs under a folder as one table: study, claim, what was measured, verdict, scale, minutes."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from jostle.base.errors import UsageError
from jostle.studies.finished import current_version
from jostle.studies.folder import ASIDE, RECORDS, RecordFile, StudyLine, Summary, read_summary
from jostle.studies.schema import Struct
from jostle.studies.settings import SCALES
from jostle.studies.verdict import Finding, Verdict

_FEW = 4  # findings shown one by one

COLUMNS = ("study", "claim", "what was measured", "verdict", "scale", "minutes")


@dataclass(frozen=True)
class Row(Struct):
    """One run of a study.

    Arguments:
        name, claim: of the study.
        measured: each finding in a few words.
        status: the verdict, or ``unfinished`` or ``outdated`` where there is no valid verdict.
        verdict: as shown: the status, with an explanation where it needs one.
        scale: with other settings or another number of seeds, if there are any.
        minutes: of all cells together, as if one worker had done them.
        folder: where the run is.
    """

    name: str
    claim: str
    measured: tuple[str, ...]
    status: str
    verdict: str
    scale: str
    minutes: float
    folder: Path


def scoreboard(runs: str | Path) -> list[Row]:
    """One row for each run under ``runs``, by study and scale; folders put aside and other files are ignored."""
    runs = Path(runs)
    if not runs.is_dir():
        what = "is not a folder" if runs.exists() else "does not exist"
        raise UsageError(f"runs folder {runs} {what}; jostle run makes one")
    folders = [path.parent for path in runs.rglob(RECORDS) if not any(ASIDE in part for part in path.parts)]
    found = []
    for folder in folders:
        file = RecordFile(folder)
        study = file.study()
        if study is not None:
            found.append(((study.name, SCALES.index(study.scale), folder.name), row(folder, file, study)))
    return [line for _, line in sorted(found, key=lambda pair: pair[0])]


def row(folder: Path, file: RecordFile, study: StudyLine) -> Row:
    """The row of the run in one folder, whose records are in ``file``."""
    summary = read_summary(folder)
    label = scale_label(study, summary)
    if summary is None:
        cells, whole = file.cells(), max((session.cells for session in file.sessions()), default=0)
        verdict = f"unfinished: {len(cells)} of {whole} cells"
        minutes = sum(cell.seconds for cell in cells.values()) / 60
        return Row(study.name, study.claim, (), "unfinished", verdict, label, minutes, folder)
    status = verdict = str(summary.verdict)
    now = current_version(study.name)
    if now not in (None, summary.version):
        status, verdict = "outdated", f"outdated: {verdict} by version {summary.version}, now it is {now}"
    measured = tuple(in_words(summary.findings))
    return Row(study.name, summary.claim, measured, status, verdict, label, summary.seconds / 60, folder)


def scale_label(study: StudyLine, summary: Summary | None) -> str:
    """The scale, with everything that makes the run differ from the study's own settings."""
    parts = [study.scale]
    if summary is not None and summary.seeds != summary.usual_seeds:
        parts.append(f"{summary.seeds} instead of {summary.usual_seeds} seeds")
    if study.modified:
        parts.append("modified: " + " ".join(f"{name}={value}" for name, value in study.modified.items()))
    return ", ".join(parts)


def counts(rows: Iterable[Row]) -> dict[str, int]:
    """How many rows have each status, in the order agrees, disagrees, undecided, unfinished, outdated."""
    found = [row.status for row in rows]
    return {status: found.count(status) for status in (*Verdict, "unfinished", "outdated") if status in found}


def markdown(rows: Iterable[Row]) -> str:
    """The rows as a Markdown table."""
    lines = [f"| {' | '.join(COLUMNS)} |", "|" + "---|" * (len(COLUMNS) - 1) + "---:|"]
    for line in rows:
        measured = "<br>".join(_escape(part) for part in line.measured)
        texts = [_escape(line.name), _escape(line.claim), measured, _escape(line.verdict), _escape(line.scale)]
        lines.append(f"| {' | '.join([*texts, f'{line.minutes:.1f}'])} |")
    return "\n".join(lines) + "\n"


def in_words(findings: list[Finding]) -> list[str]:
    """The findings in a few lines. Of many: the first of the claim, those that do not agree, and counts."""
    if len(findings) <= _FEW:
        return [_line(finding) for finding in findings]
    claimed, further = ([f for f in findings if f.is_beyond == is_beyond] for is_beyond in (False, True))
    shown = [f for number, f in enumerate(claimed) if number == 0 or f.verdict != Verdict.AGREES]
    counted = f"{_count_agreeing(claimed)} of {len(claimed)} expectations of the claim agree"
    if further:
        counted += f", {_count_agreeing(further)} of {len(further)} beyond it"
    return [*map(_line, shown[:_FEW]), counted]


def _count_agreeing(findings: list[Finding]) -> int:
    return sum(finding.verdict == Verdict.AGREES for finding in findings)


def _line(finding: Finding) -> str:
    apart = "; beyond the claim" if finding.is_beyond else ""
    return f"{finding.statement}: {finding.measured} (expected {finding.expected}{apart})"


def _escape(text: str) -> str:
    plain = " ".join(text.split()).replace("\\", "\\\\")
    for character in "|<>*_`[]":
        plain = plain.replace(character, f"\\{character}")
    return plain
