"""The records of a study as its figures and expectations read them."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from jostle.base.errors import UsageError
from jostle.base.registry import unknown_name
from jostle.studies.settings import Settings

if TYPE_CHECKING:
    from jostle.studies.study import Cell

# Covariant: a function of the records of all studies of trained networks takes those of one of them.
Chosen = TypeVar("Chosen", bound=Settings, covariant=True)
Piece = TypeVar("Piece", bound="Cell", covariant=True)
Found = TypeVar("Found", covariant=True)

Narrower = TypeVar("Narrower", bound="Cell")
Special = TypeVar("Special")
Value = TypeVar("Value")


class Records(Generic[Chosen, Piece, Found]):
    """Finished cells with their records, in the order of the study, whatever order they were finished in.

    ``Records[Figure3Settings, Figure3Cell, Figure3Record]`` are those of a study with these settings, cells and
    records.

    Arguments:
        cells: the cells.
        records: their records, by key.
        settings: under which they were made.
        scale: ``smoke``, ``small`` or ``paper``.
    """

    def __init__(self, cells: Sequence[Piece], records: Mapping[str, Found], settings: Chosen, scale: str) -> None:
        self.cells = tuple(cells)
        self.settings, self.scale = settings, scale
        self._records = {cell.key: records[cell.key] for cell in cells}

    def __len__(self) -> int:
        return len(self.cells)

    def __iter__(self) -> Iterator[tuple[Piece, Found]]:
        return ((cell, self._records[cell.key]) for cell in self.cells)

    def __getitem__(self, key: "str | Cell") -> Found:
        return self._records[key if isinstance(key, str) else key.key]

    def where(self, **values: Any) -> "Records[Chosen, Piece, Found]":
        """The records of the cells with these values."""
        for name in values:
            self._check(name)
        kept = [cell for cell in self.cells if all(cell.values.get(name) == value for name, value in values.items())]
        return Records(kept, self._records, self.settings, self.scale)

    def keep(self, wanted: Callable[[Piece, Found], bool]) -> "Records[Chosen, Piece, Found]":
        """The cells and records that ``wanted`` says yes to."""
        kept = [cell for cell, record in self if wanted(cell, record)]
        return Records(kept, self._records, self.settings, self.scale)

    def of(self, cell_type: type[Narrower], record_type: type[Special]) -> "Records[Chosen, Narrower, Special]":
        """The cells and records of these types, for a study with cells of several kinds."""
        found = {cell: one for cell, one in self if isinstance(cell, cell_type) and isinstance(one, record_type)}
        return Records(list(found), {cell.key: one for cell, one in found.items()}, self.settings, self.scale)

    def distinct(self, name: str) -> list[Any]:
        """The different values called ``name``, in order of appearance."""
        self._check(name)
        return list(dict.fromkeys(cell.values[name] for cell in self.cells if name in cell.values))

    def column(self, read: Callable[[Found], Value]) -> list[Value]:
        """What ``read`` gives for every record."""
        return [read(record) for _, record in self]

    def by(self, name: str, read: Callable[[Found], Value]) -> dict[Any, Value]:
        """What ``read`` gives for every record, by the cell's value called ``name``, which must tell the cells apart.

        ``records.where(network="vit").by("seed", lambda record: record.sensitivity)`` is what a comparison paired over
        seeds takes.
        """
        found: dict[Any, Value] = {}
        for cell, record in self:
            self._check(name)
            value = cell.values[name]
            if value in found:
                raise UsageError(f"more than one cell has {name}={value!r} (one is {cell.key}); narrow it with where")
            found[value] = read(record)
        return found

    def one(self, **values: Any) -> Found:
        """The record of the only cell with these values."""
        found = self.where(**values)
        if len(found) != 1:
            raise UsageError(f"{len(found)} cells have {values}; expected exactly one")
        return found[found.cells[0]]

    def _check(self, name: str) -> None:
        known = {known for cell in self.cells for known in cell.values}
        if self.cells and name not in known:
            raise unknown_name("value of a cell", name, known)
