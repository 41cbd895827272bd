"""What runs in a process that ``processes`` started: it opens the work and does units until its employer is gone."""

import contextlib
import os
import queue
import signal
import sys
import threading
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path

from jostle.base.progress import State
from jostle.engines import payload
from jostle.engines.engine import Done, Failed, Report, Work, describe, done
from jostle.engines.pool import Ready, Unready

_SECONDS_BETWEEN_STATES = 0.5


def main(handle: int, path: str, cpus: int) -> None:
    """Do units from the connection until it is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the employer, who then ends this process
    with contextlib.suppress(OSError):  # what a model prints is no result: stdout may be read as JSON
        os.dup2(sys.__stderr__.fileno() if sys.__stderr__ else 2, 1)
    connection = Connection(handle)
    units: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=_receive, args=(connection, units), daemon=True).start()
    try:
        _serve(connection, units, path, cpus)
    except OSError:  # the employer was killed, and nobody is there to read a traceback
        os._exit(1)


def _serve(connection: Connection, units: "queue.SimpleQueue[bytes]", path: str, cpus: int) -> None:
    """Open the work, and send an outcome for each unit."""
    try:
        work = open_work(Path(path), cpus)
    except Exception as error:
        connection.send(Unready(f"workers: another process cannot open what it was sent ({describe(error)})"))
        return
    connection.send(Ready())
    report = seldom(connection.send)
    while True:
        connection.send_bytes(do_bytes(work, units.get(), report))


def _receive(connection: Connection, units: "queue.SimpleQueue[bytes]") -> None:
    """Hold units ready, and end this process when its employer is gone: it would write checkpoints beside another."""
    try:
        while True:
            units.put(connection.recv_bytes())
    except (EOFError, OSError):
        os._exit(1)


def open_work(source: Path | bytes, cpus: int) -> Work:
    """The work of a payload, in a process that computes with so many threads."""
    work: Work = payload.read(source)
    if "torch" in sys.modules:
        import torch

        torch.set_num_threads(cpus)
    return work


def do_bytes(work: Work, unit: bytes, report: Report) -> bytes:
    """The outcome of a unit, both as bytes."""
    try:
        opened = payload.loads(unit)
    except Exception as error:  # its module cannot be imported here
        reason = f"workers: another process cannot read a unit of work ({describe(error)})"
        return payload.dumps(Unready(reason), "outcome")
    outcome = done(work, opened, report)
    if isinstance(outcome, Done):
        try:
            return payload.dumps(outcome, "what a unit gives")
        except Exception as error:
            outcome = Failed(error, describe(error))
    try:
        return payload.dumps(outcome, "error")
    except Exception:  # an error that cannot be pickled
        return payload.dumps(Failed(RuntimeError(describe(outcome.error)), outcome.trace), "error")


def seldom(send: Callable[[State], None]) -> Report:
    """``send``, at most twice a second."""
    last = time.monotonic()

    def report(state: State) -> None:
        nonlocal last
        if time.monotonic() - last >= _SECONDS_BETWEEN_STATES:
            last = time.monotonic()
            send(state)

    return report
