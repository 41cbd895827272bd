"""Functions of bits as people write them: ``x0 and not (x1 xor x2)``. Parsed here; nothing is evaluated as Python.

From weak to strong, as in Python: ``or`` (``|``), ``xor`` (``^``), ``and`` (``&``), ``not`` (``~``, ``!``). Bits are
``x0``, ``x1``, ...; true is +1, false is -1; ``1`` and ``0`` are the constants.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jostle.base.errors import UsageError
from jostle.boolean.cube import LARGEST

Bits = NDArray[np.bool_]
_WORDS = re.compile(r"\s*(?:(?P<word>[^\W\d]\w*)|(?P<sign>[|^&~!()])|(?P<number>[01])(?!\w))")
_BIT = re.compile(r"x([0-9]+)")
_OPERATORS: list[tuple[tuple[str, ...], Callable[[Bits, Bits], Bits]]] = [
    (("or", "|"), np.logical_or),
    (("xor", "^"), np.logical_xor),
    (("and", "&"), np.logical_and),
]
_NOT = ("not", "~", "!")
_CONSTANTS = {"1": True, "true": True, "0": False, "false": False}
_DEEPEST = 100  # brackets and nots inside each other


@dataclass(frozen=True)
class Formula:
    """A formula as a function of (batch, n) arrays of -1 and 1.

    Arguments:
        text: as it was written.
        bits: the number of bits that it needs: the largest index and one.
        value: of (batch, n) truth values.
    """

    text: str
    bits: int
    value: Callable[[Bits], Bits]

    def __call__(self, points: NDArray[Any]) -> NDArray[np.int8]:
        return np.where(np.broadcast_to(self.value(points > 0), (len(points),)), np.int8(1), np.int8(-1))


def is_formula(text: str) -> bool:
    """Whether a text is meant as a formula: a bit such as ``x0`` is in it, or brackets or signs, and no file."""
    return bool(re.search(r"(?<!\w)x\d+(?!\w)", text, re.IGNORECASE)) and ":" not in text


def parse(text: str) -> Formula:
    """The formula that a text is.

    >>> parse("x0 and x1")(np.array([[1, 1], [1, -1]])).tolist()
    [1, -1]
    """
    words = _split(text)
    value, rest = _binary(text, words, 0, 0)
    if rest:
        raise UsageError(f"formula {text!r}: {rest[0]!r} is not expected there")
    bits = 1 + max((index for word in words if (index := _index(text, word)) is not None), default=-1)
    if bits < 1:
        raise UsageError(f"formula {text!r} has no bit: write x0, x1 and so on")
    return Formula(text, bits, value)


def _split(text: str) -> list[str]:
    """Words and signs, in small letters."""
    words, place = [], 0
    end = len(text.rstrip())
    while place < end:
        found = _WORDS.match(text, place)
        if found is None:
            raise UsageError(f"formula {text!r}: {text[place:].strip()[:10]!r} is not understood; write {_example()}")
        words.append(found.group().strip().lower())
        place = found.end()
    return words


def _binary(text: str, words: list[str], level: int, depth: int) -> tuple[Callable[[Bits], Bits], list[str]]:
    """What stands between operators that are weaker than this level, and the words after it."""
    if level == len(_OPERATORS):
        return _single(text, words, depth)
    names, operator = _OPERATORS[level]
    left, rest = _binary(text, words, level + 1, depth)
    parts = [left]
    while rest and rest[0] in names:
        right, rest = _binary(text, rest[1:], level + 1, depth)
        parts.append(right)
    if len(parts) == 1:
        return left, rest

    def value(bits: Bits) -> Bits:
        found = parts[0](bits)
        for part in parts[1:]:
            found = operator(found, part(bits))
        return found

    return value, rest


def _single(text: str, words: list[str], depth: int) -> tuple[Callable[[Bits], Bits], list[str]]:
    """A bit, a constant, a negation or a bracket, and the words after it."""
    if depth > _DEEPEST:
        raise UsageError(f"formula {text[:20]!r}...: more than {_DEEPEST} brackets or nots inside each other")
    if not words:
        raise UsageError(f"formula {text!r} is not complete; write {_example()}")
    first, rest = words[0], words[1:]
    if first in _NOT:
        inner, rest = _single(text, rest, depth + 1)
        return lambda bits: np.logical_not(inner(bits)), rest
    if first == "(":
        inner, rest = _binary(text, rest, 0, depth + 1)
        if not rest or rest[0] != ")":
            raise UsageError(f"formula {text!r}: a bracket is not closed")
        return inner, rest[1:]
    if first in _CONSTANTS:
        return lambda bits: np.full(len(bits), _CONSTANTS[first]), rest
    index = _index(text, first)
    if index is not None:
        return lambda bits: bits[:, index], rest
    raise UsageError(f"formula {text!r}: {first!r} is not expected there; write {_example()}")


def _index(text: str, word: str) -> int | None:
    """The number of a bit; None if the word is none."""
    found = _BIT.fullmatch(word)
    if found is None:
        return None
    digits = found.group(1).lstrip("0") or "0"
    if len(digits) > len(str(LARGEST)) or int(digits) >= LARGEST:
        raise UsageError(f"formula {text[:40]!r}: {word[:20]} is too large; the bits are x0 to x{LARGEST - 1}")
    return int(digits)


def _example() -> str:
    return "for example 'x0 and not (x1 xor x2)'"
