"""Runs cells, the units of work of a study, one by one (``in_turn``) or in several processes (``at_once``).

The records are the same. A cell runs alone: one thread, float32 by default, global generators seeded by its key. So its
record depends on neither the process, nor the order, nor what the caller did to torch before.

``at_once`` has processes of its own. ``concurrent.futures`` does not tell which cell a killed process was at, fails all
other cells with it, and cannot be stopped at once before Python 3.14. Here a process that dies costs one cell, and no
process stays behind when this one is killed.
"""

import contextlib
import hashlib
import multiprocessing
import multiprocessing.connection
import os
import pickle
import random
import signal
import threading
import time
import traceback
import warnings
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from pathlib import Path
from typing import cast

import numpy as np

from jostle.base.errors import KeptFileError, UsageError
from jostle.base.files import set_aside
from jostle.base.progress import State
from jostle.base.store import Record
from jostle.studies.schema import Struct, to_plain
from jostle.studies.settings import Settings
from jostle.studies.study import AnyStudy, Cell, Context

Show = Callable[[str, State], None]  # told the key of a cell and how far the cell is

_SECONDS_BETWEEN_STATES = 0.5


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
    """Inside, global states of torch, numpy and Python are a function of ``key``; afterwards they are as before."""
    import torch  # only here: a study that is finished does not wait for it

    seed = int.from_bytes(hashlib.sha256(f"jostle cell {key}".encode()).digest()[:4], "big")
    threads, dtype = torch.get_num_threads(), torch.get_default_dtype()
    python, numpy = random.getstate(), np.random.get_state()  # noqa: NPY002
    with torch.random.fork_rng(devices=[]):
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


def describe(problem: BaseException) -> str:
    """Type and message of an exception in one line.

    >>> describe(ValueError("two\\nlines"))
    'ValueError: two lines'
    """
    return f"{type(problem).__name__}: {' '.join(str(problem).split())}".rstrip(": ")


def in_turn(jobs: Iterable[Job], show: Show) -> Generator[CellOutcome, None, None]:
    """Do all cells in this process."""
    for job in jobs:
        yield do_cell(job, lambda state, key=job.cell.key: show(key, state))  # type: ignore[misc]


def at_once(jobs: Iterable[Job], count: int, show: Show) -> Generator[CellOutcome, None, None]:
    """Do all cells in ``count`` processes; outcomes come in the order in which cells end.

    Closing the iterator ends the processes. A process that dies costs the cell it was at and is replaced.
    """
    waiting, crew = deque(jobs), dict[Connection, _Worker]()
    try:
        while waiting or crew:
            while waiting and len(crew) < count:
                worker = _hire(waiting.popleft())
                crew[worker.connection] = worker
            for found in multiprocessing.connection.wait(list(crew)):
                ready = cast(Connection, found)  # on Windows another class of the same methods
                outcome = _listen(crew[ready], show)
                if outcome is None:
                    continue
                worker = crew[ready]
                if waiting and worker.process.is_alive():
                    worker.give(waiting.popleft())
                else:
                    del crew[ready]
                    ready.close()  # which ends the process, if it has not ended
                    worker.process.join()
                yield outcome
    finally:
        for worker in crew.values():
            worker.process.terminate()
        for worker in crew.values():
            worker.process.join()


@dataclass
class _Worker:
    """A process, the connection to it, and the cell it is at, as this process sees them."""

    process: SpawnProcess
    connection: Connection
    job: Job
    started: float = 0.0

    def give(self, job: Job) -> None:
        """Send the next cell."""
        self.job, self.started = job, time.monotonic()
        try:
            self.connection.send(job)
        except ConnectionError:
            pass  # the process has just died, which the next look at its connection tells
        except (AttributeError, TypeError, pickle.PicklingError) as error:
            raise UsageError(
                f"workers: study {job.study.name} cannot be sent to other processes ({describe(error)}); "
                "define it in a module, or use one worker"
            ) from None

    def fail(self, error: str) -> CellOutcome:
        """The outcome of a cell that came to nothing for a reason outside of it."""
        return CellOutcome(self.job.cell.key, None, time.monotonic() - self.started, error=error, trace=error)

    def bury(self) -> CellOutcome:
        """The outcome of a cell whose process is gone."""
        self.process.join()
        code = self.process.exitcode or 0
        how = f"killed by signal {-code}" if code < 0 else f"exit code {code}"
        return self.fail(f"its process died ({how}); if memory ran out, use fewer workers")


def _hire(job: Job) -> _Worker:
    """A new process at work on a first cell."""
    ours, theirs = multiprocessing.get_context("spawn").Pipe()
    process = multiprocessing.get_context("spawn").Process(target=_serve, args=(theirs,), daemon=True)
    with _deaf_to_interrupts():  # inherited: Ctrl-C is for this process, which then ends the others
        process.start()
    theirs.close()
    worker = _Worker(process, ours, job)
    try:
        worker.give(job)
    except UsageError:
        process.terminate()
        process.join()
        raise
    return worker


def _listen(worker: _Worker, show: Show) -> CellOutcome | None:
    """What a worker sends: the outcome of its cell, or None if it only tells how far it is."""
    try:
        message = worker.connection.recv()
    except (EOFError, ConnectionError):
        return worker.bury()
    if isinstance(message, CellOutcome):
        return message
    if isinstance(message, State):
        show(worker.job.cell.key, message)
        return None
    return worker.fail(str(message))


@contextlib.contextmanager
def _deaf_to_interrupts() -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread may choose, and only it hears Ctrl-C
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


# The rest runs in a worker process.


def _serve(connection: Connection) -> None:
    """Do cells from the connection until it is closed."""
    _end_with_parent()
    while True:
        try:
            job = connection.recv()
        except EOFError:
            return
        except Exception as error:  # the study's module cannot be imported here
            connection.send(f"study cannot be imported in another process: {describe(error)}")
            continue
        connection.send(do_cell(job, _seldom(connection.send)))


def _seldom(send: Callable[[State], None]) -> Callable[[State], None]:
    """``send``, at most twice a second."""
    last = time.monotonic()

    def report(state: State) -> None:
        nonlocal last
        if time.monotonic() - last >= _SECONDS_BETWEEN_STATES:
            last = time.monotonic()
            send(state)

    return report


def _end_with_parent() -> None:
    """End this process when its parent is gone, or it would still write checkpoints beside a resumed run."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    sentinel = parent.sentinel

    def watch() -> None:
        multiprocessing.connection.wait([sentinel])
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
