"""Progress of long work: a bar on a terminal, plain lines elsewhere, with the time that is left."""

import bisect
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol

from jostle.base.errors import UsageError, shown

_SECONDS_BETWEEN_LINES = 2.0
_SECONDS_UNTIL_KNOWN = 3.0  # before that, the time left is not shown
_SHARE_UNTIL_KNOWN = 0.01
_SHARE_BETWEEN = 0.001  # from one state that is remembered to the next


@dataclass(frozen=True)
class State:
    """How much of a piece of work is done.

    Arguments:
        share: about which part is done, 0 to 1.
        passes: inputs that each model has answered so far, or was trained on.
        summary: the estimates so far, e.g. ``0.0123 [0.0078, 0.0168]``.
        unit: what ``passes`` counts.
    """

    share: float
    passes: int
    summary: str
    unit: str = "passes"


class Reporter(Protocol):
    """Shows the progress of a piece of work."""

    def __call__(self, state: State) -> None:
        """Show this state."""

    def close(self) -> None:
        """End: the work is done, or was interrupted."""


Progress = bool | Callable[[State], None]


def reporter(progress: Progress, label: str) -> Reporter:
    """The reporter for the argument ``progress``: nothing, the terminal, or the caller's own function."""
    if callable(progress):
        return _Function(progress)
    if not isinstance(progress, bool | int):
        raise UsageError(f"progress={shown(progress)} must be True, False or a function of the state")
    if not progress:
        return _Function(lambda _: None)
    return _Bar(label) if sys.stderr.isatty() else _Lines(label)


class Remaining:
    """How long the rest will take, at the pace of the second half so far.

        seconds left = (1 - share now) * (time now - time halfway) / (share now - share halfway)

    Halfway is the moment at which half of the work since the first state was done. So a slow beginning is forgotten, a
    change of pace is noticed, and the work of an earlier, interrupted run does not count. It is wrong if parts with the
    same share take different times; therefore "about".

    >>> times = iter([0.0, 60.0, 120.0])
    >>> remaining = Remaining(clock=lambda: next(times))
    >>> [remaining(share) for share in (0.5, 0.6, 0.7)]  # half of it was done before
    ['', 'about 4 min left', 'about 3 min left']

    Arguments:
        clock: the time in seconds; by default that of the machine.
    """

    def __init__(self, clock: Callable[[], float] | None = None) -> None:
        self._clock = clock or time.monotonic
        self._times: list[float] = []
        self._shares: list[float] = []  # at these times; at most a thousand

    def __call__(self, share: float) -> str:
        """The time left when ``share`` of the work is done, in words; empty if it is not known yet."""
        now = self._clock()
        if not self._shares or share >= self._shares[-1] + _SHARE_BETWEEN:
            self._times.append(now)
            self._shares.append(share)
        began, first = self._times[0], self._shares[0]
        if now - began < _SECONDS_UNTIL_KNOWN or share - first < _SHARE_UNTIL_KNOWN or share >= 1:
            return ""
        halfway = bisect.bisect_right(self._shares, (first + share) / 2) - 1
        then, before = self._times[halfway], self._shares[halfway]
        return f"about {in_words((1 - share) * (now - then) / (share - before))} left"


def part_of(report: Callable[[State], None], start: float, end: float) -> Callable[[State], None]:
    """``report`` for a part of the work, which goes from one share of the whole to another.

    >>> states: list[State] = []
    >>> part_of(states.append, 0.5, 1.0)(State(0.5, 10, "halfway", "steps"))
    >>> states[0].share
    0.75
    """
    return lambda state: report(replace(state, share=start + (end - start) * state.share))


def in_words(seconds: float) -> str:
    """A duration to about a tenth.

    >>> [in_words(seconds) for seconds in (0.4, 8, 47, 100, 1234, 9999, 200_000)]
    ['1 s', '8 s', '47 s', '2 min', '21 min', '2.8 h', '56 h']
    """
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    if seconds < 90 * 60:
        return f"{round(seconds / 60)} min"
    hours = seconds / 3600
    return f"{hours:.1f} h" if hours < 10 else f"{round(hours)} h"


class _Function:
    def __init__(self, function: Callable[[State], None]) -> None:
        self._function = function

    def __call__(self, state: State) -> None:
        self._function(state)

    def close(self) -> None:
        pass


class _Lines:
    """One line every few seconds, for logs."""

    def __init__(self, label: str) -> None:
        self._label, self._last, self._remaining = label, time.monotonic(), Remaining()

    def __call__(self, state: State) -> None:
        now, left = time.monotonic(), self._remaining(state.share)
        if now - self._last >= _SECONDS_BETWEEN_LINES:
            self._last = now
            line = f"{self._label}: {state.share:4.0%}  {state.summary}  {state.passes:,} {state.unit}  {left}"
            print(line.rstrip(), file=sys.stderr, flush=True)  # noqa: T201

    def close(self) -> None:
        pass


class _Bar:
    """A bar with the estimate, its interval, the passes so far, the time passed and the time left."""

    def __init__(self, label: str) -> None:
        import rich.console
        import rich.progress

        columns: list[str | rich.progress.ProgressColumn] = [
            "{task.description}",
            rich.progress.BarColumn(bar_width=24),
            "{task.fields[summary]}",
            "[dim]{task.fields[passes]}",
            rich.progress.TimeElapsedColumn(),
            "[dim]{task.fields[left]}",
        ]
        console = rich.console.Console(stderr=True)
        self._progress = rich.progress.Progress(*columns, console=console, transient=True)
        self._task = self._progress.add_task(label, total=1.0, summary="", passes="", left="")
        self._remaining = Remaining()
        self._progress.start()

    def __call__(self, state: State) -> None:
        passes = f"{state.passes:,} {state.unit}"
        left = self._remaining(state.share)
        self._progress.update(self._task, completed=state.share, summary=state.summary, passes=passes, left=left)

    def close(self) -> None:
        self._progress.stop()
