"""Ctrl-C at a moment at which torch can take it.

Python raises ``KeyboardInterrupt`` wherever it happens to be. While torch computes, that may be a function of Python's
that C++ has called and that must not raise: the process then aborts. So the command line listens in another way: in an
``Uninterrupted`` block, a step of training or a batch of passes, Ctrl-C waits for its end. A second Ctrl-C does not
wait. Elsewhere, and where a library's caller handles signals, all is as usual.
"""

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType

_depth = 0  # blocks that the main thread is in
_is_asked = False  # whether Ctrl-C came meanwhile


def _hear(number: int, frame: FrameType | None) -> None:
    global _is_asked
    if _depth and not _is_asked:
        _is_asked = True
        return
    _is_asked = False
    signal.default_int_handler(number, frame)


def is_usual() -> bool:
    """Whether this is the main thread and Ctrl-C raises ``KeyboardInterrupt``, sooner or later."""
    is_main = threading.current_thread() is threading.main_thread()
    return is_main and signal.getsignal(signal.SIGINT) in (signal.default_int_handler, _hear)


@contextlib.contextmanager
def listening() -> Iterator[None]:
    """Inside, Ctrl-C waits for the end of an ``Uninterrupted`` block, unless somebody else handles it."""
    global _is_asked
    if not is_usual():
        yield
        return
    before = signal.signal(signal.SIGINT, _hear)
    try:
        yield
    finally:
        _is_asked = False
        signal.signal(signal.SIGINT, before)


class Uninterrupted:
    """A block that Ctrl-C does not interrupt in the midst; see ``listening``.

    >>> with Uninterrupted():
    ...     pass
    """

    def __enter__(self) -> None:
        global _depth
        self._counts = threading.current_thread() is threading.main_thread()
        _depth += self._counts

    def __exit__(self, *_: object) -> None:
        global _depth, _is_asked
        _depth -= self._counts
        if self._counts and _is_asked and not _depth:
            _is_asked = False
            raise KeyboardInterrupt
