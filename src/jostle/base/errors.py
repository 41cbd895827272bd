"""The two kinds of errors: wrong use (exit code 2) and failure at run time (exit code 1).

Every message is one line that names the argument, the value received, what was expected and the likely fix.
"""


class JostleError(Exception):
    """Any error that jostle raises on purpose. The command line prints it as one line, without a traceback."""

    exit_code = 1


class UsageError(JostleError, ValueError):
    """An argument, an input or a file cannot be used: the caller can correct it."""

    exit_code = 2


class FailureError(JostleError, RuntimeError):
    """The request was right and something else went wrong: a full disk, a model that raised an error."""

    exit_code = 1
