"""``Torchrun``: the processes that ``torchrun`` started, each with the model and the data in its own hands.

All processes run the same program and see the same units. Process r of W does the units r, r + W, ... and all of them
exchange what they found, so all count the same and stop at the same draw. Nothing but results travels. A process that
dies ends all of them, as torchrun has it; ``torchrun --max-restarts`` starts them again, and the number is the same.
"""

import contextlib
import itertools
import os
from collections.abc import Generator, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from jostle.base import checks
from jostle.base.errors import UsageError
from jostle.engines.engine import MOST_THREADS, Crew, Engine, Outcome, Show, Work, done

_NEEDED = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")


def is_torchrun() -> bool:
    """Whether torchrun started this process."""
    return "TORCHELASTIC_RUN_ID" in os.environ


def is_first() -> bool:
    """Whether this process speaks for all: the first one of torchrun, or one that torchrun did not start."""
    return not is_torchrun() or os.environ.get("RANK", "0") == "0"


@dataclass(frozen=True)
class Torchrun(Engine):
    """All processes of one ``torchrun``; every one of them must make the same calls.

    Arguments:
        cpus: threads of each.
    """

    cpus: int = 1

    def __post_init__(self) -> None:
        checks.whole("cpus", self.cpus, least=1, most=MOST_THREADS)
        missing = [name for name in _NEEDED if name not in os.environ]
        if missing:
            raise UsageError(
                f"engine=torchrun needs a process that torchrun started ({missing[0]} is not set): torchrun "
                "--nproc-per-node 2 -m jostle measure ..."
            )

    @contextlib.contextmanager
    def crew(self, work: Work) -> Iterator["Gang"]:
        """All processes as one crew."""
        from torch import distributed

        ours = not distributed.is_initialized()
        if ours:
            distributed.init_process_group("gloo")
        try:
            yield Gang(work)
        finally:
            if ours:
                distributed.destroy_process_group()


@dataclass(frozen=True)
class Gang(Crew):
    """The processes of a process group, in step."""

    work: Work

    def agree(self, thing: Any) -> Any:
        """What the first process has."""
        from torch import distributed

        held = [thing]
        distributed.broadcast_object_list(held, src=0)
        return held[0]

    def outcomes(self, units: Iterable[Any], show: Show) -> Generator[tuple[int, Outcome], None, None]:
        """(number of a unit, its outcome), in their order; in every process the same."""
        from torch import distributed

        size, rank, number = distributed.get_world_size(), distributed.get_rank(), 0
        for turn in _batched(units, size):
            mine = turn[rank] if rank < len(turn) else None
            own = None if mine is None else done(self.work, mine, lambda state, unit=mine: show(unit, state))  # type: ignore[misc]
            found: list[Any] = [None] * size
            distributed.all_gather_object(found, own)
            for outcome in found[: len(turn)]:
                yield number, outcome
                number += 1


def _batched(units: Iterable[Any], size: int) -> Iterator[tuple[Any, ...]]:
    """As ``itertools.batched`` of Python 3.12."""
    iterator = iter(units)
    while turn := tuple(itertools.islice(iterator, size)):
        yield turn
