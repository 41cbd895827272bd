"""The two ways jostle says no: wrong use (exit code 2) and failure at run time (exit code 1).

Every message is one line that names the argument, the value received, what was expected and the likely fix.
"""


class JostleError(Exception):
    """Anything jostle raises on purpose. The command line prints it as one line, without a traceback."""

    exit_code = 1


class UsageError(JostleError, ValueError):
    """An argument, an input or a file that cannot be used as given: the caller can mend it."""

    exit_code = 2


class FailureError(JostleError, RuntimeError):
    """The request was fine and something else went wrong: a full disk, a model that raised."""

    exit_code = 1
