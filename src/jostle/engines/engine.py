"""What an engine is: ``Work`` does units, a ``Crew`` of workers has them done, an ``Engine`` opens crews."""

import contextlib
import traceback
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass
from typing import Any, Protocol

from jostle.base.errors import FailureError
from jostle.base.progress import State

MOST_THREADS = 1024  # of one machine; far more end the process in the middle of a sum, without a word

Report = Callable[[State], None]  # how far a unit is
Show = Callable[[Any, State], None]  # told a unit and how far it is


class Work(Protocol):
    """What travels once to every worker, and does units there.

    If its attribute ``has_tensors`` is true, tensors are mapped into the memory of workers, which then share them.
    """

    def do(self, unit: Any, report: Report) -> Any:
        """What this unit gives: a function of the work and the unit alone."""


@dataclass(frozen=True)
class Done:
    """A unit was done.

    Arguments:
        value: what it gave.
    """

    value: Any


@dataclass(frozen=True)
class Failed:
    """A unit raised; it would raise again, so it is not tried again.

    Arguments:
        error: what it raised.
        trace: its traceback, as text.
    """

    error: Exception
    trace: str


@dataclass(frozen=True)
class Lost:
    """A unit whose worker died, and died again as often as it was tried.

    Arguments:
        reason: how the worker ended.
        tries: how often the unit was tried.
    """

    reason: str
    tries: int


Outcome = Done | Failed | Lost


class Crew(ABC):
    """Workers that have opened one work."""

    @abstractmethod
    def outcomes(self, units: Iterable[Any], show: Show) -> Generator[tuple[int, Outcome], None, None]:
        """(number of a unit, its outcome), in the order in which units end.

        Arguments:
            units: they are taken as workers become free.
            show: told about units that say how far they are.
        """

    def results(self, units: Iterable[Any]) -> Generator[Any, None, None]:
        """What units give, in their own order; raises what the first of them raised that did."""
        held, due = dict[int, Outcome](), 0
        with contextlib.closing(self.outcomes(units, lambda *_: None)) as outcomes:
            for number, outcome in outcomes:
                held[number] = outcome
                while due in held:
                    yield value_of(held.pop(due))
                    due += 1


class Engine(ABC):
    """Opens crews."""

    @abstractmethod
    def crew(self, work: Work) -> contextlib.AbstractContextManager[Crew]:
        """Workers for this work; they are gone when the context ends."""


def value_of(outcome: Outcome) -> Any:
    """What a unit gave; raises if it gave nothing."""
    match outcome:
        case Done(value):
            return value
        case Failed(error, _):
            raise error
        case Lost(reason, tries):
            raise FailureError(
                f"a worker {reason}, and so did those that tried its unit again, {tries} times in all; if memory ran "
                "out, use fewer workers or smaller batches"
            )


def done(work: Work, unit: Any, report: Report) -> Done | Failed:
    """Do a unit; what it raises becomes the outcome."""
    try:
        return Done(work.do(unit, report))
    except Exception as error:
        return Failed(error, traceback.format_exc())


def describe(problem: BaseException) -> str:
    """Type and message of an exception in one line.

    >>> describe(ValueError("two\\nlines"))
    'ValueError: two lines'
    """
    return f"{type(problem).__name__}: {' '.join(str(problem).split())}".rstrip(": ")
