"""The numbers of a probe, step by step: a file that survives a kill at any moment, read as columns and figures."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from jostle.base import checks
from jostle.base.errors import UsageError
from jostle.base.store import Record, Store
from jostle.base.table import Row, Tabular
from jostle.training.recipe import check_same

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COUNTS = ("passes", "halvings", "seconds", "training_seconds", "probe_seconds")
"""Columns about the cost of a measurement, beside the numbers that it found."""


class ProbeLog(Tabular):
    """One row for each measured step, and notes on steps that were skipped, halved, failed or set aside.

    The file has one JSON line for each row and each note, in the order of writing. Each line is flushed to disk at
    once; a line that a kill left incomplete is dropped when the file is opened again. A restarted training may take
    another path. Then a line says so, and the rows of the old path from that step on are set aside: they stay in the
    file, but are no longer read.

    Arguments:
        path: the file, which need not exist yet; None to keep everything in memory only.
    """

    def __init__(self, path: str | Path | None = None) -> None:
        self._store = None if path is None else Store(path)
        self._pending: dict[str, Record] = {}
        self._path_number = 1
        self._settings: dict[str, Any] | None = None
        self._quantity = "sensitivity"
        self._rows: dict[int, Record] = {}
        self._notes: dict[str, tuple[int, str]] = {}
        for key in self._store or ():
            assert self._store is not None
            self._take(key, self._store[key])

    @classmethod
    def read(cls, path: str | Path) -> "ProbeLog":
        """The log in a file, of a run that has ended or is still running."""
        if not Path(path).exists():
            raise UsageError(f"log {path} does not exist; give the file that a probe writes to, its log=")
        return cls(path)

    @property
    def history(self) -> dict[str, NDArray[np.float64]]:
        """Columns with one number for each measured step, NaN if there is none; ``step`` comes first."""
        rows = [self._rows[step] for step in sorted(self._rows)]
        names = list(dict.fromkeys(name for row in rows for name in row["numbers"]))
        columns = {"step": [row["step"] for row in rows]}
        columns |= {name: [row["numbers"].get(name) for row in rows] for name in names}
        columns |= {name: [row[name] for row in rows] for name in COUNTS}
        return {name: _floats(column) for name, column in columns.items()}

    def rows(self, of: str = "result") -> list[Row]:  # noqa: ARG002 - there is one table
        """A row for each measured step, with the columns of ``history``."""
        columns = {name: column.tolist() for name, column in self.history.items()}
        return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]

    def __str__(self) -> str:
        steps = self.history["step"]
        return f"{self._quantity} at {len(steps)} step{'' if len(steps) == 1 else 's'}" + "".join(
            f"\n  {note}" for note in self.notes
        )

    @property
    def notes(self) -> list[str]:
        """Notes for a reader of the curves, in the order of steps."""
        return [f"step {step}: {text}" for step, text in sorted(self._notes.values(), key=lambda note: note[0])]

    @property
    def settings(self) -> dict[str, Any]:
        """What was measured, on which inputs, and how."""
        return dict(self._settings or {})

    def plot(self, *columns: str, title: str | None = None, log_x: bool = False, log_y: bool = False) -> "Figure":
        """Draw columns over steps, each with its interval as a band if it has one; by default the sensitivity."""
        from jostle.figures import Series, curves

        history = self.history
        if not len(history["step"]):
            raise UsageError("nothing is measured yet, so there is nothing to plot; call the probe in the loop first")
        chosen = columns or (self._quantity,)
        for name in chosen:
            checks.choice("column", name, history)
        series = [Series(name, history["step"], history[name], *self._band(name, history)) for name in chosen]
        return curves(series, x_label="step", y_label=", ".join(chosen), title=title, log_x=log_x, log_y=log_y)

    def _band(self, name: str, history: Mapping[str, NDArray[np.float64]]) -> tuple[NDArray[np.float64], ...]:
        prefix = "" if name == self._quantity else f"{name}."
        ends = f"{prefix}low", f"{prefix}high"
        return tuple(history[end] for end in ends) if all(end in history for end in ends) else ()

    def row(self, step: int) -> Record | None:
        """The row of ``step``; None if it was not measured."""
        return self._rows.get(step)

    @property
    def last(self) -> Record | None:
        """The row of the largest step."""
        return self._rows[max(self._rows)] if self._rows else None

    def check(self, definition: Mapping[str, Any]) -> None:
        """Raise unless the rows of the file were measured in this way."""
        if self._settings is not None:
            assert self._store is not None
            check_same(self._settings["definition"], json.loads(json.dumps(definition)), self._store.path)

    def begin(self, settings: Mapping[str, Any]) -> None:
        """Write the settings, unless the file has them."""
        if self._settings is None:
            self._write("settings", {"kind": "settings", **settings})

    def add_row(self, record: Record) -> None:
        """Write the row of a step."""
        self._write(f"{self._path_number}/{record['step']}", {"kind": "row", **record})

    def add_note(self, step: int, text: str, about: str) -> None:
        """Write why a step has no row, or one of less precision; once for each step and each ``about``."""
        key = f"{self._path_number}/{step}/{about}"
        if key not in self._notes:
            self._write(key, {"kind": "note", "step": step, "note": text})

    def fork(self, step: int, why: str) -> None:
        """Set the rows from ``step`` on aside, because they belong to another path of the training."""
        self._write(f"path {self._path_number + 1}", {"kind": "path", "step": step, "note": why})

    def _write(self, key: str, record: Record) -> None:
        self._take(key, record)
        if self._store is None:
            return
        self._pending[key] = record
        while self._pending:  # lines that a full disk refused earlier come first
            first = next(iter(self._pending))
            self._store.append(first, self._pending[first])
            del self._pending[first]

    def _take(self, key: str, record: Record) -> None:
        kind = record.get("kind") if isinstance(record, dict) else None
        if (kind == "settings") != (self._settings is None) or kind not in ("settings", "row", "note", "path"):
            where = f"log {self._store.path}" if self._store else "the log"
            raise UsageError(f"{where} was not written by a probe (entry {key!r}); give another file")
        if kind == "settings":
            self._settings = {name: value for name, value in record.items() if name != "kind"}
            self._quantity = str(record["quantity"])
        elif kind == "row":
            self._rows[record["step"]] = record
            if record["note"]:
                self._notes[key] = record["step"], record["note"]
        elif kind == "note":
            self._notes[key] = record["step"], record["note"]
        else:
            self._path_number += 1
            self._rows = {step: row for step, row in self._rows.items() if step < record["step"]}
            self._notes = {each: note for each, note in self._notes.items() if note[0] < record["step"]}
            self._notes[key] = record["step"], record["note"]


def _floats(column: list[float | None]) -> NDArray[np.float64]:
    return np.asarray([np.nan if value is None else value for value in column], dtype=np.float64)
