"""Texts of your own: a .csv or .tsv file, packed by gzip or not, with the names of its columns in the first line.

Written as text, ``csv:FILE`` or ``csv:FILE:text=question1,second=question2,label=is_duplicate,test=0.2``;
``jostle.data.load`` takes it where it takes the name of a dataset.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from jostle.data.dataset import SPLITS
from jostle.data.text_dataset import TextDataset
from jostle.data.text_splits import share_split
from jostle.data.text_tables import cells, decoded, read_bytes
from jostle.errors import UsageError
from jostle.registry import unknown_name

PREFIX = "csv:"
SPLIT_SEED = 0
_MANY_CLASSES = 100
_OPTIONS = ("text", "second", "label", "quoted", "skip", "test")


@dataclass(frozen=True, eq=False)
class Columns:
    """Texts and labels as a file writes them.

    Arguments:
        texts: for each row kept, a tuple of its texts.
        labels: what its label column says.
        left_out: how many rows were not kept.
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
    label: str = "label",
    quoted: bool | None = None,
    skip: bool = False,
    test: float | None = None,
) -> TextDataset:
    """A file of labelled texts.

    Labels that are whole numbers from 0 are the classes; other labels are numbered in their sorted order (-1 before 1,
    "negative" before "positive"), and the dataset's note says which is which. Rows are counted from 1 after the line
    of names.

    Arguments:
        path: a file that ends in .csv (commas) or .tsv, .tab or .txt (tabs), and perhaps .gz.
        split: ``train`` or ``test``; without ``test=`` both are the whole file, and the note says so.
        text: the name of the column of texts.
        second: the name of the column of the second text of a pair, if there is one.
        label: the name of the column of labels.
        quoted: whether quotation marks wrap fields; if left out, in .csv files only.
        skip: leave rows out that have too few columns, too many or no label, and say in the note how many; otherwise
            the first is an error.
        test: the share of distinct texts that makes the test split, above 0 and below 1, the same ones each time.
    """
    if split not in SPLITS:
        raise unknown_name("split", str(split), SPLITS)
    if test is not None and not 0 < test < 1:
        raise UsageError(f"test={test} must be above 0 and below 1, for example 0.2")
    path = Path(path).expanduser()
    table = read_columns(path, text=text, second=second, label=label, quoted=quoted, skip=skip)
    labels, classes, meaning = _numbered(table.labels, path, label)
    left_out = f"{table.left_out:,} rows left out: wrong number of columns or no label" if table.left_out else ""
    kind = "one file without splits" if test is None else f"{test:.0%} of the distinct texts held out as the test split"
    note = "; ".join(filter(None, (kind, left_out, meaning)))
    whole = TextDataset(f"{PREFIX}{path.name}", table.texts, torch.tensor(labels), classes, split, note)
    if test is None:
        return whole
    rows = share_split(table.texts, split, test, SPLIT_SEED)
    if not 0 < len(rows) < len(whole):
        raise UsageError(f"{path} holds {len(whole)} rows, too few to hold out test={test} of the distinct texts")
    return whole.take(rows)


def open_csv(spec: str, split: str = "train") -> TextDataset:
    """The texts a spec names: ``csv:FILE``, and after a colon any options of ``load_csv`` as key=value."""
    rest = spec.removeprefix(PREFIX)
    head, colon, tail = rest.rpartition(":")
    file, options = (head, tail) if colon and "=" in tail else (rest, "")
    if not file:
        raise UsageError(f"data {spec!r} must read csv:FILE, for example csv:reviews.csv or csv:pairs.tsv:second=text2")
    named = dict(part.strip().partition("=")[::2] for part in options.split(",") if part.strip())
    for key in named:
        if key not in _OPTIONS:
            raise unknown_name("option of csv", key, _OPTIONS)
    share = named.get("test")
    return load_csv(
        file,
        split,
        text=named.get("text", "text"),
        second=named.get("second"),
        label=named.get("label", "label"),
        quoted=_truth(named, "quoted"),
        skip=_truth(named, "skip") or False,
        test=None if share is None else _number(share),
    )


def read_columns(
    path: Path,
    *,
    text: str,
    label: str,
    second: str | None = None,
    quoted: bool | None = None,
    skip: bool = False,
) -> Columns:
    """The columns of texts and labels of a file; arguments as of ``load_csv``."""
    suffix = Path(path.stem).suffix if path.suffix == ".gz" else path.suffix
    if suffix not in (".csv", ".tsv", ".tab", ".txt"):
        raise UsageError(f"{path} must end in .csv (commas) or .tsv (tabs), and perhaps .gz")
    is_comma = suffix == ".csv"
    whole = decoded(read_bytes(path), path)
    rows = cells(whole, "," if is_comma else "\t", is_comma if quoted is None else quoted, path)
    header = next(rows, [])
    wanted = [name for name in (text, second, label) if name is not None]
    places = [_place(header, name, path) for name in wanted]
    texts, labels, left_out = [], [], 0
    for number, row in enumerate(rows, start=1):
        problem = _problem(row, header, places[-1])
        if problem and not skip:
            raise UsageError(f"{path} row {number}{problem}; mend the row, or pass skip=True to leave such rows out")
        if problem:
            left_out += 1
            continue
        texts.append(tuple(row[place] for place in places[:-1]))
        labels.append(row[places[-1]].strip())
    if not texts:
        raise UsageError(f"{path} holds no rows that can be used below its line of names ({left_out} left out)")
    return Columns(tuple(texts), tuple(labels), left_out)


def _place(header: Sequence[str], name: str, path: Path) -> int:
    """Where the column called ``name`` is."""
    if header.count(name) > 1:
        raise UsageError(f"{path} has {header.count(name)} columns called {name!r}; rename all but one")
    if name not in header:
        raise unknown_name(f"column of {path}", name, header)
    return header.index(name)


def _problem(row: Sequence[str], header: Sequence[str], label: int) -> str:
    """What is wrong with a row, as the end of a sentence that starts with its number; empty if nothing is."""
    if len(row) < len(header):
        return f", column {header[len(row)]!r}: missing, the row ends after {len(row)} of {len(header)} columns"
    if len(row) > len(header):
        return f", column {header[-1]!r}: {len(row)} columns where the line of names has {len(header)}"
    return "" if row[label].strip() else f", column {header[label]!r}: empty, expected a label"


def _numbered(written: Sequence[str], path: Path, column: str) -> tuple[list[int], int, str]:
    """Labels as numbers, how many classes there are, and what the numbers mean if that is not plain."""
    distinct = set(written)
    if all(re.fullmatch(r"[0-9]{1,9}", label) for label in distinct):
        classes = max(map(int, distinct)) + 1
        if classes > max(len(written), _MANY_CLASSES):
            raise UsageError(
                f"{path} column {column!r} has a label {classes - 1} in {len(written):,} rows; expected classes "
                "numbered from 0: is it the column of labels?"
            )
        return [int(label) for label in written], classes, ""
    if all(re.fullmatch(r"[+-]?[0-9]{1,9}", label) for label in distinct):
        names = sorted(distinct, key=lambda label: (int(label), label))
    else:
        names = sorted(distinct)
    number = {name: place for place, name in enumerate(names)}
    shown = ", ".join(f"{place} = {name}" for name, place in list(number.items())[:10])
    meaning = f"labels: {shown}{', ...' if len(names) > 10 else ''}"
    return [number[label] for label in written], len(names), meaning


def _truth(named: dict[str, str], key: str) -> bool | None:
    value = named.get(key)
    if value is not None and value.lower() not in ("true", "false"):
        raise UsageError(f"{key}={value} must be true or false")
    return None if value is None else value.lower() == "true"


def _number(value: str) -> float:
    try:
        return float(value)
    except ValueError:
        raise UsageError(f"test={value} must be a number above 0 and below 1, for example 0.2") from None
