"""A work that needs no torch, so that its workers start quickly."""

import contextlib
import os
import signal
import time
from pathlib import Path

from jostle.base.errors import UsageError
from jostle.base.progress import State


class Toy:
    """Squares numbers; words tell it to do something else."""

    def do(self, unit, report):
        report(State(0.5, 1, "halfway"))
        if isinstance(unit, tuple):
            return getattr(self, unit[0])(*unit[1:])
        return unit * unit

    def sleep(self, seconds, value):
        time.sleep(seconds)
        return value

    def complain(self, text):
        raise UsageError(text)

    def die_once(self, mark, value):
        die_once(Path(mark))
        return value

    def die(self):
        os.kill(os.getpid(), signal.SIGKILL)

    def where(self, seconds):
        time.sleep(seconds)
        return os.getpid()


def die_once(mark: Path) -> None:
    """Kill this process, unless one died here before."""
    with contextlib.suppress(FileExistsError):
        mark.touch(exist_ok=False)
        os.kill(os.getpid(), signal.SIGKILL)
