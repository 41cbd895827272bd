"""Cells done one after another, or by several processes; what comes out is the same.

A cell is done alone: one thread, float32 by default, global generators seeded by its key. So its record depends on
neither the worker, nor the order, nor what the caller did to torch before.

Cells done by several processes at once, with nothing left behind when one of them, or this one, is killed.

``concurrent.futures`` is not used: it does not tell which cell a killed process was at, fails all others with it, and
cannot be stopped at once before Python 3.14.
"""

import contextlib
import hashlib
import json
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
from typing import Any, cast

import numpy as np
import torch

from jostle.base.errors import UsageError
from jostle.base.progress import State
from jostle.base.store import Record
from jostle.studies.settings import Settings
from jostle.studies.study import Cell, Context, Study

Show = Callable[[str, State], None]


@dataclass(frozen=True)
class Job:
    """One cell to be done, with all that a process needs for it.

    Arguments:
        study: the class; another process imports its module.
        cell, settings: what to do.
        folder: for checkpoints.
        data, device, networks: as in ``Context``.
    """

    study: type[Study[Any]]
    cell: Cell
    settings: Settings
    folder: Path
    data: Path | None
    device: str
    networks: Path


@dataclass(frozen=True)
class Outcome:
    """What became of a cell.

    Arguments:
        key: of the cell.
        record: None if it failed.
        seconds: how long it took.
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


def do(job: Job, report: Callable[[State], None]) -> Outcome:
    """Do one cell; what it raises becomes part of the outcome."""
    started = time.monotonic()
    record: Record | None = None
    error = trace = ""
    with alone(job.cell.key), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            job.folder.mkdir(parents=True, exist_ok=True)
            context = Context(job.folder, report, job.data, job.device, job.networks)
            record = _plain(job.study().measure(job.cell, job.settings, context))
        except Exception as problem:
            error, trace = describe(problem), traceback.format_exc()
    said = tuple(dict.fromkeys(f"{warning.category.__name__}: {warning.message}" for warning in caught))
    return Outcome(job.cell.key, record, time.monotonic() - started, said, error, trace)


def in_turn(jobs: Iterable[Job], show: Show) -> Generator[Outcome, None, None]:
    """Do all cells in this process."""
    for job in jobs:
        yield do(job, lambda state, key=job.cell.key: show(key, state))  # type: ignore[misc]


def describe(problem: BaseException) -> str:
    """Type and message of an exception in one line.

    >>> describe(ValueError("two\\nlines"))
    'ValueError: two lines'
    """
    return f"{type(problem).__name__}: {' '.join(str(problem).split())}".rstrip(": ")


@contextlib.contextmanager
def alone(key: str) -> Iterator[None]:
    """Inside, global states of torch, numpy and Python are a function of ``key``; afterwards they are as before."""
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


def _plain(record: Any) -> Record:
    """The record as a file gives it back; what JSON cannot hold is an error of the cell."""
    if not isinstance(record, dict):
        raise TypeError(f"measure returned {type(record).__name__}; expected a dict")
    return dict(json.loads(json.dumps(record)))


_SECONDS_BETWEEN_STATES = 0.5


@dataclass
class _Worker:
    process: SpawnProcess
    connection: Connection
    job: Job
    started: float = 0.0

    def give(self, job: Job) -> None:
        self.job, self.started = job, time.monotonic()
        try:
            self.connection.send(job)
        except ConnectionError:
            pass  # it has just died, which the next look at its connection tells
        except (AttributeError, TypeError, pickle.PicklingError) as error:
            raise UsageError(
                f"workers: study {job.study.name} cannot be sent to other processes ({describe(error)}); "
                "define it in a module, or use one worker"
            ) from None

    def died(self) -> Outcome:
        """The outcome of a cell whose process is gone."""
        self.process.join()
        code = self.process.exitcode or 0
        how = f"killed by signal {-code}" if code < 0 else f"exit code {code}"
        error = f"its process died ({how}); if memory ran out, use fewer workers"
        return Outcome(self.job.cell.key, None, time.monotonic() - self.started, error=error, trace=error)


def at_once(jobs: Iterable[Job], count: int, show: Show) -> Generator[Outcome, None, None]:
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
                outcome = _heard(crew[ready], show)
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


def _hire(job: Job) -> _Worker:
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


def _heard(worker: _Worker, show: Show) -> Outcome | None:
    """What a worker says: the outcome of its cell, or None if it only tells how far it is."""
    try:
        said = worker.connection.recv()
    except (EOFError, ConnectionError):
        return worker.died()
    if isinstance(said, Outcome):
        return said
    if isinstance(said, State):
        show(worker.job.cell.key, said)
        return None
    return Outcome(worker.job.cell.key, None, time.monotonic() - worker.started, error=str(said), trace=str(said))


def _serve(connection: Connection) -> None:
    """The life of a worker: cells from the connection until it is closed."""
    _end_with_parent()
    while True:
        try:
            job = connection.recv()
        except EOFError:
            return
        except Exception as error:  # the study's module cannot be imported here
            connection.send(f"study cannot be imported in another process: {describe(error)}")
            continue
        connection.send(do(job, _seldom(connection.send)))


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
    """End this process when its parent is gone, or it would go on writing checkpoints beside a resumed run."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    sentinel = parent.sentinel

    def watch() -> None:
        multiprocessing.connection.wait([sentinel])
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


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
