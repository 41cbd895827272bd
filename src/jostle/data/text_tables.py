"""Files of labelled texts: rows of comma- or tab-separated columns, packed by gzip or not, in UTF-8, and their labels.

A quotation mark has one of two meanings. In ``quoted`` files it wraps a field that may hold separators and line ends
(RFC 4180, as spreadsheets and pandas write it). Elsewhere it is a character like any other, as in the tab-separated
files of MRPC and Quora, which a reader of quoted files would garble.
"""

import csv
import gzip
import io
import re
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from jostle.base.errors import UsageError

_MANY_CLASSES = 100
_LISTED = 10  # words that a message lists
_NO_NAME = r"LABEL_[0-9]+"  # transformers' name for a class that nobody named


@dataclass(frozen=True, eq=False)
class LabelledRows:
    """Texts and labels of a file, and a note on rows that were left out.

    Arguments:
        texts: for each row kept, a tuple of its texts.
        labels: # (rows,) of int64.
        note: what was left out or replaced, in words; empty if nothing was.
    """

    texts: tuple[tuple[str, ...], ...]
    labels: NDArray[np.int64]
    note: str = ""


def read_pairs(path: Path, columns: int, texts: tuple[int, ...], header: tuple[str, ...] = ()) -> LabelledRows:
    """Pairs with a label 0 or 1 from a tab-separated file without quoting.

    A row with another number of columns or another label is left out and counted; bytes that are not UTF-8 become
    U+FFFD, and such rows are counted too. Nothing but a line feed ends a row: other line ends occur inside texts.

    Arguments:
        path: the file.
        columns: how many a row has; the first is the label.
        texts: which of them are the texts, counted from 0.
        header: the names in the first line; empty if there is none.
    """
    lines = read_bytes(path).decode("utf-8-sig", errors="replace").split("\n")
    rows = [line.removesuffix("\r") for line in lines]
    if header:
        found = tuple(rows.pop(0).split("\t"))
        if found != header:
            raise UsageError(f"{path} row 0 reads {found[:6]}; expected the columns {', '.join(header)}")
    kept = [cut for row in rows if len(cut := row.split("\t")) == columns and cut[0] in ("0", "1")]
    written = sum(bool(row) for row in rows)
    if not kept:
        raise UsageError(
            f"{path} holds no row as expected: {columns} columns with tabs between them, of which the first is the "
            f"label 0 or 1 (rows: {written:,})"
        )
    replaced = sum(any("\ufffd" in cut[column] for column in texts) for cut in kept)
    bad = written - len(kept)
    notes = [
        f"{bad:,} of {written:,} rows left out: not {columns} columns with a label 0 or 1" if bad else "",
        f"{replaced:,} of {len(kept):,} rows hold characters that are not UTF-8, replaced by U+FFFD"
        if replaced
        else "",
    ]
    pairs = tuple(tuple(cut[column] for column in texts) for cut in kept)
    labels = np.array([int(cut[0]) for cut in kept], dtype=np.int64)
    return LabelledRows(pairs, labels, "; ".join(filter(None, notes)))


def read_bytes(path: Path) -> bytes:
    """The contents of a file, unpacked if its name ends in .gz."""
    try:
        raw = path.read_bytes()
        return gzip.decompress(raw) if path.suffix == ".gz" else raw
    except FileNotFoundError:
        raise UsageError(f"{path} does not exist; give the path of a .csv or .tsv file, packed (.gz) or not") from None
    except EOFError:
        raise UsageError(f"{path} is cut short: its gzip stream has no end; get it again") from None
    except (gzip.BadGzipFile, zlib.error) as error:
        raise UsageError(f"{path} is damaged or no gzip file ({error})") from None
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror or error}") from None


def decode(raw: bytes, path: Path) -> str:
    """The text of a file in UTF-8, without its byte order mark."""
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        found = f"byte 0x{error.object[error.start]:02x}"
        raise UsageError(f"{path} line {line} is not UTF-8 ({found}); save the file as UTF-8") from None


def split_rows(text: str, delimiter: str, quoted: bool, path: Path) -> Iterator[list[str]]:
    """The rows of a file, each a list of columns; blank lines are left out.

    Arguments:
        text: the whole file.
        delimiter: what separates columns.
        quoted: whether a quotation mark wraps a field.
        path: where it came from, for error messages.
    """
    lines, rows = io.StringIO(text, newline=""), []
    # Not the default limit of 131,072 characters, which a long document exceeds. The limit is of the whole process, so
    # it is put back before anything else happens.
    before = csv.field_size_limit(max(len(text), 1))
    try:
        # A quotation mark that is a character like any other: for csv, none that it knows.
        for found in csv.reader(lines, delimiter=delimiter, quotechar='"' if quoted else None, strict=True):
            rows.append(found)  # noqa: PERF402 - on an error the rows before it are counted
    except csv.Error as error:
        count = sum(map(bool, rows))
        where = f"row {count}" if count else "the header"
        raise UsageError(f"{path} {where} cannot be read ({error}); is a quotation mark not closed?") from None
    finally:
        csv.field_size_limit(before)
    return (found for found in rows if found)


def number_labels(
    written: Sequence[str], path: Path, column: str, names: Sequence[str] = ()
) -> tuple[list[int], int, str]:
    """Labels as numbers, the number of classes, and what the numbers mean if the file does not show it.

    Whole numbers from 0 are the classes. Other labels are looked up in ``names``, whatever their case, if names are
    given; else they are numbered in their sorted order.

    >>> number_labels(["good", "bad", "good"], Path("a.csv"), "label")
    ([1, 0, 1], 2, 'labels: 0 = bad, 1 = good')
    >>> number_labels(["good", "bad", "good"], Path("a.csv"), "label", names=["Good", "Bad"])
    ([0, 1, 0], 2, '')

    Arguments:
        written: the label of each row as the file has it.
        path, column: of the labels, for messages.
        names: of the model's classes, in the order of its outputs; empty if unknown.
    """
    distinct = set(written)
    if all(re.fullmatch(r"[0-9]{1,9}", label) for label in distinct):
        largest = max(map(int, distinct))
        _check_largest(largest, len(written), f"{path} column {column!r}", names)
        return [int(label) for label in written], len(names) or largest + 1, ""
    known = {name.strip().casefold(): place for place, name in enumerate(names)}
    if known and all(label.casefold() in known for label in distinct):
        return [known[label.casefold()] for label in written], len(names), ""
    if names and not all(re.fullmatch(_NO_NAME, name) for name in names):
        foreign = min(label for label in distinct if label.casefold() not in known)
        raise UsageError(
            f"{path} column {column!r} holds the label {foreign!r}, the model's classes are {_list(names)}: write "
            f"these, or their numbers from 0 to {len(names) - 1}"
        )
    return _number_sorted(written, f"{path} column {column!r}", len(names))


def _number_sorted(written: Sequence[str], where: str, most: int) -> tuple[list[int], int, str]:
    """Number words, and numbers that do not begin at 0, in their sorted order."""
    distinct = set(written)
    if all(re.fullmatch(r"[+-]?[0-9]{1,9}", label) for label in distinct):
        ordered = sorted(distinct, key=lambda label: (int(label), label))
    else:
        ordered = sorted(distinct)
    if most and len(ordered) > most:
        raise UsageError(f"{where} holds {len(ordered)} labels, the model has {most} classes: is it the right column?")
    number = {name: place for place, name in enumerate(ordered)}
    shown = [f"{place} = {name}" for name, place in number.items()]
    return [number[label] for label in written], most or len(ordered), f"labels: {_list(shown)}"


def _check_largest(largest: int, rows: int, where: str, names: Sequence[str]) -> None:
    if names and largest >= len(names):
        raise UsageError(
            f"{where} has a label {largest}, the model has classes 0 to {len(names) - 1}: is it the column of labels?"
        )
    if largest + 1 > max(rows, _MANY_CLASSES):
        raise UsageError(
            f"{where} has a label {largest} in {rows:,} rows; expected classes numbered from 0: is it the column of "
            "labels?"
        )


def _list(words: Sequence[str]) -> str:
    return ", ".join(words[:_LISTED]) + (", ..." if len(words) > _LISTED else "")
