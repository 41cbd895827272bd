"""Run a study: do the cells that are not yet recorded, then draw the figures, judge, and write the summary."""

import contextlib
import importlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from jostle.base import checks
from jostle.base.errors import FailureError, UsageError
from jostle.base.estimate import provenance
from jostle.base.files import named_path
from jostle.base.progress import Progress, Reporter, State, reporter
from jostle.base.registry import unknown_name
from jostle.base.table import Row, Tabular
from jostle.base.trackers import make_senders
from jostle.engines import Engine, Processes, Serial, Torchrun, choose
from jostle.studies import folder as folders
from jostle.studies.catalogue import get
from jostle.studies.evidence import LEAST_SEEDS
from jostle.studies.finished import mark_finished
from jostle.studies.folder import CellLine, FigureEntry, Identity, RecordFile, SessionLine, StudyLine, Summary, told
from jostle.studies.looks import AT_MOST, MOST_SEEDS, planned, share_of_error
from jostle.studies.records import Records
from jostle.studies.schema import from_plain
from jostle.studies.settings import Settings, modified_settings, override_settings, plain_settings
from jostle.studies.study import AnyStudy, Cell, make_cells
from jostle.studies.verdict import Finding, Verdict, decide, overall
from jostle.studies.workers import CellOutcome, Job, do_all

_LISTED = 3  # cells named for each error


class CellsFailedError(FailureError):
    """Some cells of a study raised; all others are recorded.

    The text has a line for each error, the notes of the exception the tracebacks.
    """

    def __init__(self, study: str, failures: list[CellOutcome], total: int) -> None:
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
class Result(Tabular):
    """A study that has been run.

    Arguments:
        folder: where its files are.
        records: of all cells.
        summary: what ``summary.json`` holds.
    """

    folder: Path
    records: Records[Any, Any, Any]
    summary: Summary

    @property
    def findings(self) -> list[Finding]:
        """The study's expectations, judged."""
        return self.summary.findings

    @property
    def verdict(self) -> Verdict:
        """Of all findings together."""
        return self.summary.verdict

    def __str__(self) -> str:
        return told(self.summary, self.folder)

    def rows(self, of: str = "result") -> list[Row]:  # noqa: ARG002 - there is one table
        """A row for each expectation: what was measured, and its verdict."""
        return finding_rows(self.summary)

    def numbers(self) -> dict[str, float]:
        """What was found, as trackers take it."""
        return finding_numbers(self.summary)


def finding_rows(summary: Summary) -> list[Row]:
    """A row for each finding of a study."""
    return [
        {
            "study": summary.name,
            "finding": number,
            "value": each.value,
            "low": each.low,
            "high": each.high,
            "level": each.level,
            "verdict": each.verdict.value,
            "statement": each.statement,
            "expected": each.expected,
            "is_beyond": each.is_beyond,
        }
        for number, each in enumerate(summary.findings)
    ]


def finding_numbers(summary: Summary) -> dict[str, float]:
    """The numbers of a study by name, as trackers take them; ``decided`` is 1 if the claim agrees or disagrees."""
    found = {"agrees": float(summary.verdict == Verdict.AGREES), "decided": float(summary.verdict != Verdict.UNDECIDED)}
    for row in finding_rows(summary):
        ends = {key: row[key] for key in ("value", "low", "high") if row[key] is not None}
        found |= {f"finding {row['finding']}/{key}": float(number) for key, number in ends.items()}
    return {f"{summary.name}/{summary.scale}/{key}": number for key, number in found.items()}


def run(
    name: str,
    scale: str = "smoke",
    out: str | Path = "runs",
    *,
    seeds: int | None = None,
    workers: int | None = None,
    engine: Engine | str | None = None,
    progress: Progress = True,
    overrides: Mapping[str, Any] | None = None,
    fresh: bool = False,
    data: str | Path | None = None,
    device: str = "cpu",
    until_decided: bool = False,
    at_most: int = AT_MOST,
    tracker: Any = (),
) -> Result:
    """Run a study, or continue one that was interrupted. Recorded cells are not done again.

    Arguments:
        name: of the study, e.g. ``2403.06925/figure-4``.
        scale: ``smoke``, ``small`` or ``paper``.
        out: folder of all runs; this one goes to ``<out>/<name>/<scale>``.
        seeds: the number of seeds; by default that of the scale. More can be added later.
        workers: processes that do cells at once; by default 1. The numbers do not depend on it.
        engine: where cells are done: ``serial``, ``processes``, ``ray``, or an engine of ``jostle.engines``. Workers on
            other machines must see the folders ``out`` and ``data`` under the same names.
        progress: whether to show progress, or a function that is told.
        overrides: settings to replace, by name. The result is labelled as modified and has a folder of its own.
        fresh: put what is already in the folder aside and start anew.
        data: folder of datasets.
        device: where networks run.
        until_decided: add seeds until the claim agrees or disagrees. The study is judged at ``seeds`` seeds, at twice
            as many, and so on; each of these looks has a share of the error.
        at_most: the number of seeds at which to stop though it is undecided.
        tracker: one or several experiment trackers that get the numbers: TensorBoard's ``SummaryWriter``,
            ``wandb.run``, ``mlflow``, ...
    """
    make_senders(tracker)  # raises before any work
    out = named_path("out", out)
    where = None if data is None else named_path("data", data)
    overrides = {} if overrides is None else overrides
    if not isinstance(overrides, Mapping):
        raise checks.wrong("overrides", overrides, "a mapping from names of settings to values")
    plan = _make_plan(name, scale, out, seeds, overrides)
    doing = _engine(engine, workers)
    if until_decided and scale == "smoke":
        raise UsageError("scale=smoke decides nothing, so it cannot run until it is decided; give scale=small")
    looks = planned(max(plan.settings.seeds, LEAST_SEEDS), at_most) if until_decided else ()
    if device != "cpu":  # which is always there, and torch need not be asked
        importlib.import_module("jostle.base.model").on_device(device)  # said once, and before any cell
    if where is not None and not where.expanduser().is_dir():
        raise UsageError(f"data={where} is not a folder; give the folder that holds the datasets")
    with folders.only_here(plan.folder):
        if fresh and (plan.folder / folders.RECORDS).exists():
            folders.put_aside(plan.folder)
        whose = StudyLine(**vars(plan.identity), title=plan.study.title, claim=plan.study.claim)
        file = folders.open_records(plan.folder, whose)
        count = getattr(doing, "workers", None) or 1

        def finish(plan: _Plan) -> Result:
            jobs = _unfinished(plan, file, where, device)
            if jobs:
                session = SessionLine(
                    cells=len(plan.cells), workers=count, device=device, provenance=provenance(), looks=looks
                )
                _work(plan, jobs, doing, file, file.begin_session(session), progress)
            return _sum_up(plan, file)

        result = _finish_looks(plan, file, looks, finish) if until_decided else finish(plan)
        if not plan.identity.modified:
            mark_finished(name, plan.folder, seeds, at_most if until_decided else None)
        result.send_to(tracker)
        return result


def _engine(engine: Engine | str | None, workers: int | None) -> Engine:
    """The engine for cells; by default this process."""
    chosen = choose(engine, 1 if engine is None and workers is None else workers)
    if isinstance(chosen, Torchrun):
        raise UsageError("engine=torchrun is for measurements; cells of a study need no common step: use engine=ray")
    return chosen


def _finish_looks(plan: "_Plan", file: RecordFile, looks: Sequence[int], finish: "Callable[[_Plan], Result]") -> Result:
    """Finish look after look until the claim is decided. A look whose seeds are all recorded is not taken again."""
    plans = [plan.with_seeds(seeds) for seeds in looks]
    done = [each for each in plans if all(file.has_cell(cell.key) for cell in each.cells)]
    for each in plans[max(len(done) - 1, 0) :]:
        result = finish(each)
        if result.verdict != Verdict.UNDECIDED:
            break
    return result


@dataclass(frozen=True)
class _Plan:
    """What is to be done and where."""

    study: AnyStudy
    identity: Identity
    settings: Settings
    cells: list[Cell]
    folder: Path
    networks: Path

    def with_seeds(self, seeds: int) -> "_Plan":
        """The same with another number of seeds."""
        settings = replace(self.settings, seeds=seeds)
        return replace(self, settings=settings, cells=make_cells(self.study, settings, range(seeds)))


def _make_plan(name: str, scale: str, out: Path, seeds: int | None, overrides: Mapping[str, Any]) -> _Plan:
    study = get(name)
    if not isinstance(scale, str) or scale not in study.scales:
        raise unknown_name("scale", scale, study.scales)
    standard = study.scales[scale]
    settings = override_settings(standard, overrides)
    count = checks.whole("seeds", standard.seeds if seeds is None else seeds, least=1, most=MOST_SEEDS)
    settings = replace(settings, seeds=count)
    identity = Identity(
        name=study.name,
        version=study.version,
        scale=scale,
        settings=plain_settings(settings),
        modified=modified_settings(standard, settings),
    )
    cells = make_cells(study, settings, range(settings.seeds))
    return _Plan(study, identity, settings, cells, identity.folder(out), out / folders.NETWORKS)


def _unfinished(plan: _Plan, file: RecordFile, data: Path | None, device: str) -> list[Job]:
    """The cells that are not yet recorded."""
    jobs = []
    for cell in plan.cells:
        if not file.has_cell(cell.key):
            place = folders.checkpoint_folder(plan.folder, cell.key)
            jobs.append(Job(type(plan.study), cell, plan.settings, place, data, device, plan.networks))
        elif not plan.study.keeps_checkpoints:  # a kill came between the record and their removal
            folders.remove_checkpoints(plan.folder, cell.key)
    return jobs


def _work(plan: _Plan, jobs: list[Job], engine: Engine, file: RecordFile, session: int, progress: Progress) -> None:
    """Do the cells and record each as soon as it is done; raise at the end if some failed."""
    total = len(plan.cells)
    values = {job.cell.key: dict(job.cell.values) for job in jobs}
    failures = []
    with _show_progress(progress, plan.study.name, total, total - len(jobs)) as shown:
        if isinstance(engine, Processes) and len(jobs) == 1:
            engine = Serial()
        with contextlib.closing(do_all(jobs, engine, shown.tell)) as outcomes:
            for outcome in outcomes:
                if outcome.record is None:
                    failures.append(outcome)
                else:
                    line = CellLine(
                        values=values[outcome.key],
                        record=outcome.record,
                        session=session,
                        seconds=round(outcome.seconds, 3),
                        warnings=list(outcome.warnings),
                    )
                    file.add(outcome.key, line)
                    if not plan.study.keeps_checkpoints:
                        folders.remove_checkpoints(plan.folder, outcome.key)
                shown.end(outcome)
    if failures:
        raise CellsFailedError(plan.study.name, failures, total)


class _StudyProgress:
    """Progress over all cells from the progress of each."""

    def __init__(self, report: Reporter, total: int, done: int) -> None:
        self._report, self._total, self._done = report, total, done
        self._shares: dict[str, float] = {}

    def tell(self, key: str, state: State) -> None:
        """A cell has come so far."""
        self._shares[key] = min(max(state.share, 0.0), 1.0)
        self._show(f"{key}  {state.summary}")

    def end(self, outcome: CellOutcome) -> None:
        """A cell is done, or has failed."""
        self._shares.pop(outcome.key, None)
        self._done += 1
        self._show(f"{outcome.key}  {outcome.error or f'{outcome.seconds:.1f} s'}")

    def _show(self, text: str) -> None:
        share = (self._done + sum(self._shares.values())) / self._total
        self._report(State(share, self._done, text, f"of {self._total} cells"))


@contextlib.contextmanager
def _show_progress(progress: Progress, label: str, total: int, done: int) -> Iterator[_StudyProgress]:
    report = reporter(progress, label)
    try:
        yield _StudyProgress(report, total, done)
    finally:
        report.close()


def _sum_up(plan: _Plan, file: RecordFile) -> Result:
    """Figures and ``summary.json``, from the records alone."""
    from jostle.figures import save  # only here: processes that work on cells need no matplotlib

    study, scale = plan.study, plan.identity.scale
    finished = file.cells()
    lines = {cell.key: finished[cell.key] for cell in plan.cells}
    records = Records(plan.cells, _read_records(plan, lines), plan.settings, scale)
    looks = _looks(plan, file)
    share = share_of_error(looks, plan.settings.seeds)
    findings = decide(study.expectations(records), scale=scale, level=study.level, share=share)
    drawings = study.figures(records)
    for drawing in drawings:
        save(drawing.figure, plan.folder / folders.FIGURES / f"{drawing.stem}.svg")
    sessions = file.sessions()
    summary = Summary(
        format=folders.SUMMARY_FORMAT,
        **vars(plan.identity),
        title=study.title,
        claim=study.claim,
        source=study.source,
        level=study.level,
        deviations=list(study.deviations),
        seeds=plan.settings.seeds,
        usual_seeds=study.scales[scale].seeds,
        cells=len(plan.cells),
        seconds=round(sum(line.seconds for line in lines.values()), 3),
        verdict=overall(findings),
        findings=findings,
        figures=[FigureEntry(stem=one.stem, caption=one.caption, alt=one.alt) for one in drawings],
        warnings=[f"{text} ({key})" for key, line in lines.items() for text in line.warnings],
        provenance=[sessions[number].provenance for number in sorted({line.session for line in lines.values()})],
        looks=looks if len(looks) > 1 else (),
    )
    folders.write_summary(plan.folder, summary)
    return Result(plan.folder, records, summary)


def _looks(plan: _Plan, file: RecordFile) -> tuple[int, ...]:
    """The numbers of seeds at which the study was judged or is planned to be, this one included.

    The records tell: a session that began with the cells of fewer seeds, all of which were done before the next one
    began, ended in a verdict.
    """
    seeds, finished, sessions = plan.settings.seeds, file.cells(), file.sessions()
    found = {*plan.study.earlier_looks, *(look for session in sessions for look in session.looks), seeds}
    wholes = {session.cells for session in sessions} - {len(plan.cells)}
    for fewer in range(LEAST_SEEDS, seeds if wholes else 0):
        keys = [cell.key for cell in plan.with_seeds(fewer).cells]
        if len(keys) in wholes and all(key in finished for key in keys):
            last = max(finished[key].session for key in keys)
            if any(session.cells == len(keys) for session in sessions[last:]):
                found.add(fewer)
    return tuple(sorted(look for look in found if look >= LEAST_SEEDS))


def _read_records(plan: _Plan, lines: Mapping[str, CellLine]) -> dict[str, Any]:
    """The records as the types of the study."""
    kind, path = plan.study.record_type, plan.folder / folders.RECORDS
    return {key: from_plain(kind, line.record, f"record {key!r} of {path}") for key, line in lines.items()}
