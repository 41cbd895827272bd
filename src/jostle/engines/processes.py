"""``Processes``: workers on this machine, each a process of its own.

A worker is a fresh interpreter. It does not import the script that called: a script without ``if __name__ ==
"__main__"`` would start itself again and again. ``concurrent.futures`` would do that, does not tell which unit a killed
process was at, and fails all other units with it.
"""

import contextlib
import multiprocessing.connection
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, cast

from jostle.base import checks
from jostle.base.errors import UsageError
from jostle.engines import payload
from jostle.engines.engine import MOST_THREADS, Engine, Work
from jostle.engines.pool import TRIES, Death, Event, Hands, Pool, Worker

_PROGRAM = "import sys; sys.path[:] = {path!r}; from jostle.engines import worker; worker.main({arguments})"


def cores() -> int:
    """How many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@dataclass(frozen=True)
class Processes(Engine):
    """Several processes on this machine.

    Arguments:
        workers: how many; by default as many as ``cpus`` threads each fill the processors.
        cpus: threads of each.
        tries: how often a unit is tried if processes die at it.
    """

    workers: int | None = None
    cpus: int = 1
    tries: int = TRIES

    def __post_init__(self) -> None:
        checks.whole("cpus", self.cpus, least=1, most=MOST_THREADS)
        if self.workers is not None:
            checks.whole("workers", self.workers, least=1, most=MOST_THREADS)
        if os.name == "nt":
            raise UsageError("engine=processes is for Linux and macOS; use engine=serial or engine=ray")

    @contextlib.contextmanager
    def crew(self, work: Work) -> Iterator[Pool]:
        """Processes that have opened this work."""
        with tempfile.TemporaryDirectory(prefix="jostle-") as folder:
            path = Path(folder) / "work"
            payload.write(work, path, "workers: the model or its inputs")
            pool = Pool(_Hands(path, self.cpus), self.workers or max(1, cores() // self.cpus), self.tries)
            try:
                yield pool
            finally:
                pool.close()


@dataclass
class _Process(Worker):
    """A process, and the connection to it."""

    process: "subprocess.Popen[bytes]"
    connection: Connection

    def give(self, unit: Any) -> None:
        """Send a unit."""
        message = payload.dumps(unit, "workers: a unit of work")
        with contextlib.suppress(OSError):  # the process has just died, which the next look at its connection tells
            self.connection.send_bytes(message)

    def end(self) -> None:
        """Kill the process and close the connection; what a unit writes is whole or absent anyway."""
        self.process.kill()
        self.process.wait()
        self.connection.close()

    def peek(self) -> Event | None:
        """What the process has said, if anything."""
        if not self.connection.poll():
            return None
        try:
            return cast(Event, payload.loads(self.connection.recv_bytes()))
        except (EOFError, OSError):
            return self.death()

    def death(self) -> Death:
        """How the process ended."""
        code = self.process.wait()
        return Death(f"process died ({f'killed by signal {-code}' if code < 0 else f'exit code {code}'})")


@dataclass
class _Hands(Hands):
    """Starts processes that open the work of a file."""

    path: Path
    cpus: int

    def hire(self) -> _Process:
        """A new process."""
        ours, theirs = socket.socketpair()
        arguments = f"{theirs.fileno()}, {str(self.path)!r}, {self.cpus}"
        threads = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS"), str(self.cpus))
        with theirs, _deaf_to_interrupts():
            process = subprocess.Popen(
                [sys.executable, "-c", _PROGRAM.format(path=sys.path, arguments=arguments)],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                env=os.environ | threads,
            )
        return _Process(process, Connection(ours.detach()))

    def listen(self, workers: list[Worker]) -> Iterator[tuple[Worker, Event]]:
        """What the next of these processes say."""
        by_connection = {cast(_Process, worker).connection: cast(_Process, worker) for worker in workers}
        for ready in multiprocessing.connection.wait(list(by_connection)):
            worker = by_connection[cast(Connection, ready)]
            try:
                yield worker, payload.loads(worker.connection.recv_bytes())
            except (EOFError, OSError):
                yield worker, worker.death()


@contextlib.contextmanager
def _deaf_to_interrupts() -> Iterator[None]:
    """Inside, new processes are born deaf to Ctrl-C, which is for this process alone; one that comes is heard after."""
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread may choose, and only it hears Ctrl-C
        return
    if sys.platform == "win32":
        before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    else:
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # inherited; ignoring it would lose it here
    try:
        yield
    finally:
        if sys.platform == "win32":
            signal.signal(signal.SIGINT, before)
        else:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
