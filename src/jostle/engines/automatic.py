"""``Automatic``: begin in this process, and go over to several where that pays; no number changes.

Whether it pays is judged while this process is at work. Processes take a few seconds to import torch, during which
this process goes on. They are started when the rest would take longer than ``least_seconds`` here, and only if other
programs leave a processor free: on busy ones two processes were measured to be no faster than one.
"""

import contextlib
import contextvars
import os
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from jostle.engines.engine import Engine, Work
from jostle.engines.pool import Pool
from jostle.engines.processes import Processes, cores

# Workers have imported torch after 4 to 5 s. If two processes are g times as fast as one, they are done sooner if what
# is left takes one of them 5 g / (g - 1) s or more: 20 s for g = 1.33.
LEAST_SECONDS = 20.0

_ONE_PROCESS = contextvars.ContextVar("one_process", default=False)


@contextlib.contextmanager
def one_process() -> Iterator[None]:
    """Inside, ``Automatic`` starts no processes: so a worker starts no workers of its own."""
    token = _ONE_PROCESS.set(True)
    try:
        yield
    finally:
        _ONE_PROCESS.reset(token)


@dataclass(frozen=True)
class Automatic(Engine):
    """This process at first, and processes with one thread each if there is much left to do.

    Arguments:
        workers: how many processes; None for this one and as many more as processors are free.
        least_seconds: how long the rest must take here for processes to be started.
    """

    workers: int | None = None
    least_seconds: float = LEAST_SECONDS

    @property
    def count(self) -> int:
        """How many processes there would be."""
        return self.workers or 1 + free_cores()

    @property
    def is_possible(self) -> bool:
        """Whether there could be several processes at all."""
        return self.count > 1 and sys.platform != "win32" and not _ONE_PROCESS.get()

    @contextlib.contextmanager
    def crew(self, work: Work) -> Iterator[Pool]:
        """The processes that this process goes over to."""
        with Processes(self.count).crew(work) as pool:
            yield pool


def free_cores() -> int:
    """How many processors are free beside the one of this process, by the load of the last minute.

    A load of 1 is one program that always wants to run; this process is one of them.
    """
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else 1.0
    return max(0, cores() - round(max(load, 1.0)))


class Pace:
    """How long the rest of some work will take at the pace so far.

    >>> times = iter([0.0, 10.0])
    >>> pace = Pace(clock=lambda: next(times))
    >>> pace.seconds_left(0.2)
    40.0
    """

    def __init__(self, clock: Callable[[], float] | None = None) -> None:
        self._clock = clock or time.monotonic
        self._began = self._clock()

    @property
    def seconds(self) -> float:
        """Seconds since the beginning."""
        return self._clock() - self._began

    def seconds_left(self, share: float) -> float:
        """Seconds until all is done, if this share has been done since the beginning."""
        return self.seconds * (1 - share) / max(share, 1e-9)
