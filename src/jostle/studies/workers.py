"""Runs cells, the units of work of a study, on an engine: here, in several processes, or on a cluster.

The records are the same. A cell runs alone: one thread, float32 by default, global generators seeded by its key. So its
record depends on neither the process, nor the order, nor what the caller did to torch before.
"""

import contextlib
import hashlib
import random
import time
import traceback
import warnings
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from jostle.base.errors import KeptFileError
from jostle.base.files import set_aside
from jostle.base.progress import State
from jostle.base.store import Record
from jostle.engines import Done, Engine, Lost
from jostle.engines.automatic import one_process
from jostle.engines.engine import describe
from jostle.studies.schema import Struct, to_plain
from jostle.studies.settings import Settings
from jostle.studies.study import AnyStudy, Cell, Context

Show = Callable[[str, State], None]  # told the key of a cell and how far the cell is


@dataclass(frozen=True)
class Job:
    """One cell to be done, with all that a process needs for it.

    Arguments:
        study: the class; another process imports its module.
        cell, settings: what to do.
        folder: for checkpoints.
        data, device, networks: as in ``Context``.
    """

    study: type[AnyStudy]
    cell: Cell
    settings: Settings
    folder: Path
    data: Path | None
    device: str
    networks: Path


@dataclass(frozen=True)
class CellOutcome:
    """What became of a cell.

    Arguments:
        key: of the cell.
        record: as a file holds it; None if the cell failed.
        seconds: how long the cell took.
        warnings: what was warned about on the way.
        error: type and message of what was raised, in a line.
        trace: the same with its traceback.
    """

    key: str
    record: Record | None
    seconds: float
    warnings: tuple[str, ...] = ()
    error: str = ""
    trace: str = ""


def do_cell(job: Job, report: Callable[[State], None]) -> CellOutcome:
    """Do one cell; what it raises becomes part of the outcome."""
    started = time.monotonic()
    record: Record | None = None
    error = trace = ""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            record = _measure(job, report)
        except Exception as problem:
            error, trace = describe(problem), traceback.format_exc()
    texts = tuple(dict.fromkeys(f"{warning.category.__name__}: {warning.message}" for warning in caught))
    return CellOutcome(job.cell.key, record, time.monotonic() - started, texts, error, trace)


def _measure(job: Job, report: Callable[[State], None]) -> Record:
    """The record of a cell. A kept file that is damaged or foreign is set aside, and the cell starts again without it.

    Only files in the folders of this run are set aside, each once.
    """
    job.folder.mkdir(parents=True, exist_ok=True)
    context = Context(job.folder, report, job.data, job.device, job.networks)
    while True:
        try:
            with alone(job.cell.key):
                return _plain_record(job.study().measure(job.cell, job.settings, context))
        except KeptFileError as problem:
            is_ours = any(problem.path.is_relative_to(folder) for folder in (job.folder, job.networks))
            if not is_ours or not problem.path.is_file():
                raise
            from jostle.estimates.measure import JostleWarning

            kept = set_aside(problem.path)
            warnings.warn(f"{problem}; it was kept as {kept.name} and made again", JostleWarning, stacklevel=2)


def _plain_record(record: object) -> Record:
    """The record as a file gives it back; what JSON cannot hold is an error of the cell."""
    if not isinstance(record, Struct):
        raise TypeError(f"measure returned {type(record).__name__}; expected a Struct")
    return to_plain(record)


@contextlib.contextmanager
def alone(key: str) -> Iterator[None]:
    """Inside, global states of torch, numpy and Python are a function of ``key``; afterwards they are as before.

    A cell has one core: it starts no processes of its own, so that its minutes are those of a core.
    """
    import torch  # only here: a study that is finished does not wait for it

    seed = int.from_bytes(hashlib.sha256(f"jostle cell {key}".encode()).digest()[:4], "big")
    threads, dtype = torch.get_num_threads(), torch.get_default_dtype()
    python, numpy = random.getstate(), np.random.get_state()  # noqa: NPY002
    with torch.random.fork_rng(devices=[]), one_process():
        try:
            torch.set_num_threads(1)
            torch.set_default_dtype(torch.float32)
            torch.default_generator.manual_seed(seed)
            random.seed(seed)
            np.random.seed(seed)  # noqa: NPY002
            yield
        finally:
            torch.set_num_threads(threads)
            torch.set_default_dtype(dtype)
            random.setstate(python)
            np.random.set_state(numpy)  # noqa: NPY002


class CellWork:
    """The work of a study: its units are jobs."""

    def do(self, job: Job, report: Callable[[State], None]) -> CellOutcome:
        """Do one cell."""
        return do_cell(job, report)


def do_all(jobs: Sequence[Job], engine: Engine, show: Show) -> Generator[CellOutcome, None, None]:
    """Do all cells; outcomes come in the order in which cells end.

    Closing the iterator ends the workers. A worker that dies costs the time of the cell it was at, which another does
    again from its last checkpoint; a cell at which workers die each time is given up.
    """
    started = time.monotonic()
    with engine.crew(CellWork()) as crew:
        found = crew.outcomes(jobs, lambda job, state: show(job.cell.key, state))
        with contextlib.closing(found):
            for number, outcome in found:
                if isinstance(outcome, Done):
                    yield outcome.value
                    continue
                if isinstance(outcome, Lost):
                    often = f", {outcome.tries} times" if outcome.tries > 1 else ""
                    error = trace = f"its {outcome.reason}{often}; if memory ran out, use fewer workers"
                else:
                    error, trace = describe(outcome.error), outcome.trace
                yield CellOutcome(jobs[number].cell.key, None, time.monotonic() - started, error=error, trace=trace)
