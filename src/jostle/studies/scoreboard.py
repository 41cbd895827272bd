"""All runs under a folder as one table: study, claim, what was measured, verdict, scale, minutes."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jostle.base.errors import UsageError
from jostle.base.store import Record, Store
from jostle.studies.catalogue import STUDIES
from jostle.studies.folder import ASIDE, RECORDS, read_summary
from jostle.studies.settings import SCALES
from jostle.studies.verdict import Finding, Verdict

_FEW = 4  # findings shown one by one

COLUMNS = ("study", "claim", "what was measured", "verdict", "scale", "minutes")


@dataclass(frozen=True)
class Row:
    """One run of a study.

    Arguments:
        name, claim: of the study.
        measured: each finding in a few words.
        status: a verdict, or ``unfinished`` or ``outdated``: then no verdict counts.
        verdict: as shown: the status, and what it needs to be understood.
        scale: with what is unusual: other settings or another number of seeds.
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

    def to_dict(self) -> dict[str, Any]:
        """A plain dictionary, for JSON."""
        return vars(self) | {"measured": list(self.measured), "folder": str(self.folder)}


def run_folders(runs: str | Path) -> list[Path]:
    """The folders of all runs of studies under ``runs``, without those put aside; other files are ignored."""
    runs = Path(runs)
    if not runs.is_dir():
        raise UsageError(f"runs folder {runs} does not exist; jostle run makes one")
    found = [path.parent for path in runs.rglob(RECORDS) if not any(ASIDE in part for part in path.parts)]
    return sorted((path for path in found if "study" in _store(path)), key=_order)


def scoreboard(runs: str | Path) -> list[Row]:
    """One row for each run under ``runs``, by study and scale."""
    return [row(folder) for folder in run_folders(runs)]


def row(folder: Path) -> Row:
    """The row of the run in one folder."""
    store = _store(folder)
    study, summary = store["study"], read_summary(folder)
    cells = [store[key] for key in store if key.startswith("cell/")]
    if summary is None:
        whole = max((store[key]["cells"] for key in store if key.startswith("session/")), default=0)
        status, verdict = "unfinished", f"unfinished: {len(cells)} of {whole} cells"
        measured: tuple[str, ...] = ()
    else:
        measured = tuple(in_words([Finding.from_dict(finding) for finding in summary["findings"]]))
        status = verdict = summary["verdict"]
        now = _current_version(study["name"])
        if now not in (None, summary["version"]):
            status, verdict = "outdated", f"outdated: {verdict} by version {summary['version']}, now it is {now}"
    seconds = sum(cell["seconds"] for cell in cells) if summary is None else summary["seconds"]
    claim = study["claim"] if summary is None else summary["claim"]
    return Row(study["name"], claim, measured, status, verdict, scale_label(study, summary), seconds / 60, folder)


def scale_label(study: Record, summary: Record | None) -> str:
    """The scale, with everything that makes the run differ from the study's own settings."""
    parts = [study["scale"]]
    if summary is not None and summary["seeds"] != summary["usual_seeds"]:
        parts.append(f"{summary['seeds']} instead of {summary['usual_seeds']} seeds")
    if study["modified"]:
        parts.append("modified: " + " ".join(f"{name}={value}" for name, value in study["modified"].items()))
    return ", ".join(parts)


def counts(rows: Iterable[Row]) -> dict[str, int]:
    """How many rows have each status, in the order agrees, disagrees, undecided, unfinished, outdated."""
    found = [row.status for row in rows]
    return {status: found.count(status) for status in (*Verdict, "unfinished", "outdated") if status in found}


def markdown(rows: Iterable[Row]) -> str:
    """The rows as a Markdown table."""
    lines = [f"| {' | '.join(COLUMNS)} |", "|" + "---|" * (len(COLUMNS) - 1) + "---:|"]
    for line in rows:
        measured = "<br>".join(_escaped(part) for part in line.measured)
        cells = [_escaped(line.name), _escaped(line.claim), measured, _escaped(line.verdict), _escaped(line.scale)]
        lines.append(f"| {' | '.join([*cells, f'{line.minutes:.1f}'])} |")
    return "\n".join(lines) + "\n"


def in_words(findings: list[Finding]) -> list[str]:
    """What was found, in a few lines: of many findings the claim's first, those that do not agree, and counts."""
    if len(findings) <= _FEW:
        return [_line(finding) for finding in findings]
    asked, further = ([f for f in findings if f.is_beyond == is_beyond] for is_beyond in (False, True))
    shown = [f for number, f in enumerate(asked) if number == 0 or f.verdict != Verdict.AGREES]
    counted = f"{_agreeing(asked)} of {len(asked)} expectations of the claim agree"
    if further:
        counted += f", {_agreeing(further)} of {len(further)} beyond it"
    return [*map(_line, shown[:_FEW]), counted]


def _agreeing(findings: list[Finding]) -> int:
    return sum(finding.verdict == Verdict.AGREES for finding in findings)


def _line(finding: Finding) -> str:
    apart = "; beyond the claim" if finding.is_beyond else ""
    return f"{finding.statement}: {finding.measured} (expected {finding.expected}{apart})"


def _escaped(text: str) -> str:
    plain = " ".join(text.split()).replace("\\", "\\\\")
    for character in "|<>*_`[]":
        plain = plain.replace(character, f"\\{character}")
    return plain


def _current_version(name: str) -> int | None:
    """The version of the study now; None for a study this jostle does not have."""
    return STUDIES.get(name).version if name in STUDIES.names() else None


def _order(folder: Path) -> tuple[str, int, str]:
    study = _store(folder)["study"]
    return study["name"], SCALES.index(study["scale"]), folder.name


def _store(folder: Path) -> Store:
    return Store(folder / RECORDS)
