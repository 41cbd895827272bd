"""Ctrl-C at a moment at which torch can take it.

Python raises ``KeyboardInterrupt`` wherever it happens to be. While torch computes or matplotlib draws, that may be a
function of Python's that C++ has called and that must not raise: the process then aborts. While pydantic prepares the
reading of a file, its Rust makes another error of it. So the command line listens in another way. In an
``Uninterrupted`` block, a step of training or a batch of passes, Ctrl-C waits for its end. While an import or a
function of such a package is under way, it comes again a little later, for some seconds at most. A second Ctrl-C does
not wait. Where a library's caller handles signals, all is as usual.
"""

import _thread
import contextlib
import signal
import threading
import time
from collections.abc import Iterator
from types import FrameType

# Packages whose C++ or Rust calls functions of Python's.
_NATIVE = {"torch", "matplotlib", "pydantic", "pydantic_core", "importlib", "_frozen_importlib"}
_DECORATES = "torch.utils._contextlib"  # stands around functions of everybody's, as no_grad() does
_LATER, _LONGEST = 0.01, 3.0  # seconds from one try to the next, and from the first to the last

_depth = 0  # blocks that the main thread is in
_asked_at: float | None = None  # when a Ctrl-C came that still waits
_is_again = False  # whether the next signal is that Ctrl-C once more


def _hear(number: int, frame: FrameType | None) -> None:
    global _asked_at, _is_again
    is_again, _is_again = _is_again, False
    if is_again and _asked_at is None:  # it was raised meanwhile
        return
    is_second = _asked_at is not None and not is_again
    if not is_second:
        now = time.monotonic()
        _asked_at = now if _asked_at is None else _asked_at
        if _depth:
            return
        if now - _asked_at < _LONGEST and _is_below_native(frame):
            later = threading.Timer(_LATER, _ask_again)
            later.daemon = True
            later.start()
            return
    _asked_at = None
    signal.default_int_handler(number, frame)


def _is_below_native(frame: FrameType | None) -> bool:
    """Whether a function is under way whose C++ or Rust may have called the present one."""
    while frame is not None:
        module = str(frame.f_globals.get("__name__", ""))
        if module.partition(".")[0] in _NATIVE and module != _DECORATES:
            return True
        frame = frame.f_back
    return False


def _ask_again() -> None:
    global _is_again
    if _asked_at is not None:
        _is_again = True
        _thread.interrupt_main()


def is_usual() -> bool:
    """Whether this is the main thread and Ctrl-C raises ``KeyboardInterrupt``, sooner or later."""
    is_main = threading.current_thread() is threading.main_thread()
    return is_main and signal.getsignal(signal.SIGINT) in (signal.default_int_handler, _hear)


@contextlib.contextmanager
def listening() -> Iterator[None]:
    """Inside, Ctrl-C waits for a moment that can take it, unless somebody else handles it."""
    global _asked_at
    if not is_usual():
        yield
        return
    before = signal.signal(signal.SIGINT, _hear)
    try:
        yield
    finally:
        _asked_at = None
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
        global _depth, _asked_at
        _depth -= self._counts
        if self._counts and _asked_at is not None and not _depth:
            _asked_at = None
            raise KeyboardInterrupt
