"""Tables: rows with named columns of numbers and categories, from frames of pandas or polars or from csv files.

A ``DataTable`` holds numbers, as models of torch take them, and can write rows as the frame it came from, as pipelines
of scikit-learn take them. Neither pandas nor polars is imported: a frame brings its own library with it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from jostle.base.errors import UsageError

Floats = NDArray[np.float64]
TEXT_COLUMNS = ("text", "sentence", "review", "prompt")


@dataclass(frozen=True, eq=False)
class Column:
    """What one column holds.

    Arguments:
        name: of the column.
        dtype: of the frame's own column; None for a file.
        is_whole: whether it holds whole numbers only, so that a value that stays whole is written as such.
        categories: its different values, in sorted order, if they are no numbers; a cell is then the number of one.
    """

    name: str
    dtype: Any = None
    is_whole: bool = False
    categories: tuple[Any, ...] | None = None

    def values(self, cells: Floats) -> Any:
        """Cells as the frame holds them."""
        if self.categories is not None:
            return [self.categories[round(cell)] for cell in cells.tolist()]
        is_same = self.is_whole and bool((cells == np.round(cells)).all())
        return cells.astype(self.dtype) if is_same and isinstance(self.dtype, np.dtype) else cells


@dataclass(frozen=True, eq=False)
class DataTable:
    """Rows of numbers with named columns; ``jostle.measure`` takes it, and frames, which become one.

    >>> table = DataTable.of_columns({"height": [1.8, 1.6], "city": ["Rome", "Bern"]})
    >>> table.inputs.tolist(), table.columns[1].categories
    ([[1.8, 1.0], [1.6, 0.0]], ('Bern', 'Rome'))

    Arguments:
        inputs: (rows, columns) of float64; a category is the number of its value.
        columns: what each column holds.
        frame: the class of the frame that it came from, called with a dictionary of columns; None for a file.
    """

    inputs: Tensor
    columns: tuple[Column, ...]
    frame: Any = field(default=None, repr=False)

    def __len__(self) -> int:
        return len(self.inputs)

    def __getitem__(self, rows: slice) -> "DataTable":
        return replace(self, inputs=self.inputs[rows])

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(column.name for column in self.columns)

    @property
    def is_category(self) -> NDArray[np.bool_]:
        """(columns,) true for columns that hold no numbers."""
        return np.asarray([column.categories is not None for column in self.columns])

    @classmethod
    def of(cls, frame: Any) -> "DataTable":
        """The table in a frame of pandas or polars."""
        made = cls.of_columns({str(name): frame[name] for name in frame.columns})
        return cls(made.inputs, made.columns, type(frame))

    @classmethod
    def of_columns(cls, columns: dict[str, Any]) -> "DataTable":
        """A table from columns by name: arrays, lists or columns of a frame."""
        read = [_read(name, values) for name, values in columns.items()]
        if not read or not len(read[0][1]):
            raise UsageError("the table is empty: there is nothing to measure")
        numbers = np.stack([cells for _, cells in read], axis=1)
        bad = np.argwhere(~np.isfinite(numbers))
        if len(bad):
            row, column = bad[0]
            raise UsageError(
                f"column {read[column][0].name!r} has {int((bad[:, 1] == column).sum()):,} missing or infinite values "
                f"(first: row {row}); fill them or leave these rows out"
            )
        return cls(torch.from_numpy(numbers), tuple(column for column, _ in read))

    def framed(self, rows: Tensor) -> Any:
        """Rows of numbers as the frame that the table came from."""
        cells = rows.detach().cpu().double().numpy()
        return self.frame({column.name: column.values(cells[:, at]) for at, column in enumerate(self.columns)})


def _read(name: str, values: Any) -> tuple[Column, Floats]:
    """A column and its cells as numbers."""
    array = values.to_numpy() if hasattr(values, "to_numpy") else np.asarray(values)
    if array.ndim != 1:
        raise UsageError(f"column {name!r} holds arrays of shape {array.shape[1:]}; expected one value a row")
    if array.dtype.kind in "biuf":
        column = Column(name, array.dtype, array.dtype.kind in "biu")
        return column, array.astype(np.float64)
    if array.dtype.kind in "mM":
        raise UsageError(f"column {name!r} holds times: turn it into numbers, or leave it out")
    listed = array.tolist()
    if all(one is None or isinstance(one, int | float) for one in listed):  # numbers with gaps
        return Column(name), np.asarray([np.nan if one is None else one for one in listed], dtype=np.float64)
    wrong = next((one for one in listed if one is not None and not isinstance(one, str | bool | int | float)), None)
    if wrong is not None:
        raise UsageError(f"column {name!r} holds {type(wrong).__name__}; expected numbers or names of categories")
    kinds = tuple(sorted(set(listed), key=lambda one: (one is None, str(one))))
    places = {one: number for number, one in enumerate(kinds)}
    cells = np.asarray([places[one] for one in listed], dtype=np.float64)
    return Column(name, categories=kinds), cells


def is_frame(source: Any) -> bool:
    """Whether this is a frame of pandas or polars: named columns, and numbers that numpy can read."""
    return hasattr(source, "columns") and hasattr(source, "to_numpy") and hasattr(source, "__getitem__")


def column_of_texts(source: Any) -> Any:
    """The texts in a column of texts, or in the only such column of a frame or a dataset; anything else as it is."""
    names = getattr(source, "column_names", None)  # a dataset of Hugging Face
    if isinstance(names, list) and "input_ids" not in names:
        return _texts_of(source, names)
    if is_frame(source):
        return _texts_of(source, list(source.columns))
    is_column = isinstance(source, np.ndarray) and source.dtype.kind in "UTO"
    if is_column or (hasattr(source, "to_list") and hasattr(source, "to_numpy")):
        listed = source.tolist() if isinstance(source, np.ndarray) else source.to_list()
        return listed if listed and all(isinstance(one, str) for one in listed) else source
    return source


def _texts_of(source: Any, names: Sequence[str]) -> Any:
    texts = [name for name in names if len(source) and isinstance(source[name][0], str)]
    usual = [name for name in TEXT_COLUMNS if name in texts]
    if len(texts) > 1 and not usual:
        raise UsageError(
            f"which column holds the texts? There are {', '.join(map(repr, texts))}: give one of them, for example "
            f"inputs[{texts[0]!r}]"
        )
    return list(source[(usual or texts)[0]]) if texts else source
