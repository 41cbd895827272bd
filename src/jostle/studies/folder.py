"""The folder of one study at one scale: its files, their typed contents, and the lock that only one run holds.

    <out>/<study>/<scale>/records.jsonl      a header that identifies the run, then one line for each cell
                          figures/*.svg
                          summary.json       verdict, findings and all that a report needs; made of the records
                          checkpoints/       of cells under way

    <out>/networks/                          trained networks that studies share

Settings other than the study's own have a folder of their own, ``<scale>-modified-<hash>``.
"""

import contextlib
import datetime
import hashlib
import json
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from jostle.base.errors import FailureError, UsageError
from jostle.base.files import parse_json, write_text
from jostle.base.store import Record, Store
from jostle.studies.schema import IfGiven, Struct, from_plain, to_plain
from jostle.studies.verdict import Finding, Verdict

RECORDS, SUMMARY, FIGURES, CHECKPOINTS = "records.jsonl", "summary.json", "figures", "checkpoints"
NETWORKS, LOCK = "networks", ".lock"
ASIDE = ".before-"  # in the name of a folder that --fresh put aside
SUMMARY_FORMAT = 1

_SAFE = re.compile(r"[^A-Za-z0-9=._-]+")
_STUDY, _SESSION, _CELL = "study", "session/", "cell/"  # keys of the lines of records.jsonl, or what they begin with


@dataclass(frozen=True, kw_only=True)
class Identity(Struct):
    """Whose records a folder holds; they are never mixed with others.

    Arguments:
        name, version: of the study.
        scale: which settings were started from.
        settings: all of them, as a file holds them.
        modified: those that are not the study's own.
    """

    name: str
    version: int
    scale: str
    settings: Record
    modified: Record

    def folder(self, out: Path) -> Path:
        """Where this belongs under ``out``."""
        if not self.modified:
            return out / self.name / self.scale
        digest = hashlib.sha256(json.dumps(self.modified, sort_keys=True).encode()).hexdigest()
        return out / self.name / f"{self.scale}-modified-{digest[:8]}"


@dataclass(frozen=True, kw_only=True)
class StudyLine(Identity):
    """The first line of ``records.jsonl``.

    Arguments:
        title, claim: of the study, for a report of records whose study is not installed.
    """

    title: str
    claim: str


@dataclass(frozen=True, kw_only=True)
class SessionLine(Struct):
    """A line for each time that work began, because each time may be with other versions.

    Arguments:
        cells: the number of cells of the study.
        workers, device: as given.
        provenance: versions, machine and time.
        looks: numbers of seeds at which the study is to be judged until it is decided; empty if that was not planned.
    """

    cells: int
    workers: int
    device: str
    provenance: dict[str, str]
    looks: IfGiven[tuple[int, ...]] = ()


@dataclass(frozen=True, kw_only=True)
class CellLine(Struct):
    """The line of a finished cell.

    Arguments:
        values: what tells the cell from the others.
        record: what was measured, as the file holds it.
        session: the number of the session in which it was done.
        seconds: how long it took.
        warnings: what was warned about on the way.
    """

    values: Record
    record: Record
    session: int
    seconds: float
    warnings: list[str]


class RecordFile:
    """``records.jsonl`` of one run, line by line.

    Arguments:
        folder: of the run.
    """

    def __init__(self, folder: Path) -> None:
        self._folder, self._store = folder, Store(folder / RECORDS)

    def __len__(self) -> int:
        return len(self._store)

    def study(self) -> StudyLine | None:
        """Whose records these are; None if they are no study's."""
        return self._read(StudyLine, _STUDY) if _STUDY in self._store else None

    def sessions(self) -> list[SessionLine]:
        """All sessions, in order. None may be missing: they say at which numbers of seeds a study was judged."""
        found = {key: self._read(SessionLine, key) for key in self._store if key.startswith(_SESSION)}
        last = max((line.session for line in self.cells().values()), default=-1)
        for number in range(max(last + 1, len(found))):
            if f"{_SESSION}{number}" not in found:
                raise UsageError(
                    f"line '{_SESSION}{number}' of {self._folder / RECORDS} is missing; put it back, or start anew "
                    "with --fresh, which keeps the old records in a backup folder"
                )
        return list(found.values())

    def cells(self) -> dict[str, CellLine]:
        """All finished cells, by key."""
        found = [key for key in self._store if key.startswith(_CELL)]
        return {key.removeprefix(_CELL): self._read(CellLine, key) for key in found}

    def has_cell(self, key: str) -> bool:
        """Whether a cell is finished."""
        return _CELL + key in self._store

    def begin(self, line: StudyLine) -> None:
        """Write whose records these are."""
        self._store.append(_STUDY, to_plain(line))

    def begin_session(self, line: SessionLine) -> int:
        """Write that work begins, and return the number of the session."""
        number = len(self.sessions())
        self._store.append(f"{_SESSION}{number}", to_plain(line))
        return number

    def add(self, key: str, line: CellLine) -> None:
        """Write a finished cell."""
        self._store.append(_CELL + key, to_plain(line))

    def _read(self, kind: type[Any], key: str) -> Any:
        return from_plain(kind, self._store[key], f"line {key!r} of {self._folder / RECORDS}")


def open_records(folder: Path, line: StudyLine) -> RecordFile:
    """The records in ``folder``, after making sure that they are of this study, version and settings.

    Arguments:
        folder: made if need be.
        line: whose records are to be there.
    """
    file = RecordFile(folder)
    before = file.study()
    if before is None:
        if len(file):
            raise UsageError(f"folder {folder} holds records that are no study's; give another --out")
        file.begin(line)
        return file
    for name in ("name", "version", "scale", "settings", "modified"):
        was, now = getattr(before, name), getattr(line, name)
        if _without_empty(was) != _without_empty(now):
            was, now = _differing(was, now)
            raise UsageError(
                f"folder {folder} holds records with {name} {was}, now it is {now}; "
                "--fresh puts them aside and starts anew, or give another --out"
            )
    return file


def _without_empty(value: Any) -> Any:
    """Settings without the empty ones, so that records stay valid when a study can choose more than it could."""
    if not isinstance(value, dict):
        return value
    return {name: one for name, one in value.items() if one not in (None, "", [], {})}


def _differing(was: Any, now: Any) -> tuple[Any, Any]:
    """Of two dicts only the entries that are not the same."""
    if not isinstance(was, dict) or not isinstance(now, dict):
        return was, now
    keys = [key for key in {**was, **now} if was.get(key) != now.get(key)]
    return {key: was[key] for key in keys if key in was}, {key: now[key] for key in keys if key in now}


@dataclass(frozen=True, kw_only=True)
class FigureEntry(Struct):
    """A figure in a summary: the stem of its file, its caption, and a description for people who cannot see it."""

    stem: str
    caption: str
    alt: str


@dataclass(frozen=True, kw_only=True)
class Summary(Struct):
    """``summary.json``: all that a report needs, from the records of a complete run.

    Arguments:
        format: of the file.
        name, version, scale, settings, modified: as in ``Identity``.
        title, claim, source, level, deviations: as in ``Study``.
        seeds, usual_seeds: how many there are, and how many the scale has by itself.
        looks: numbers of seeds at which it was judged or was planned to be, if there are several; see ``looks``.
        cells: how many.
        seconds: of all cells together, as if one worker had done them.
        verdict: of the claim.
        findings: all expectations, judged.
        figures: in the order of the study.
        warnings: each with the key of its cell.
        provenance: of every session in which a cell was done.
    """

    format: int
    name: str
    version: int
    scale: str
    settings: Record
    modified: Record
    title: str
    claim: str
    source: str
    level: float
    deviations: list[str]
    seeds: int
    usual_seeds: int
    cells: int
    seconds: float
    verdict: Verdict
    findings: list[Finding]
    figures: list[FigureEntry]
    warnings: list[str]
    provenance: list[dict[str, str]]
    looks: IfGiven[tuple[int, ...]] = ()


def read_summary(folder: Path) -> Summary | None:
    """What the last complete run in ``folder`` found; None if there was none."""
    path = folder / SUMMARY
    try:
        return from_plain(Summary, parse_json(path.read_bytes()), str(path))
    except FileNotFoundError:
        return None
    except (ValueError, UsageError) as error:
        said = str(error) if isinstance(error, UsageError) else f"{path} is damaged ({error})"
        raise UsageError(f"{said}; start the study again to write it anew") from None
    except OSError as error:
        raise FailureError(f"{path} cannot be read: {error.strerror or error}") from None


def told(summary: Summary, folder: Path) -> str:
    """A summary as a few lines of text."""
    modified = "".join(f" {name}={value}" for name, value in summary.modified.items())
    scale = summary.scale + (f", modified:{modified}" if modified else "")
    lines = [f"{summary.name} ({scale}): {summary.verdict}", f"  claim: {summary.claim}"]
    reasons = {finding.reason for finding in summary.findings}
    shared = reasons.pop() if len(reasons) == 1 and len(summary.findings) > 1 else ""  # said once, not on every line
    lines += [f"  {shared}"] if shared else []
    for finding in summary.findings:
        verdict = f"{finding.verdict}{' (beyond the claim)' if finding.is_beyond else ''}"
        why = "; ".join(part for part in (finding.reason, finding.needs) if part and part != shared)
        reason = f" ({why})" if why else ""
        lines.append(f"  {verdict}: {finding.statement}: {finding.measured}, expected {finding.expected}{reason}")
    if summary.looks:
        looks = ", ".join(map(str, summary.looks))
        lines.append(f"  judged at {summary.seeds} seeds; looks taken or planned: {looks}")
    return "\n".join([*lines, f"  {summary.cells} cells in {folder}"])


def write_summary(folder: Path, summary: Summary) -> None:
    """Write ``summary.json``, whole or not at all."""
    write_text(folder / SUMMARY, json.dumps(to_plain(summary), indent=1) + "\n")


@contextlib.contextmanager
def only_here(folder: Path) -> Iterator[None]:
    """Hold ``folder`` for this run: two writers would cut off each other's records. A kill lets go of it too."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = FileLock(folder / LOCK).acquire(blocking=False)
    except Timeout:
        raise UsageError(f"folder {folder} is in use by another run; wait for it or give another --out") from None
    except OSError as error:
        raise UsageError(f"folder {folder} cannot be written: {error.strerror or error}; give another --out") from None
    with lock:
        yield


def put_aside(folder: Path) -> None:
    """Move what is in ``folder`` to a new folder beside it, so that a new run finds nothing and nothing is lost.

    The lock stays, because the caller holds it and Windows does not move an open file. Records move last: after a kill
    in the middle, ``--fresh`` can be given again.
    """
    now = datetime.datetime.now(datetime.UTC).strftime("%Y%m%dT%H%M%S%f")
    aside = folder.with_name(f"{folder.name}{ASIDE}{now}")
    aside.mkdir()
    for path in sorted(folder.iterdir(), key=lambda path: path.name == RECORDS):
        if path.name != LOCK:
            path.rename(aside / path.name)


def checkpoint_folder(folder: Path, key: str) -> Path:
    """The folder of one cell's checkpoints: its key, with a hash where a file system would not take the key."""
    name = _SAFE.sub("_", key)[:80]
    if name != key or name.startswith("."):
        name = f"{name.lstrip('.')}-{hashlib.sha256(key.encode()).hexdigest()[:8]}"
    return folder / CHECKPOINTS / name


def remove_checkpoints(folder: Path, key: str) -> None:
    """Remove a cell's checkpoints, and the folder of all of them if it is then empty."""
    shutil.rmtree(checkpoint_folder(folder, key), ignore_errors=True)
    with contextlib.suppress(OSError):
        (folder / CHECKPOINTS).rmdir()
