"""The two kinds of errors: wrong use (exit code 2) and failure at run time (exit code 1).

Every message is one line that names the argument, the value received, what was expected and the likely fix.
"""

from pathlib import Path
from typing import Any

_LONGEST = 80  # characters of a value in a message


def shown(value: Any) -> str:
    """A value as it was written, or its type where that would be long or many lines, as an array is.

    >>> shown("fog"), shown([0.0] * 100)
    ("'fog'", 'a list')
    """
    is_number = getattr(value, "shape", None) == () and type(value).__module__ == "numpy"
    text = repr(value.item() if is_number else value)
    return text if len(text) <= _LONGEST and "\n" not in text else f"a {type(value).__name__}"


class JostleError(Exception):
    """Any error that jostle raises on purpose. The command line prints it as one line, without a traceback."""

    exit_code = 1


class UsageError(JostleError, ValueError):
    """An argument, an input or a file cannot be used: the caller can correct it."""

    exit_code = 2


class KeptFileError(UsageError):
    """A file in which work was kept cannot be continued: it is damaged, or it is from another run.

    Arguments:
        message: one line.
        path: the file. Work that can be done again sets it aside and starts anew.
    """

    def __init__(self, message: str, path: str | Path) -> None:
        super().__init__(message)
        self.path = Path(path)

    def __reduce__(self) -> tuple[type, tuple[str, Path]]:
        return type(self), (str(self), self.path)  # with its path, also from another process


class FailureError(JostleError, RuntimeError):
    """The request was right and something else went wrong: a full disk, a model that raised an error."""

    exit_code = 1
