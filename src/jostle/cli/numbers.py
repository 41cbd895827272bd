"""Whole numbers on the command line: 12.9 is a mistake, not 13."""

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
