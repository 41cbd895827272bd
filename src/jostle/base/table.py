"""A result as a table: ``to_frame`` for pandas and polars, ``to_csv`` for files, ``_repr_html_`` for notebooks.

A result says which tables it has (``tables``) and makes their rows (``rows``); the rest is here, the same for all.
"""

import csv
import importlib
import io
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from jostle.base import checks
from jostle.base.errors import UsageError
from jostle.base.files import write_text
from jostle.base.notebook import in_frame, table_html
from jostle.base.trackers import send

Row = dict[str, Any]
"""Numbers, texts and None by column; all rows of a table have the same columns."""


class Tabular:
    """A result that becomes a table, or one of several tables.

    The first of ``tables`` is the default: the numbers that printing shows, each with ``low`` and ``high``.
    """

    tables: ClassVar[tuple[str, ...]] = ("result",)

    def rows(self, of: str = "result") -> list[Row]:
        """The rows of one of ``tables``; ``low`` and ``high`` are the ends of the interval of ``value``."""
        raise NotImplementedError

    def to_frame(self, of: str | None = None, backend: str = "pandas") -> Any:
        """A data frame with the columns of ``rows``.

        Arguments:
            of: one of ``tables``; by default the first.
            backend: ``pandas``, or another that narwhals knows, such as ``polars`` or ``pyarrow``.
        """
        columns = columns_of(self._table(of))
        if backend == "pandas":
            return _needed("pandas", backend).DataFrame(columns)
        narwhals = _needed("narwhals", backend)
        try:
            return narwhals.from_dict(columns, backend=backend).to_native()
        except ModuleNotFoundError as error:
            raise UsageError(f"to_frame(backend={backend!r}) needs {error.name}: pip install {error.name}") from None
        except (ValueError, TypeError) as error:
            raise UsageError(f"backend={backend!r}: {' '.join(str(error).split())}") from None

    def to_csv(self, path: str | Path, of: str | None = None) -> None:
        """Write a table as comma-separated values, whole or not at all; nothing stands for no number.

        Arguments:
            path: the file.
            of: one of ``tables``; by default the first.
        """
        write_text(path, csv_text(self._table(of)))

    def numbers(self) -> dict[str, float]:
        """The numbers of the first table by name, such as ``vit/std_2/flip/low``, as trackers take them."""
        found: dict[str, float] = {}
        for row in self._table(None):
            ends = {key: row[key] for key in ("value", "low", "high") if row.get(key) is not None}
            columns = list(row)
            first = columns[: columns.index("value")] if "value" in columns else []
            name = "/".join(part for column in first if (part := _part(column, row[column])))
            found |= {f"{name}/{key}" if name else key: float(number) for key, number in ends.items()}
        return found

    def send_to(self, trackers: Any, step: int = 0) -> None:
        """Send ``numbers()`` to experiment trackers: TensorBoard's ``SummaryWriter``, ``wandb.run``, ``mlflow``, ...

        Arguments:
            trackers: one or several of them.
            step: under which the numbers are kept, for example of the training.
        """
        send(trackers, self.numbers(), step)

    def _repr_html_(self) -> str:
        """For notebooks: the text that printing shows, and the first table."""
        return in_frame(str(self), table_html(self._table(None)))

    def _table(self, of: str | None) -> list[Row]:
        chosen = self.tables[0] if of is None else of
        checks.choice("of", chosen, self.tables)
        return self.rows(chosen)


def columns_of(rows: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """Rows as columns; no rows have no columns.

    >>> columns_of([{"bit": 0, "value": 0.5}, {"bit": 1, "value": 0.25}])
    {'bit': [0, 1], 'value': [0.5, 0.25]}
    """
    return {name: [row[name] for row in rows] for name in (rows[0] if rows else ())}


def csv_text(rows: Sequence[Mapping[str, Any]]) -> str:
    """Rows as comma-separated values with a line of names.

    >>> print(csv_text([{"model": "a, b", "value": 0.5, "low": float("nan")}]), end="")
    model,value,low
    "a, b",0.5,
    """
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(columns_of(rows))
    writer.writerows([_cell(value) for value in row.values()] for row in rows)
    return file.getvalue()


def _part(column: str, value: Any) -> str:
    """One column as a part of the name of a number."""
    if value is None or value == "":
        return ""
    if column == "against" or isinstance(value, int | float):
        return f"{column}_{value}" if isinstance(value, str) else f"{column}_{value:g}"
    return str(value)


def _cell(value: Any) -> Any:
    return "" if value is None or (isinstance(value, float) and math.isnan(value)) else value


def _needed(package: str, backend: str) -> Any:
    try:
        return importlib.import_module(package)
    except ModuleNotFoundError:
        raise UsageError(
            f'to_frame(backend={backend!r}) needs {package}: pip install "jostle[tables]"; rows() needs nothing'
        ) from None
