"""What a person sees while a measurement runs: a bar on a terminal, plain lines elsewhere."""

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

_SECONDS_BETWEEN_LINES = 2.0


@dataclass(frozen=True)
class State:
    """How far a measurement is.

    Arguments:
        share: about which part is done, 0 to 1.
        passes: inputs answered so far by each model, or trained on.
        summary: the estimates so far, e.g. ``0.0123 ± 0.0045``.
    """

    share: float
    passes: int
    summary: str
    unit: str = "passes"


class Reporter(Protocol):
    """Anything that can be told how far a measurement is."""

    def __call__(self, state: State) -> None:
        """Show this state."""

    def close(self) -> None:
        """The measurement is over, or was interrupted."""


Progress = bool | Callable[[State], None]


def reporter(progress: Progress, label: str) -> Reporter:
    """The reporter for the argument ``progress``: nothing, the terminal, or the caller's own function."""
    if callable(progress):
        return _Function(progress)
    if not progress:
        return _Function(lambda _: None)
    return _Bar(label) if sys.stderr.isatty() else _Lines(label)


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
        self._label, self._last = label, time.monotonic()

    def __call__(self, state: State) -> None:
        now = time.monotonic()
        if now - self._last >= _SECONDS_BETWEEN_LINES:
            self._last = now
            line = f"{self._label}: {state.share:4.0%}  {state.summary}  {state.passes:,} {state.unit}"
            print(line, file=sys.stderr, flush=True)  # noqa: T201

    def close(self) -> None:
        pass


class _Bar:
    """A bar with the estimate, its half-width and the passes so far."""

    def __init__(self, label: str) -> None:
        import rich.console
        import rich.progress

        columns: list[str | rich.progress.ProgressColumn] = [
            "{task.description}",
            rich.progress.BarColumn(bar_width=24),
            "{task.fields[summary]}",
            "[dim]{task.fields[passes]}",
            rich.progress.TimeElapsedColumn(),
        ]
        console = rich.console.Console(stderr=True)
        self._progress = rich.progress.Progress(*columns, console=console, transient=True)
        self._task = self._progress.add_task(label, total=1.0, summary="", passes="")
        self._progress.start()

    def __call__(self, state: State) -> None:
        passes = f"{state.passes:,} {state.unit}"
        self._progress.update(self._task, completed=state.share, summary=state.summary, passes=passes)

    def close(self) -> None:
        self._progress.stop()
