"""The records of a study as its figures and expectations read them."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic

from jostle.base.errors import UsageError
from jostle.base.registry import unknown_name
from jostle.base.store import Record
from jostle.studies.settings import AnySettings

if TYPE_CHECKING:
    from jostle.studies.study import Cell


class Records(Generic[AnySettings]):
    """Finished cells with their records, in the order of the study whatever order they were finished in.

    Arguments:
        cells: the cells.
        records: their records, by key.
        settings: under which they were made.
        scale: ``smoke``, ``small`` or ``paper``.
    """

    def __init__(
        self, cells: Sequence["Cell"], records: Mapping[str, Record], settings: AnySettings, scale: str
    ) -> None:
        self.cells = tuple(cells)
        self.settings, self.scale = settings, scale
        self._records = {cell.key: records[cell.key] for cell in cells}

    def __len__(self) -> int:
        return len(self.cells)

    def __iter__(self) -> Iterator[tuple["Cell", Record]]:
        return ((cell, self._records[cell.key]) for cell in self.cells)

    def __getitem__(self, key: str) -> Record:
        return self._records[key]

    def where(self, **values: Any) -> "Records[AnySettings]":
        """The records of the cells with these values."""
        for name in values:
            self._check(name)
        kept = [cell for cell in self.cells if all(cell.values.get(name) == value for name, value in values.items())]
        return Records(kept, self._records, self.settings, self.scale)

    def distinct(self, name: str) -> list[Any]:
        """The different values called ``name``, in order of appearance."""
        self._check(name)
        return list(dict.fromkeys(cell.values[name] for cell in self.cells if name in cell.values))

    def column(self, field: str) -> list[Any]:
        """One field of every record."""
        return [self._field(cell, field) for cell in self.cells]

    def by(self, name: str, field: str) -> dict[Any, Any]:
        """One field of every record, by the cell's value called ``name``, which must tell the cells apart.

        ``records.where(model="vit").by("seed", "sensitivity")`` is what a comparison paired over seeds takes.
        """
        found: dict[Any, Any] = {}
        for cell in self.cells:
            self._check(name)
            value = cell.values[name]
            if value in found:
                raise UsageError(f"more than one cell has {name}={value!r} (one is {cell.key}); narrow it with where")
            found[value] = self._field(cell, field)
        return found

    def one(self, **values: Any) -> Record:
        """The record of the only cell with these values."""
        found = self.where(**values)
        if len(found) != 1:
            raise UsageError(f"{len(found)} cells have {values}; expected exactly one")
        return found[found.cells[0].key]

    def _check(self, name: str) -> None:
        known = {known for cell in self.cells for known in cell.values}
        if self.cells and name not in known:
            raise unknown_name("value of a cell", name, known)

    def _field(self, cell: "Cell", field: str) -> Any:
        record = self._records[cell.key]
        if field not in record:
            raise unknown_name(f"field of the record {cell.key}", field, record)
        return record[field]
