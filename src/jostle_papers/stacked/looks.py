"""Looks: what is measured of networks along their training, kept in a file so that no look is taken twice.

The one who looks is an observer: ``GrokkingObserver``, ``ParityObserver`` or ``HardnessObserver``. Each has one
method, ``look``, from networks to measures. Its inputs, noise and directions are chosen once, so that a
change from one look to the next is a change of the networks.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from jostle.base.errors import UsageError
from jostle.base.store import Record, Store
from jostle.training.recipe import check_same
from jostle_papers.stacked.state import STATE

LOOKS = "looks.jsonl"
_SETTINGS = "settings"


class Looks:
    """Records of looks by step, in a file of JSON lines or, without a folder, in memory.

    A training that resumes from an older state passes the same steps again; ``take`` then keeps the record that is
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

    def take(self, step: int, look: Callable[[], Record]) -> Record:
        """The record of the look after ``step``: the one that is there, or a new one."""
        if step not in self._records:
            record = look()
            if self._store is not None:
                self._store.append(str(step), record)
            self._records[step] = record
        return self._records[step]

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
