"""Texts of your own: a .csv or .tsv file, packed by gzip or not, with the names of its columns in the first line.

A .csv file whose first line has semicolons and no commas is separated by semicolons, as some spreadsheets write it.

As a spec: ``csv:FILE`` or ``csv:FILE:text=question1,second=question2,label=is_duplicate,test=0.2``;
``jostle.data.load`` takes it where it takes the name of a dataset.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from jostle.base import checks
from jostle.base.errors import UsageError
from jostle.data.dataset import SPLITS
from jostle.data.text_dataset import TextDataset, share_split
from jostle.data.text_tables import decode, number_labels, read_bytes, split_rows

PREFIX = "csv:"
SPLIT_SEED = 0
_OPTIONS = ("text", "second", "label", "quoted", "skip", "test")


@dataclass(frozen=True, eq=False)
class TextColumns:
    """Texts and labels as a file writes them.

    Arguments:
        texts: for each row kept, a tuple of its texts.
        labels: for each row kept, the text in its label column; empty if there is no such column.
        left_out: number of rows that were not kept.
    """

    texts: tuple[tuple[str, ...], ...]
    labels: tuple[str, ...]
    left_out: int = 0


def load_csv(
    path: str | Path,
    split: str = "train",
    *,
    text: str = "text",
    second: str | None = None,
    label: str | None = "label",
    quoted: bool | None = None,
    skip: bool = False,
    test: float | None = None,
    names: Sequence[str] = (),
) -> TextDataset:
    """A file of labelled texts.

    Labels that are whole numbers from 0 are the classes; other labels are numbered in their sorted order (-1 before 1,
    "negative" before "positive"), and the dataset's note lists them, unless ``names`` are given. Rows are counted
    from 1 after the line of names.

    Arguments:
        path: a file that ends in .csv (commas) or .tsv, .tab or .txt (tabs), and perhaps .gz.
        split: ``train`` or ``test``; without ``test=`` both are the whole file, and the note says so.
        text: the name of the column of texts.
        second: the name of the column of the second text of a pair, if there is one.
        label: the name of the column of labels; None for texts without: then there is one class, 0.
        quoted: whether quotation marks wrap fields; if left out, in .csv files only.
        skip: leave out rows with too few or too many columns or without a label, and count them in the note; otherwise
            the first such row is an error.
        test: the share of distinct texts that makes the test split, above 0 and below 1, the same ones each time.
        names: of the model's classes, in the order of its outputs: labels that are words must be among them, and labels
            that are numbers must be below their number.
    """
    checks.choice("split", split, SPLITS)
    if test is not None:
        checks.number("test", test, above=0, below=1, hint=", for example 0.2")
    path = Path(path).expanduser()
    table = read_columns(path, text=text, second=second, label=label, quoted=quoted, skip=skip)
    labels, classes, meaning = [0] * len(table.texts), 1, "no labels"
    if label is not None:
        labels, classes, meaning = number_labels(table.labels, path, label, names)
    left_out = f"{table.left_out:,} rows left out: wrong number of columns or no label" if table.left_out else ""
    kind = "one file without splits" if test is None else f"{test:.0%} of the distinct texts held out as the test split"
    note = "; ".join(filter(None, (kind, left_out, meaning)))
    remarks = tuple(filter(None, (left_out, meaning if label is not None else "")))
    whole = TextDataset(f"{PREFIX}{path.name}", table.texts, torch.tensor(labels), classes, split, note, remarks)
    if test is None:
        return whole
    rows = share_split(table.texts, split, test, SPLIT_SEED)
    if not 0 < len(rows) < len(whole):
        raise UsageError(f"{path} holds {len(whole)} rows, too few to hold out test={test} of the distinct texts")
    return whole.take(rows)


def open_csv(spec: str, split: str = "train") -> TextDataset:
    """The texts a spec names: ``csv:FILE``, and after a colon any options of ``load_csv`` as key=value."""
    file, options = read_spec(spec)
    return load_options(file, split, options)


def read_spec(spec: str) -> tuple[str, dict[str, str]]:
    """The file of a spec, and its options by name.

    >>> read_spec("csv:pairs.tsv:text=question1,second=question2")
    ('pairs.tsv', {'text': 'question1', 'second': 'question2'})
    """
    rest = spec.removeprefix(PREFIX)
    head, colon, tail = rest.rpartition(":")
    file, options = (head, tail) if colon and "=" in tail else (rest, "")
    if not file:
        raise UsageError(f"data {spec!r} must read csv:FILE, for example csv:reviews.csv or csv:pairs.tsv:second=text2")
    named = dict(part.strip().partition("=")[::2] for part in options.split(",") if part.strip())
    for key in named:
        checks.choice("option of csv", key, _OPTIONS)
    return file, named


def load_options(file: str, split: str, options: Mapping[str, str | None], names: Sequence[str] = ()) -> TextDataset:
    """``load_csv`` with its options as text; a label that is None asks for texts without labels."""
    share = options.get("test")
    return load_csv(
        file,
        split,
        text=options.get("text") or "text",
        second=options.get("second"),
        label=options.get("label", "label"),
        quoted=_read_truth(options, "quoted"),
        skip=_read_truth(options, "skip") or False,
        test=None if share is None else _read_number(share),
        names=names,
    )


def read_columns(
    path: Path,
    *,
    text: str,
    label: str | None,
    second: str | None = None,
    quoted: bool | None = None,
    skip: bool = False,
) -> TextColumns:
    """The columns of texts and labels of a file; arguments as of ``load_csv``."""
    rows = read_rows(path, quoted)
    header = next(rows, [])
    places = [_find_column(header, name, path) for name in (text, second) if name is not None]
    last = None if label is None else _find_column(header, label, path)
    texts, labels, left_out = [], [], 0
    for number, row in enumerate(rows, start=1):
        problem = _problem(row, header, last)
        if problem and not skip:
            raise UsageError(
                f"{path} row {number}{problem}; mend the row, or pass skip=True to leave such rows out "
                "(csv:FILE:skip=true)"
            )
        if problem:
            left_out += 1
            continue
        texts.append(tuple(row[place] for place in places))
        labels += [] if last is None else [row[last].strip()]
    if not texts:
        raise UsageError(f"{path} holds no rows that can be used below its line of names ({left_out} left out)")
    return TextColumns(tuple(texts), tuple(labels), left_out)


def column_names(file: str, options: Mapping[str, str | None]) -> list[str]:
    """The names in the first line of a file; arguments as for ``load_options``."""
    return next(read_rows(Path(file).expanduser(), _read_truth(options, "quoted")), [])


def read_rows(path: Path, quoted: bool | None = None) -> Iterator[list[str]]:
    """The rows of a file, the line of names first; ``quoted`` as for ``load_csv``."""
    suffix = Path(path.stem).suffix if path.suffix == ".gz" else path.suffix
    if suffix not in (".csv", ".tsv", ".tab", ".txt"):
        raise UsageError(f"{path} must end in .csv (commas) or .tsv (tabs), and perhaps .gz")
    is_comma = suffix == ".csv"
    whole = decode(read_bytes(path), path)
    if not whole.strip():
        raise UsageError(f"{path} is empty; expected a line with the names of its columns, then a row for each text")
    first = whole.partition("\n")[0]
    separator = (";" if ";" in first and "," not in first else ",") if is_comma else "\t"
    return split_rows(whole, separator, is_comma if quoted is None else quoted, path)


def _find_column(header: Sequence[str], name: str, path: Path) -> int:
    """The number of the column called ``name``, from 0."""
    if header.count(name) > 1:
        raise UsageError(f"{path} has {header.count(name)} columns called {name!r}; rename all but one")
    return header.index(checks.choice(f"column of {path}", name, header))


def _problem(row: Sequence[str], header: Sequence[str], label: int | None) -> str:
    """The problem of a row, as the end of a sentence that starts with its number; empty if there is none."""
    if len(row) < len(header):
        return f", column {header[len(row)]!r}: missing, the row ends after {len(row)} of {len(header)} columns"
    if len(row) > len(header):
        return f", column {header[-1]!r}: {len(row)} columns where the line of names has {len(header)}"
    return "" if label is None or row[label].strip() else f", column {header[label]!r}: empty, expected a label"


def _read_truth(named: Mapping[str, str | None], key: str) -> bool | None:
    value = named.get(key)
    if value is not None and value.lower() not in ("true", "false"):
        raise UsageError(f"{key}={value} must be true or false")
    return None if value is None else value.lower() == "true"


def _read_number(value: str) -> float:
    try:
        return float(value)
    except ValueError:
        raise UsageError(f"test={value} must be a number above 0 and below 1, for example 0.2") from None
