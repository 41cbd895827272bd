"""Labels as a file writes them, as the numbers of classes."""

import re
from collections.abc import Sequence
from pathlib import Path

from jostle.errors import UsageError

_MANY_CLASSES = 100
_LISTED = 10
_NO_NAME = r"LABEL_[0-9]+"  # what transformers calls a class that nobody named


def numbered(written: Sequence[str], path: Path, column: str, names: Sequence[str] = ()) -> tuple[list[int], int, str]:
    """Labels as numbers, how many classes there are, and what the numbers mean if that is not plain.

    Whole numbers from 0 are the classes. Other labels are the classes of those names, whatever their case, if ``names``
    are given and are names; else they are numbered in their sorted order.

    >>> numbered(["good", "bad", "good"], Path("a.csv"), "label")
    ([1, 0, 1], 2, 'labels: 0 = bad, 1 = good')
    >>> numbered(["good", "bad", "good"], Path("a.csv"), "label", names=["Good", "Bad"])
    ([0, 1, 0], 2, '')

    Arguments:
        written: what the column says, for each row.
        path, column: where it comes from, for messages.
        names: of the classes of the model that the labels are for, in the order of its outputs; none if unknown.
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
            f"{path} column {column!r} holds the label {foreign!r}, the model's classes are {_listed(names)}: write "
            f"these, or their numbers from 0 to {len(names) - 1}"
        )
    return _sorted(written, f"{path} column {column!r}", len(names))


def _sorted(written: Sequence[str], where: str, most: int) -> tuple[list[int], int, str]:
    """Words, and numbers that are not from 0, by their order."""
    distinct = set(written)
    if all(re.fullmatch(r"[+-]?[0-9]{1,9}", label) for label in distinct):
        ordered = sorted(distinct, key=lambda label: (int(label), label))
    else:
        ordered = sorted(distinct)
    if most and len(ordered) > most:
        raise UsageError(f"{where} holds {len(ordered)} labels, the model has {most} classes: is it the right column?")
    number = {name: place for place, name in enumerate(ordered)}
    shown = [f"{place} = {name}" for name, place in number.items()]
    return [number[label] for label in written], most or len(ordered), f"labels: {_listed(shown)}"


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


def _listed(words: Sequence[str]) -> str:
    return ", ".join(words[:_LISTED]) + (", ..." if len(words) > _LISTED else "")
