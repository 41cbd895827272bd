"""The two kinds of errors: wrong use (exit code 2) and failure at run time (exit code 1).

Every message is one line that names the argument, the value received, what was expected and the likely fix.
"""

from pathlib import Path


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
