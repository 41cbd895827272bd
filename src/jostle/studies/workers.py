"""Cells done by several processes at once, with nothing left behind when one of them, or this one, is killed.

``concurrent.futures`` is not used: it does not tell which cell a killed process was at, fails all others with it, and
cannot be stopped at once before Python 3.14.
"""

import contextlib
import multiprocessing
import multiprocessing.connection
import os
import pickle
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from typing import cast

from jostle.errors import UsageError
from jostle.progress import State
from jostle.studies.work import Job, Outcome, Show, describe, do

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
