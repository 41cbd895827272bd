"""Whole numbers on the command line: 12.9 is a mistake, not 13, and one run is not one runs."""

from collections.abc import Sequence
from typing import Any

from cyclopts import Token


def whole(_: Any, tokens: Sequence[Token]) -> int:
    """The whole number that was written, for ``Parameter(converter=whole)``; cyclopts' own would round."""
    text = tokens[0].value
    try:
        return int(text.replace("_", "").replace(",", ""))
    except ValueError:
        raise ValueError(f"{text} is not a whole number") from None


def counted(number: int, thing: str) -> str:
    """So many things.

    >>> counted(1, "run"), counted(2_000, "run")
    ('1 run', '2,000 runs')
    """
    return f"{number:,} {thing}" if number == 1 else f"{number:,} {thing}s"
