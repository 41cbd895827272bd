"""``Pool``: a crew of workers that may die. Each has one unit at a time; a unit whose worker died goes to another."""

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Generator, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from jostle.base.errors import UsageError
from jostle.base.progress import State
from jostle.engines.engine import Crew, Done, Failed, Lost, Outcome, Show

TRIES = 3  # of a unit whose worker dies: an accident happens once, and a unit that needs too much memory always dies


@dataclass(frozen=True)
class Ready:
    """A worker has opened its work."""


@dataclass(frozen=True)
class Unready:
    """A worker cannot open its work, and another one could not either.

    Arguments:
        reason: what went wrong, in a line.
    """

    reason: str


@dataclass(frozen=True)
class Death:
    """A worker is gone.

    Arguments:
        reason: how, as in "its process died (killed by signal 9)" without "its".
    """

    reason: str


Event = Ready | State | Done | Failed | Unready | Death


class Worker(ABC):
    """One worker, as its employer sees it."""

    task: "Task | None" = None

    @abstractmethod
    def give(self, unit: Any) -> None:
        """Send a unit; if the worker has died meanwhile, ``listen`` tells."""

    @abstractmethod
    def end(self) -> None:
        """End the worker at once, if it has not ended."""

    def peek(self) -> "Event | None":
        """What a worker without a unit has said since; None if it is still opening its work."""
        return None


class Hands(ABC):
    """How workers of one kind are hired and listened to."""

    @abstractmethod
    def hire(self) -> Worker:
        """A new worker, which opens the work by itself."""

    @abstractmethod
    def listen(self, workers: list[Worker]) -> Iterator[tuple[Worker, Event]]:
        """What the next of these workers say; waits until one of them says something."""


@dataclass
class Task:
    """A unit in a worker's hands.

    Arguments:
        of: the call of ``outcomes`` that it belongs to; what an abandoned call still gets is thrown away.
        number, unit: of that call.
        tries: how often it has been tried before.
    """

    of: object
    number: int
    unit: Any
    tries: int = 0


@dataclass
class Pool(Crew):
    """At most ``count`` workers, hired when there are units for them.

    Arguments:
        hands: hires workers.
        count: the most workers.
        tries: how often a unit is tried before it is given up, if its workers die.

    Attributes:
        deaths: workers that died so far.
    """

    hands: Hands
    count: int
    tries: int = TRIES
    workers: list[Worker] = field(default_factory=list)
    deaths: int = 0
    ready: list[Worker] = field(default_factory=list)

    def outcomes(self, units: Iterable[Any], show: Show) -> Generator[tuple[int, Outcome], None, None]:
        """(number of a unit, its outcome), in the order in which units end."""
        call, again = object(), deque[Task]()
        fresh = (Task(call, number, unit) for number, unit in enumerate(units))
        while True:
            is_all = self._give(again, fresh)
            if is_all and not any(worker.task is not None and worker.task.of is call for worker in self.workers):
                return
            busy = [worker for worker in self.workers if worker.task is not None]
            for worker, event in self.hands.listen(busy):
                ended = self._hear(worker, event, again, show)
                if ended is not None and ended[0].of is call:
                    yield ended[0].number, ended[1]

    def _give(self, again: deque[Task], fresh: Iterator[Task]) -> bool:
        """Give units to all workers that have none, and hire as long as there are units for more.

        Returns whether all units have been given; otherwise workers are busy, maybe with those of an abandoned call.
        """
        while True:
            free = next((worker for worker in self.workers if worker.task is None), None)
            if free is None and len(self.workers) >= self.count:
                return False
            task = again.popleft() if again else next(fresh, None)
            if task is None:
                return True
            if free is None:
                free = self.hands.hire()
                self.workers.append(free)
            free.task = task
            free.give(task.unit)

    def _hear(self, worker: Worker, event: Event, again: deque[Task], show: Show) -> tuple[Task, Outcome] | None:
        """Take note of what a worker says; returns its task if that has ended."""
        task = worker.task
        assert task is not None
        if isinstance(event, Unready):
            raise UsageError(event.reason)
        if isinstance(event, Ready):
            return None
        if isinstance(event, State):
            show(task.unit, event)
            return None
        worker.task = None
        if isinstance(event, Done | Failed):
            return task, event
        self.workers.remove(worker)
        self.deaths += 1
        worker.end()
        task.tries += 1
        if task.tries < self.tries:
            again.append(task)
            return None
        return task, Lost(event.reason, task.tries)

    def hire_all(self) -> None:
        """Hire all workers before there are units for them; ``readiness`` tells when they have opened the work."""
        while len(self.workers) < self.count:
            self.workers.append(self.hands.hire())

    def readiness(self) -> bool | None:
        """Whether all workers have opened the work; None if one of them cannot. Nothing is waited for."""
        for worker in self.workers:
            if worker in self.ready:
                continue
            event = worker.peek()
            if event is None:
                return False
            if not isinstance(event, Ready):
                return None
            self.ready.append(worker)
        return True

    def close(self) -> None:
        """End all workers."""
        for worker in self.workers:
            worker.end()
        self.workers.clear()
