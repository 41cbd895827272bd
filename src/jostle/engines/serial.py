"""``Serial``: this process does all units, one after the other."""

import contextlib
from collections.abc import Generator, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from jostle.base import checks
from jostle.engines.engine import MOST_THREADS, Crew, Engine, Outcome, Show, Work, done


@dataclass(frozen=True)
class Serial(Engine):
    """This process.

    Arguments:
        cpus: threads that a model computes with; None for as many as torch has been told.
    """

    cpus: int | None = None

    def __post_init__(self) -> None:
        if self.cpus is not None:
            checks.whole("cpus", self.cpus, least=1, most=MOST_THREADS)

    @contextlib.contextmanager
    def crew(self, work: Work) -> Iterator["Here"]:
        """This process as the only worker."""
        yield Here(work)


@dataclass(frozen=True)
class Here(Crew):
    """A crew of one: this process. Nothing is sent."""

    work: Work

    def outcomes(self, units: Iterable[Any], show: Show) -> Generator[tuple[int, Outcome], None, None]:
        """(number of a unit, its outcome), in their order."""
        for number, unit in enumerate(units):
            yield number, done(self.work, unit, lambda state, unit=unit: show(unit, state))  # type: ignore[misc]
