"""Run a study: do what is not yet done, record it cell by cell, then draw, decide and sum up."""

import contextlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from jostle.base.errors import FailureError, UsageError
from jostle.base.files import write_text
from jostle.base.progress import Progress, Reporter, State, reporter
from jostle.base.provenance import provenance
from jostle.base.registry import unknown_name
from jostle.base.store import Store
from jostle.studies import folder as folders
from jostle.studies.catalogue import get
from jostle.studies.records import Records
from jostle.studies.settings import Settings, differences, plain, replaced
from jostle.studies.study import Cell, Study, checked_cells
from jostle.studies.verdict import Finding, Verdict, decide, overall
from jostle.studies.workers import Job, Outcome, at_once, in_turn

SUMMARY_FORMAT = 1
_LISTED = 3  # cells named for each error


class CellsFailedError(FailureError):
    """Some cells of a study raised; all others are recorded.

    The text has a line for each error, the notes of the exception the tracebacks.
    """

    def __init__(self, study: str, failures: list[Outcome], total: int) -> None:
        lines = [f"{len(failures)} of {total} cells of {study} failed; the others are kept, start again to retry"]
        for error in dict.fromkeys(failure.error for failure in failures):
            keys = [failure.key for failure in failures if failure.error == error]
            more = f" and {len(keys) - _LISTED} more" if len(keys) > _LISTED else ""
            lines.append(f"  {', '.join(keys[:_LISTED])}{more}: {error}")
        super().__init__("\n".join(lines))
        for trace in dict.fromkeys(f"{failure.key}:\n{failure.trace}" for failure in failures):
            self.add_note(trace)
        self.failures = failures


@dataclass(frozen=True)
class Result:
    """A study that has been run.

    Arguments:
        folder: where its files are.
        records: of all cells.
        findings: its expectations, judged.
        summary: what ``summary.json`` holds.
    """

    folder: Path
    records: Records[Any]
    findings: list[Finding]
    summary: dict[str, Any]

    @property
    def verdict(self) -> Verdict:
        """Of all findings together."""
        return overall(self.findings)

    def __str__(self) -> str:
        modified = "".join(f" {name}={value}" for name, value in self.summary["modified"].items())
        scale = self.summary["scale"] + (f", modified:{modified}" if modified else "")
        lines = [f"{self.summary['name']} ({scale}): {self.verdict}", f"  claim: {self.summary['claim']}"]
        for finding in self.findings:
            verdict = f"{finding.verdict}{' (beyond the claim)' if finding.is_beyond else ''}"
            reason = f" ({finding.reason})" if finding.reason else ""
            lines.append(f"  {verdict}: {finding.statement}: {finding.measured}, expected {finding.expected}{reason}")
        return "\n".join([*lines, f"  {len(self.records)} cells in {self.folder}"])


def run(
    name: str,
    scale: str = "smoke",
    out: str | Path = "runs",
    *,
    seeds: int | None = None,
    workers: int = 1,
    progress: Progress = True,
    overrides: Mapping[str, Any] | None = None,
    fresh: bool = False,
    data: str | Path | None = None,
    device: str = "cpu",
) -> Result:
    """Run a study, or go on with one that was interrupted; what is recorded is not done again.

    Arguments:
        name: of the study, e.g. ``2403.06925/figure-4``.
        scale: ``smoke``, ``small`` or ``paper``.
        out: folder of all runs; this one goes to ``<out>/<name>/<scale>``.
        seeds: how many; by default as many as the settings of the scale say. More can be added later.
        workers: processes that do cells at once. The numbers do not depend on it.
        progress: whether to show how far it is, or a function that is told.
        overrides: settings to replace, by name. The result is labelled as modified and has a folder of its own.
        fresh: put what is already in the folder aside and start anew.
        data: folder of datasets.
        device: where networks run.
    """
    plan = _planned(name, scale, Path(out), seeds, overrides or {})
    _count("workers", workers)
    if data is not None and not Path(data).expanduser().is_dir():
        raise UsageError(f"data={data} is not a folder; give the folder that holds the datasets")
    with folders.only_here(plan.folder):
        if fresh and (plan.folder / folders.RECORDS).exists():
            folders.put_aside(plan.folder)
        about = {"title": plan.study.title, "claim": plan.study.claim}
        store = folders.open_store(plan.folder, plan.identity, about)
        jobs = _left(plan, store, None if data is None else Path(data), device)
        if jobs:
            session = {"cells": len(plan.cells), "workers": workers, "device": device, "provenance": provenance()}
            store.append(f"session/{_sessions(store)}", session)
            _work(plan, jobs, workers, store, progress)
        return _summed_up(plan, store)


@dataclass(frozen=True)
class _Plan:
    """What is to be done and where."""

    study: Study[Any]
    identity: folders.Identity
    settings: Settings
    cells: list[Cell]
    folder: Path
    networks: Path


def _planned(name: str, scale: str, out: Path, seeds: int | None, overrides: Mapping[str, Any]) -> _Plan:
    study = get(name)
    if scale not in study.scales:
        raise unknown_name("scale", str(scale), study.scales)
    standard = study.scales[scale]
    settings = replaced(standard, overrides)
    settings = replace(settings, seeds=_count("seeds", standard.seeds if seeds is None else seeds))
    identity = folders.Identity(study.name, study.version, scale, plain(settings), differences(standard, settings))
    cells = checked_cells(study, settings, range(settings.seeds))
    return _Plan(study, identity, settings, cells, identity.folder(out), out / folders.NETWORKS)


def _count(argument: str, value: int) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise UsageError(f"{argument}={value!r} must be a whole number of at least 1")
    return value


def _sessions(store: Store) -> int:
    """How often work was begun; each time may be with other versions, so each has a record."""
    return sum(key.startswith("session/") for key in store)


def _left(plan: _Plan, store: Store, data: Path | None, device: str) -> list[Job]:
    """What is not yet recorded."""
    jobs = []
    for cell in plan.cells:
        if f"cell/{cell.key}" not in store:
            place = folders.checkpoint_folder(plan.folder, cell.key)
            jobs.append(Job(type(plan.study), cell, plan.settings, place, data, device, plan.networks))
        elif not plan.study.keeps_checkpoints:  # a kill came between the record and this
            folders.remove_checkpoints(plan.folder, cell.key)
    return jobs


def _work(plan: _Plan, jobs: list[Job], workers: int, store: Store, progress: Progress) -> None:
    """Do the cells and record each as soon as it is done; raise at the end if some failed."""
    session, total = _sessions(store) - 1, len(plan.cells)
    values = {job.cell.key: dict(job.cell.values) for job in jobs}
    failures = []
    with _shown(progress, plan.study.name, total, total - len(jobs)) as shown:
        many = workers > 1 and len(jobs) > 1
        outcomes = at_once(jobs, workers, shown.tell) if many else in_turn(jobs, shown.tell)
        with contextlib.closing(outcomes):
            for outcome in outcomes:
                if outcome.record is None:
                    failures.append(outcome)
                else:
                    entry = {"values": values[outcome.key], "record": outcome.record, "session": session}
                    timing = {"seconds": round(outcome.seconds, 3), "warnings": list(outcome.warnings)}
                    store.append(f"cell/{outcome.key}", entry | timing)
                    if not plan.study.keeps_checkpoints:
                        folders.remove_checkpoints(plan.folder, outcome.key)
                shown.ended(outcome)
    if failures:
        raise CellsFailedError(plan.study.name, failures, total)


class _Shown:
    """Progress over all cells from the progress of each."""

    def __init__(self, report: Reporter, total: int, done: int) -> None:
        self._report, self._total, self._done = report, total, done
        self._shares: dict[str, float] = {}

    def tell(self, key: str, state: State) -> None:
        """A cell is so far."""
        self._shares[key] = min(max(state.share, 0.0), 1.0)
        self._show(f"{key}  {state.summary}")

    def ended(self, outcome: Outcome) -> None:
        """A cell is done, or has failed."""
        self._shares.pop(outcome.key, None)
        self._done += 1
        self._show(f"{outcome.key}  {outcome.error or f'{outcome.seconds:.1f} s'}")

    def _show(self, text: str) -> None:
        share = (self._done + sum(self._shares.values())) / self._total
        self._report(State(share, self._done, text, f"of {self._total} cells"))


@contextlib.contextmanager
def _shown(progress: Progress, label: str, total: int, done: int) -> Iterator[_Shown]:
    report = reporter(progress, label)
    try:
        yield _Shown(report, total, done)
    finally:
        report.close()


def _summed_up(plan: _Plan, store: Store) -> Result:
    """Figures and ``summary.json``, from the records alone."""
    from jostle.figures import save  # only here: processes that work on cells need no matplotlib

    study, scale = plan.study, plan.identity.scale
    entries = {cell.key: store[f"cell/{cell.key}"] for cell in plan.cells}
    records = Records(plan.cells, {key: entry["record"] for key, entry in entries.items()}, plan.settings, scale)
    findings = decide(study.expectations(records), scale=scale, level=study.level)
    drawings = study.figures(records)
    for drawing in drawings:
        save(drawing.figure, plan.folder / folders.FIGURES / f"{drawing.stem}.svg")
    sessions = sorted({entry["session"] for entry in entries.values()})
    summary = {
        "format": SUMMARY_FORMAT,
        **vars(plan.identity),
        **{key: getattr(study, key) for key in ("title", "claim", "source", "level")},
        "deviations": list(study.deviations),
        "seeds": plan.settings.seeds,
        "usual_seeds": study.scales[scale].seeds,
        "cells": len(plan.cells),
        "seconds": round(sum(entry["seconds"] for entry in entries.values()), 3),
        "verdict": overall(findings).value,
        "findings": [finding.to_dict() for finding in findings],
        "figures": [{key: getattr(drawing, key) for key in ("stem", "caption", "alt")} for drawing in drawings],
        "warnings": [f"{text} ({key})" for key, entry in entries.items() for text in entry["warnings"]],
        "provenance": [store[f"session/{number}"]["provenance"] for number in sessions],
    }
    write_text(plan.folder / folders.SUMMARY, json.dumps(summary, indent=1) + "\n")
    return Result(plan.folder, records, findings, summary)
