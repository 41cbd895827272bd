"""Tables of your own: a .csv or .tsv file of numbers and categories, with the names of its columns in the first line.

As a spec: ``csv:FILE``, if it has no column of texts. A small file is read whole, as a ``DataTable``. Of a large one
only the place of each row is kept, 8 bytes a row, and rows are read when they are needed: a ``TableFile``.
"""

import importlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import overload

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from jostle.base.errors import UsageError
from jostle.base.registry import unknown_name
from jostle.data.table import Column, DataTable
from jostle.data.text_csv import read_rows
from jostle.data.text_tables import number_labels

LARGE = 2**28  # bytes of a file that is not read whole
_LABELS = ("label", "labels", "target", "class", "y")  # columns that are no inputs, unless another is named


@dataclass(frozen=True, eq=False)
class TableFile:
    """Rows of a file of numbers, read when they are needed: a sequence of tensors that ``measure`` takes.

    Arguments:
        path: the file.
        columns: of the inputs.
        places: of these columns in a row of the file.
        starts: (rows,) the byte at which each row begins.
        dtype: of the numbers.
    """

    path: Path
    columns: tuple[Column, ...]
    places: tuple[int, ...]
    starts: NDArray[np.int64]
    dtype: torch.dtype = torch.float64

    def __len__(self) -> int:
        return len(self.starts)

    @overload
    def __getitem__(self, index: int) -> Tensor: ...
    @overload
    def __getitem__(self, index: slice) -> "TableFile": ...
    def __getitem__(self, index: int | slice) -> "Tensor | TableFile":
        if isinstance(index, slice):
            return replace(self, starts=self.starts[index])
        with self.path.open("rb") as file:
            file.seek(int(self.starts[index]))
            line = file.readline()
        return torch.tensor(_numbers(line, self.path, index, self.places, self.names), dtype=self.dtype)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(column.name for column in self.columns)


def load_table(
    path: str | Path, *, label: str | None = None, names: Sequence[str] = (), limit: int | None = None
) -> tuple[DataTable | TableFile, Tensor | None, list[str]]:
    """The inputs in a file, the class of each row if there is a column of labels, and what people should know.

    Arguments:
        path: a file that ends in .csv (commas or semicolons) or .tsv (tabs), and perhaps .gz.
        label: the column of labels; by default the one called label, labels, target, class or y, if there is one.
        names: of the model's classes in the order of its outputs, for labels that are words.
        limit: use only this many rows, the first ones.
    """
    path = Path(path).expanduser()
    if path.is_file() and path.stat().st_size > LARGE and path.suffix != ".gz":
        return _open_large(path, label, names, limit)
    rows = read_rows(path)
    header = next(rows, [])
    place = _label_place(header, label, path)
    cells = []
    for number, row in enumerate(rows, start=1):
        if limit is not None and number > limit:
            break
        _check_width(row, header, path, number)
        cells.append(row)
    if not cells:
        raise UsageError(f"{path} holds no rows below its line of names")
    columns = dict(zip(header, zip(*cells, strict=True), strict=True))
    labels = columns.pop(header[place]) if place is not None else None
    if len(columns) < len(header) - (place is not None):
        raise UsageError(f"{path} has two columns of one name: rename one")
    if not columns:
        raise UsageError(f"{path} holds labels and no other column")
    table = DataTable.of_columns({name: _as_numbers(values) for name, values in columns.items()})
    if table.is_category.any():
        table = DataTable(table.inputs, table.columns, _frame_class(path, table))
    return table, *_numbered(labels, path, header[place] if place is not None else "", names)


def is_table(path: str | Path) -> bool:
    """Whether a file has no column called text and some column of numbers, judged by its first row."""
    rows = read_rows(Path(path).expanduser())
    header, first = next(rows, []), next(rows, [])
    return "text" not in header and any(_is_number(cell) for cell in first)


def _open_large(
    path: Path, label: str | None, names: Sequence[str], limit: int | None
) -> tuple[TableFile, Tensor | None, list[str]]:
    starts, labels = list[int](), list[str]()
    with path.open("rb") as file:
        header = _cells(file.readline(), path)
        place = _label_place(header, label, path)
        kept = tuple(at for at in range(len(header)) if at != place)
        columns = tuple(Column(header[at]) for at in kept)
        start = file.tell()
        for line in file:
            if limit is not None and len(starts) == limit:
                break
            if line.strip():
                starts.append(start)
                if place is not None:
                    cells = _cells(line, path)
                    _check_width(cells, header, path, len(starts))
                    labels.append(cells[place].strip())
            start += len(line)
    if not starts:
        raise UsageError(f"{path} holds no rows below its line of names")
    found = TableFile(path, columns, kept, np.asarray(starts, dtype=np.int64))
    _ = found[0]
    numbers, notes = _numbered(labels or None, path, header[place] if place is not None else "", names)
    return found, numbers, notes


def _numbered(
    labels: Sequence[str] | None, path: Path, name: str, names: Sequence[str]
) -> tuple[Tensor | None, list[str]]:
    if labels is None:
        return None, []
    try:
        numbers, _, meaning = number_labels([one.strip() for one in labels], path, name, names)
    except UsageError as error:
        return None, [f"no accuracy, because the labels cannot be used: {error}"]
    return torch.tensor(numbers), [meaning] if meaning else []


def _label_place(header: Sequence[str], label: str | None, path: Path) -> int | None:
    if label is not None and label not in header:
        raise unknown_name(f"column of {path}", label, header)
    wanted = [label] if label is not None else [name for name in _LABELS if name in header]
    return header.index(wanted[0]) if wanted else None


def _frame_class(path: Path, table: DataTable) -> object:
    """The class of frames, which carry categories to a model; raises if there is none."""
    try:
        pandas = importlib.import_module("pandas")
    except ImportError:
        held = ", ".join(name for name, is_one in zip(table.names, table.is_category, strict=True) if is_one)
        raise UsageError(f"{path}: columns {held} hold words, which need pandas: pip install pandas") from None
    return pandas.DataFrame


def _as_numbers(cells: Sequence[str]) -> object:
    """A column as numbers if all its cells are numbers or empty, otherwise as words."""
    stripped = [cell.strip() for cell in cells]
    if all(_is_number(cell) or not cell for cell in stripped):
        return np.asarray([float(cell) if cell else np.nan for cell in stripped])
    return np.asarray(stripped, dtype=object)


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _cells(line: bytes, path: Path) -> list[str]:
    try:
        text = line.decode("utf-8-sig").rstrip("\r\n")
    except UnicodeDecodeError:
        raise UsageError(f"{path} is no text in UTF-8") from None
    separator = "\t" if path.suffix != ".csv" else ";" if ";" in text and "," not in text else ","
    return [cell.strip().strip('"') for cell in text.split(separator)]


def _numbers(line: bytes, path: Path, row: int, places: Sequence[int], names: Sequence[str]) -> list[float]:
    cells = _cells(line, path)
    found = []
    for place, name in zip(places, names, strict=True):
        cell = cells[place] if place < len(cells) else ""
        if not _is_number(cell):
            raise UsageError(
                f"{path} row {row + 1}, column {name!r}: {cell!r} is no number, and of so large a file only numbers "
                "are read"
            )
        found.append(float(cell))
    return found


def _check_width(row: Sequence[str], header: Sequence[str], path: Path, number: int) -> None:
    if len(row) != len(header):
        raise UsageError(f"{path} row {number} has {len(row)} columns where the line of names has {len(header)}")
