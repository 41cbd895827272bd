"""Commands of jostle in processes of their own that cost hundredths of a second: forks of one that has imported torch.

A fork has its own folder, standard streams in files, session and signal handlers, and runs the same ``jostle.cli.main``
as ``python -m jostle`` does. Its worker processes are new programs, as always.
"""

import contextlib
import os
import resource
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

USUAL = (0, 1, 2)  # exit codes of a command that ended by itself
TRACEBACK = "Traceback (most recent call last)"
UNEXPECTED = "jostle: unexpected"  # the line that stands for a traceback
MEMORY = 8 * 2**30  # bytes of address space that one command may use
_LEFT_TO_US = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_SOURCE = str(Path(__file__).resolve().parents[2] / "src")


@dataclass
class Outcome:
    """What became of a command.

    Arguments:
        code: exit code; negative, the signal that ended it.
        out, err: what it printed.
        seconds: how long it took.
        is_late: whether it was killed because it did not end in time.
    """

    code: int
    out: str
    err: str
    seconds: float
    is_late: bool = False

    @property
    def faults(self) -> list[str]:
        """What must not be: a traceback, a hang, an exit code that is none of ours, an error of several lines."""
        found = []
        if self.is_late:
            found.append("hang")
        elif any(sign in self.err + self.out for sign in (TRACEBACK, UNEXPECTED)):
            found.append("traceback")
        elif self.code not in USUAL:
            found.append("wrong exit code")
        elif self.code and "jostle: " not in self.err:
            found.append("no message")
        return found


class Running:
    """A command under way in a process and a session of its own.

    Arguments:
        act: what the process does; its return value, or that of ``SystemExit``, is the exit code.
        folder: the folder in which it works.
        variables: added to its environment.
    """

    def __init__(self, act: Callable[[], int | None], folder: Path, variables: dict[str, str] | None = None) -> None:
        self.started = time.monotonic()
        self._streams = [tempfile.TemporaryFile() for _ in range(2)]  # noqa: SIM115 - closed by outcome
        sys.stdout.flush()
        sys.stderr.flush()
        signal.pthread_sigmask(signal.SIG_BLOCK, _LEFT_TO_US)  # until the child has its own handlers, not ours
        self.pid = os.fork()
        if self.pid == 0:
            _be_child(act, folder, variables or {}, [stream.fileno() for stream in self._streams])
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _LEFT_TO_US)
        self._status: int | None = None

    def has_ended(self) -> bool:
        """Whether it has."""
        if self._status is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            self._status = status if pid else None
        return self._status is not None

    def wait(self, seconds: float) -> bool:
        """Wait at most so long; whether it has ended."""
        end = time.monotonic() + seconds
        while not (ended := self.has_ended()) and time.monotonic() < end:
            time.sleep(min(0.005, max(end - time.monotonic(), 0)))
        return ended

    def kill(self, number: int) -> None:
        """Send a signal to the process alone."""
        if not self.has_ended():
            os.kill(self.pid, number)

    def outcome(self, seconds: float) -> Outcome:
        """Wait for the end; what is still there after so many seconds is killed, with all that it started."""
        is_late = not self.wait(seconds)
        if is_late:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.pid, signal.SIGKILL)
            self.wait(60)
        taken = time.monotonic() - self.started
        texts = []
        for stream in self._streams:
            stream.seek(0)
            texts.append(stream.read().decode("utf-8", "replace"))
            stream.close()
        code = os.waitstatus_to_exitcode(self._status) if self._status is not None else -signal.SIGKILL
        return Outcome(code, texts[0], texts[1], taken, is_late)


def command(words: list[str], *, memory: int | None = MEMORY) -> Callable[[], int | None]:
    """What ``jostle WORDS`` does, for ``Running``; ``memory`` bounds its address space."""

    def act() -> int | None:
        if memory is not None:
            resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
        sys.argv = ["jostle", *words]
        from jostle.cli import main

        main()
        return 0

    return act


def cold_command(words: list[str], *, memory: int | None = None) -> Callable[[], int | None]:
    """``python -m jostle WORDS`` as a new program; ``memory`` as for ``command``."""

    def act() -> int | None:
        if memory is not None:
            resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
        os.execv(sys.executable, [sys.executable, "-m", "jostle", *words])

    return act


def call(words: list[str], folder: Path, seconds: float, variables: dict[str, str] | None = None) -> Outcome:
    """``jostle WORDS`` in ``folder``, which may take so many seconds."""
    return Running(command(words), folder, variables).outcome(seconds)


def warm_up() -> None:
    """Import all that commands import, so that forks need not."""
    import importlib

    import torch

    import jostle
    from jostle import studies

    torch.set_num_threads(1)
    for name in ("jostle.cli.app", "jostle.figures", "jostle.report", "matplotlib.pyplot", "scipy.stats"):
        importlib.import_module(name)
    from jostle.cli.names import _registries

    for registry in _registries().values():
        for name in registry.names():
            registry.get(name)
    for name in studies.names():
        studies.get(name)
    text_models = (f"transformers.models.{name}.modeling_{name}" for name in ("bert", "gpt2"))
    for name in ("transformers", *text_models, "tokenizers", "PIL.Image", "scipy.io"):
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    assert jostle.__version__


def members_of(group: int) -> list[int]:
    """Processes of the group of a command, but for the command itself: its workers."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != group:
            with contextlib.suppress(OSError):
                state, _, its_group = (entry / "stat").read_bytes().rpartition(b")")[2].split()[:3]
                if int(its_group) == group and state != b"Z":
                    found.append(int(entry.name))
    return found


def _be_child(act: Callable[[], int | None], folder: Path, variables: dict[str, str], outputs: list[int]) -> None:
    """The rest of the life of a fork."""
    code = 70
    try:
        os.setsid()
        for number in _LEFT_TO_US:
            signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        for number, output in enumerate(outputs, start=1):
            os.dup2(output, number)
        os.environ.update(variables)
        os.chdir(folder)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _LEFT_TO_US)
        code = act() or 0
    except KeyboardInterrupt as stop:
        code = 130
        if any(frame.filename.startswith(_SOURCE) for frame in traceback.extract_tb(stop.__traceback__)):
            traceback.print_exc()  # a command must see to it; not in the moment before it begins
            code = 1
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 1
        if isinstance(end.code, str):
            print(end.code, file=sys.stderr)  # noqa: T201
    except BaseException:
        traceback.print_exc()
        code = 1
    finally:
        with contextlib.suppress(BaseException):
            sys.stdout.flush()
        with contextlib.suppress(BaseException):
            sys.stderr.flush()
        os._exit(code)
