"""The command line. Nothing here imports torch before a command needs it, so that ``jostle --help`` answers at once."""

import contextlib
import os
import signal
import sys

__all__ = ["main"]

_INTERRUPTED = 130


def main(arguments: list[str] | None = None) -> None:
    """Run a command, see ``jostle.cli.app``, which is imported only here, so that Ctrl-C is one line from the start.

    Arguments:
        arguments: the words of the command; by default those of the process, which ends with the command: Ctrl-C while
            it does ends it at once, without a traceback of what was being tidied up.
    """
    try:
        from jostle.cli.app import main as run

        run(arguments)
    except KeyboardInterrupt:
        print("jostle: interrupted", file=sys.stderr)  # noqa: T201
        sys.exit(_INTERRUPTED)
    finally:
        if arguments is None:
            with contextlib.suppress(OSError, ValueError):
                sys.stdout.flush()
            signal.signal(signal.SIGINT, lambda *_: os._exit(_INTERRUPTED))
