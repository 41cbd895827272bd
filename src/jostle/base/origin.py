"""Where an error in somebody's own code comes from: the last line of theirs that led to it."""

import sys
import traceback
from pathlib import Path

_OURS = Path(__file__).resolve().parents[1]


def described(error: BaseException, own: str | Path | None = None) -> str:
    """An error in one line: its type, its message, and the line that it comes from.

    Arguments:
        error: anything raised.
        own: as of ``origin``.
    """
    reason = " ".join(str(error.msg if isinstance(error, SyntaxError) else error).split())
    said = f"{type(error).__name__}: {reason}" if reason else type(error).__name__
    if isinstance(error, SyntaxError):
        return f"{said} ({error.filename}, line {error.lineno})"
    return said + origin(error, own)


def origin(error: BaseException, own: str | Path | None = None) -> str:
    """The last line that led to the error and is neither ours nor an installed package's nor Python's, in brackets.

    Empty if there is none, as for an error deep in a network of another package.

    Arguments:
        error: as it was caught; only lines below that place count.
        own: a file that is theirs wherever it lies.
    """
    place = None if own is None else Path(own).resolve()
    lines = [line for line in traceback.extract_tb(error.__traceback__) if _is_theirs(line.filename, place)]
    return f" ({lines[-1].filename}, line {lines[-1].lineno})" if lines else ""


def _is_theirs(filename: str, own: Path | None) -> bool:
    path = Path(filename).resolve()
    if own is not None and path == own:
        return True
    is_installed = "site-packages" in filename or filename.startswith(("<", sys.base_prefix))
    return not is_installed and not path.is_relative_to(_OURS)
