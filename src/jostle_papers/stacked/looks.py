"""Looks: what was measured of networks along their training, kept in a file so that no look is taken twice."""

from pathlib import Path
from typing import Any, Protocol, TypeVar

from jostle.base.errors import UsageError
from jostle.base.store import Record, Store
from jostle.training.recipe import check_same
from jostle_papers.stacked.state import STATE

LOOKS = "looks.jsonl"
_SETTINGS = "settings"

Networks = TypeVar("Networks", contravariant=True)
Look = TypeVar("Look", covariant=True)


class Observer(Protocol[Networks, Look]):
    """Measures networks again and again in the same way.

    Inputs, noise and directions are chosen once, when an observer is made, so that a change from one look to the next
    is a change of the networks. Examples: ``GrokkingObserver``, ``ParityObserver`` and ``HardnessObserver``.
    """

    def look(self, networks: Networks, /) -> Look:
        """What these networks are like now: one network, or the weights of several."""


class Looks:
    """Records of looks by step, in a file of JSON lines or, without a folder, in memory.

    A training that resumes from an older state passes the same steps again; ``add`` then keeps the record that is
    there.

    Arguments:
        folder: of the training; None for looks in memory.
        settings: of the training and its looks, JSON values. A file with looks of other settings is refused.
    """

    def __init__(self, folder: Path | None, settings: dict[str, Any]) -> None:
        self._store = None if folder is None else Store(folder / LOOKS)
        self._records: dict[int, Record] = {}
        if self._store is None:
            return
        if _SETTINGS in self._store:
            check_same(self._store[_SETTINGS], settings, self._store.path)
        else:
            self._store.append(_SETTINGS, settings)
        self._records = {int(key): self._store[key] for key in self._store if key != _SETTINGS}

    def __contains__(self, step: int) -> bool:
        return step in self._records

    def add(self, step: int, record: Record) -> None:
        """Keep the look after ``step``, unless there is one."""
        if step not in self._records:
            if self._store is not None:
                self._store.append(str(step), record)
            self._records[step] = record

    def last(self, step: int) -> tuple[int, Record]:
        """The step and the record of the last look up to ``step``."""
        found = self.until(step)
        if not found:
            place = LOOKS if self._store is None else self._store.path
            raise UsageError(f"{place} has no look up to step {step}; delete {STATE} beside it to start again")
        return list(found.items())[-1]

    def until(self, step: int | None = None) -> dict[int, Record]:
        """The looks by step, in order: those up to ``step``, or all."""
        return {each: record for each, record in sorted(self._records.items()) if step is None or each <= step}
