"""The command line: from words to a command, and errors as one line.

Nothing here imports torch before a command needs it, so that ``jostle --help`` answers at once.
"""

import _thread
import contextlib
import ctypes
import io
import os
import shutil
import signal
import sys
import threading
import traceback
from pathlib import Path
from typing import Any, NoReturn

__all__ = ["main"]

_INTERRUPTED = 130
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3


def main(arguments: list[str] | None = None) -> None:
    """Run a command; print an error as one line; exit with 0, 1 (failure), 2 (wrong use) or 130 (Ctrl-C).

    The commands are imported inside, so that Ctrl-C is one line from the start.

    Arguments:
        arguments: the words of the command; by default those of the process, which ends with the command: Ctrl-C while
            it does ends it at once, without a traceback of what was being tidied up.
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    if words[:1] in (["help"], ["version"]):  # what people type first, in other words
        words = [*words[1:], f"--{words[0]}"]
    debug = "--debug" in words
    _open_streams()
    sys.unraisablehook = _unraisable
    _mend_environment()
    try:
        from jostle.base import interrupts

        with interrupts.listening():
            _run([word for word in words if word != "--debug"], debug)
    except KeyboardInterrupt as stop:
        why = str(stop) if type(stop) is KeyboardInterrupt else ""  # others carry a result
        _fail(f"interrupted {why}".rstrip(), _INTERRUPTED, debug)
    finally:
        if arguments is None:
            with contextlib.suppress(OSError, ValueError):
                sys.stdout.flush()
            signal.signal(signal.SIGINT, lambda *_: os._exit(_INTERRUPTED))


_NARROWEST, _WIDEST = 40, 1_000  # columns
_SOON = 0.01  # seconds
_ABOUT_COMMANDS = {"--help", "-h", "--version", "-V"}  # answered by a text, also beside --json
UNEXPECTED = "unexpected"  # how a line begins that is about a fault of jostle's own
_ADVICE = "(a fault of jostle, or of an odd model: --debug shows where; please report it)"


def _unraisable(told: "sys.UnraisableHookArgs") -> None:
    """Ctrl-C in a moment in which Python cannot raise it, as while it tidies up, comes again a little later."""
    if told.exc_type is KeyboardInterrupt:
        threading.Timer(_SOON, _thread.interrupt_main).start()
    else:
        sys.__unraisablehook__(told)


def _mend_environment() -> None:
    """See to variables of the environment that would end or stall a command over how its answer looks.

    To break tables of help into very few columns takes minutes, and to fill up very many takes all memory. Nothing is
    shown in a window, so matplotlib needs no backend but the one that writes files.
    """
    columns = shutil.get_terminal_size().columns
    if not _NARROWEST <= columns <= _WIDEST:
        os.environ["COLUMNS"] = str(min(max(columns, _NARROWEST), _WIDEST))
    if "MPLBACKEND" in os.environ:
        os.environ["MPLBACKEND"] = "agg"


def _open_streams() -> None:
    """Make printing safe: a closed stream swallows what is printed, and a character it cannot write becomes a ``?``."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:  # closed by the shell, as by >&-
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115, PTH123 - open to the end
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def _run(words: list[str], debug: bool) -> None:
    from cyclopts import CycloptsError

    from jostle.base.errors import JostleError
    from jostle.cli.app import app
    from jostle.cli.config import configured, take_config
    from jostle.cli.output import remembered, results_only

    if not _has_folder():  # libraries below torch end the process then
        _fail("the folder in which this command was started is gone: change to one that exists", 1, debug)
    _keep_memory()
    given = words
    try:
        # With --json the output is JSON and nothing else, whatever a model prints: see output.say.
        words, config = take_config(words)
        is_json = "--json" in words and not _ABOUT_COMMANDS & set(words)
        with (
            remembered(given),
            contextlib.redirect_stdout(results_only()) if is_json else contextlib.nullcontext(),
            configured(app, config, words[0] if words else ""),
        ):
            app(words, exit_on_error=False, print_error=False, result_action=_ignore)
    except JostleError as error:
        _fail(str(error), error.exit_code, debug)
    except CycloptsError as error:
        command = f"{words[0]} " if words and words[0] in app else ""
        # "Tokens" are something else here.
        said = " ".join(str(error).split()).replace("Unused Tokens: [", "Words that are not understood: [")
        _fail(f"{said} (see jostle {command}--help)", 2, debug)
    except BrokenPipeError:
        sys.exit(0)
    except OSError as error:
        reason = " ".join((error.strerror or str(error) or type(error).__name__).split())
        _fail(reason if error.filename is None else f"{error.filename}: {reason}", 1, debug)
    except MemoryError:
        _fail("out of memory; try a smaller --batch-size, or fewer inputs or draws", 1, debug)
    except Exception as error:
        _fail(f"{UNEXPECTED} {type(error).__name__}: {' '.join(str(error).split())[:300]} {_ADVICE}", 1, debug)


def _has_folder() -> bool:
    """Whether the working directory still exists."""
    try:
        Path.cwd()
    except OSError:
        return False
    return True


def _fail(message: str, code: int, debug: bool) -> NoReturn:
    if debug:
        traceback.print_exc()
    print(f"jostle: {message}", file=sys.stderr)  # noqa: T201
    sys.exit(code)


def _ignore(_: Any) -> None:
    """Commands print; what they return is for Python callers."""


def _keep_memory() -> None:
    """Let glibc keep freed memory instead of giving it back and faulting it in again for every batch.

    In one measurement a small CNN took 5.4 ms a batch with the default thresholds and 2.7 ms with these. Only the
    command line does this: the allocator belongs to the process, and a library must not change it for its caller.
    Elsewhere than on glibc nothing happens.
    """
    with contextlib.suppress(OSError, AttributeError):
        allocator = ctypes.CDLL(None)
        allocator.mallopt(_TRIM_THRESHOLD, 2**30)
        allocator.mallopt(_MMAP_THRESHOLD, 2**25)
