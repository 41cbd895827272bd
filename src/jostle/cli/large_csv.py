"""csv files that do not fit into memory.

A file above ``LARGE`` bytes is never read whole. A table of numbers is copied, some rows at a time, into a binary file
that is mapped into memory. Of texts, and of tables with words, a small file is made: the first rows with ``--limit``,
otherwise rows drawn at random from all of them, the same ones each time. What the rows are is said below the result.
"""

import array
import contextlib
import csv
import gzip
import heapq
import itertools
import tempfile
import zlib
from collections.abc import Generator, Iterator, Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from jostle.base.errors import UsageError
from jostle.base.randomness import Stream
from jostle.base.registry import unknown_name
from jostle.cli.mapped import mapped
from jostle.data import table_file
from jostle.data.table import Column, DataTable
from jostle.data.text_tables import number_labels

DRAWN = 20_000  # rows of a file that is not read whole
_PACKED = 4  # how many times larger a file is than its gzip, at least often
_LONGEST = 2**24  # characters of a cell; more is a quotation mark that was not closed
_AT_ONCE = 1024  # rows
_MOST_LABELS = 10_000  # different ones; more are no classes
_FIRST_NAMES = ("label", "labels", "target", "class", "y")  # columns of labels that need not be named


def is_large(file: str | Path) -> bool:
    """Whether a file is too large to be read whole."""
    path = Path(file).expanduser()
    if not path.is_file():
        return False
    return path.stat().st_size * (_PACKED if path.suffix == ".gz" else 1) > table_file.LARGE


def check_ordinary(file: str | Path, prefix: str = "csv:") -> None:
    """Raise for a pipe or a device, which may never end; a file that is not there is found out by its reader."""
    path = Path(file).expanduser()
    if path.exists() and not path.is_file() and not path.is_dir():
        raise UsageError(f"--data {prefix}{file}: it is no ordinary file")


def first_rows(file: str | Path, count: int = 2, quoted: str | None = None) -> list[list[str]]:
    """The line of names and the rows below it, ``count`` lines in all; little more than these is read."""
    path = Path(file).expanduser()
    with contextlib.closing(_rows(path, quoted)) as rows:
        return list(itertools.islice(rows, count))


@contextlib.contextmanager
def small_file(
    file: str | Path, limit: int | None = None, quoted: str | None = None, count: int = DRAWN
) -> Iterator[tuple[Path, list[str]]]:
    """A file that can be read whole, for as long as the context lasts, and what is to be said about it.

    The file itself, if it is not large. Otherwise one with some of its rows, in their order.

    Arguments:
        file: as people name it.
        limit: take the first rows, so many.
        quoted: whether quotation marks wrap fields, ``true`` or ``false``; if left out, in .csv files only.
        count: how many rows are drawn without a limit.
    """
    path = Path(file).expanduser()
    check_ordinary(file)
    if not is_large(path):
        yield path, []
        return
    with tempfile.TemporaryDirectory(prefix="jostle-") as folder:
        copy = Path(folder) / f"{path.name.removesuffix('.gz')}.gz"  # packed: that is read whole, whatever its size
        rows = _rows(path, quoted)
        header = next(rows, [])
        seen, kept = _draw(rows, count) if limit is None else _head(rows, limit)
        _write(copy, [header, *kept], wraps=_wraps(path, quoted))
        drawn = f"{len(kept):,} of its {seen:,} rows, drawn at random and numbered anew"
        notes = [f"{path.name} is not read whole: {drawn}, stand for all"]
        try:
            yield copy, notes if limit is None else []
        except UsageError as error:
            which = f"{path} (of its rows, {len(kept):,} drawn at random)" if limit is None else str(path)
            raise UsageError(str(error).replace(str(copy), which)) from None


def _head(rows: Iterator[list[str]], limit: int) -> tuple[int, list[list[str]]]:
    kept = list(itertools.islice(rows, limit))
    return len(kept), kept


def _draw(rows: Iterator[list[str]], count: int) -> tuple[int, list[list[str]]]:
    """How many rows there are, and ``count`` of them without replacement: those with the smallest random numbers."""
    stream, seen, kept = Stream(0, "rows of a large file"), 0, list[tuple[float, int, list[str]]]()
    while part := list(itertools.islice(rows, _AT_ONCE)):
        numbers = np.arange(seen, seen + len(part))
        zeros = np.zeros_like(numbers)
        for number, key, row in zip(
            numbers.tolist(), stream.uniforms(numbers, zeros, zeros, 1)[:, 0], part, strict=True
        ):
            if len(kept) < count:
                heapq.heappush(kept, (-key, number, row))
            elif -key > kept[0][0]:
                heapq.heapreplace(kept, (-key, number, row))
        seen += len(part)
    return seen, [row for _, _, row in sorted(kept, key=lambda one: one[1])]


def open_table(
    file: str | Path,
    label: str | None = None,
    names: Sequence[str] = (),
    limit: int | None = None,
    dtype: torch.dtype | None = None,
) -> tuple[DataTable, Tensor | None, list[str]] | None:
    """A large file of numbers as a table outside of memory, the class of each row, and what is to be said.

    None if it holds words or is packed.

    Arguments:
        file: as people name it.
        label, names, limit: as for ``jostle.data.table_file.load_table``.
        dtype: of the numbers; float64 if left out.
    """
    path = Path(file).expanduser()
    header, *first = first_rows(path)
    place = _label_place(header, label, path)
    kept = [at for at in range(len(header)) if at != place]
    if path.suffix == ".gz" or not first or not all(is_number(first[0][at]) for at in kept if at < len(first[0])):
        return None
    columns = [header[at] for at in kept]
    numbers = mapped((_most_rows(path, limit), len(kept)), dtype or torch.float64)
    codes, known, filled = array.array("i"), dict[str, int](), 0
    for rows in _parts(path, header, limit):
        if place is not None and len(known) <= _MOST_LABELS:
            codes.extend(known.setdefault(row[place].strip(), len(known)) for row in rows)
        cells = [[row[at] for at in kept] for row in rows]
        numbers[filled : filled + len(rows)] = torch.from_numpy(
            _as_numbers(cells, path, filled, [header[at] for at in kept])
        )
        filled += len(rows)
    table = DataTable(numbers[:filled], tuple(map(Column, columns)))
    if place is None:
        return table, None, []
    try:
        if len(known) > _MOST_LABELS:
            raise UsageError(f"column {header[place]!r} holds more than {_MOST_LABELS:,} different ones")
        written, _, meaning = number_labels(list(known), path, header[place], names)
    except UsageError as error:
        return table, None, [f"no accuracy, because the labels cannot be used: {error}"]
    labels = torch.tensor(written)[torch.frombuffer(codes, dtype=torch.int32)]
    return table, labels, [meaning] if meaning else []


def _most_rows(path: Path, limit: int | None) -> int:
    """As many rows as a file can have by its ends of lines, at most ``limit``."""
    with path.open("rb") as file:
        count = sum(part.count(b"\n") for part in iter(lambda: file.read(2**20), b""))
    return count if limit is None else min(count, limit)


def _parts(path: Path, header: Sequence[str], limit: int | None) -> Iterator[list[list[str]]]:
    """The rows below the line of names, some at a time; raises if one has more or fewer columns than that line."""
    with contextlib.closing(_rows(path)) as rows:
        next(rows)
        first, seen = itertools.islice(rows, limit), 0
        while part := list(itertools.islice(first, _AT_ONCE)):
            wrong = next((at for at, row in enumerate(part) if len(row) != len(header)), None)
            if wrong is not None:
                raise UsageError(
                    f"{path} row {seen + wrong + 1} has {len(part[wrong])} columns where the line of names has "
                    f"{len(header)}"
                )
            yield part
            seen += len(part)


def _as_numbers(cells: list[list[str]], path: Path, seen: int, names: Sequence[str]) -> NDArray[np.float64]:
    """Cells as numbers, which must be finite; ``seen`` rows were before them."""
    try:
        numbers = np.asarray(cells, dtype=np.float64)
    except ValueError:  # one of them is no number
        numbers = np.asarray([[float(cell) if is_number(cell) else np.nan for cell in row] for row in cells])
    for row, column in np.argwhere(~np.isfinite(numbers)):
        raise UsageError(
            f"{path} row {seen + row + 1}, column {names[column]!r}: {cells[row][column]!r} is no finite number, as "
            "it is in the first row; fill it, or leave the row out"
        )
    return numbers


def _label_place(header: Sequence[str], label: str | None, path: Path) -> int | None:
    if label is not None and label not in header:
        raise unknown_name(f"column of {path}", label, header)
    wanted = [label] if label is not None else [name for name in _FIRST_NAMES if name in header]
    return header.index(wanted[0]) if wanted else None


def is_number(cell: str) -> bool:
    """Whether a cell holds a number."""
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _suffix(path: Path) -> str:
    return Path(path.stem).suffix if path.suffix == ".gz" else path.suffix


def _separator(path: Path, first: str = "") -> str:
    """What stands between columns, judged by the first line of a file."""
    if _suffix(path) != ".csv":
        return "\t"
    return ";" if ";" in first and "," not in first else ","


def _wraps(path: Path, quoted: str | None) -> bool:
    """Whether quotation marks wrap cells."""
    return _suffix(path) == ".csv" if quoted is None else quoted.lower() == "true"


def _write(path: Path, rows: list[list[str]], *, wraps: bool) -> None:
    separator = _separator(path)
    with gzip.open(path, "wt", compresslevel=1, encoding="utf-8", newline="") as file:
        if wraps:
            csv.writer(file, delimiter=separator, lineterminator="\n").writerows(rows)
        else:  # then no cell holds a separator or the end of a line
            file.writelines(separator.join(row) + "\n" for row in rows)


def _rows(path: Path, quoted: str | None = None) -> Generator[list[str], None, None]:
    """The rows of a large file, the line of names first, a few in memory at a time; blank lines are left out."""
    if _suffix(path) not in (".csv", ".tsv", ".tab", ".txt"):
        raise UsageError(f"{path} must end in .csv (commas) or .tsv (tabs), and perhaps .gz")
    opened = gzip.open if path.suffix == ".gz" else open
    seen = 0
    try:
        with opened(path, "rt", encoding="utf-8-sig", newline="") as lines:
            separator = _separator(path, lines.readline(_LONGEST))
            lines.seek(0)
            mark = '"' if _wraps(path, quoted) else None
            reader = csv.reader(lines, delimiter=separator, quotechar=mark, strict=True)
            while part := _part(reader):
                yield from filter(None, part)
                seen += len(part)
    except csv.Error as error:
        raise UsageError(
            f"{path} cannot be read after row {seen:,} ({error}); is a quotation mark not closed?"
        ) from None
    except UnicodeDecodeError as error:
        found = f"byte 0x{error.object[error.start]:02x}"
        raise UsageError(f"{path} is not UTF-8 after row {seen:,} ({found}); save the file as UTF-8") from None
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise UsageError(f"{path} is damaged or cut short ({error}); get it again") from None
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror or error}") from None


def _part(reader: Iterator[list[str]]) -> list[list[str]]:
    before = csv.field_size_limit(_LONGEST)  # of the whole process, so it is put back before anything else happens
    try:
        return list(itertools.islice(reader, _AT_ONCE))
    finally:
        csv.field_size_limit(before)
