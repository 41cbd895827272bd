"""What people change in a text: typos, case, reading errors of a scanner, other words, other wordings of a prompt.

A change says where it can be made (``prepare``: the text, and spans of characters in it) and what becomes of the
characters there (``apply``, a pure function of them and of uniform numbers). ``jostle.change_texts`` tries it.
"""

import csv
import json
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from jostle.base import checks
from jostle.base.errors import UsageError
from jostle.base.files import parse_json, read_text
from jostle.base.registry import Registry

Span = tuple[int, int]

TEXT_CHANGES: Registry[type["TextChange"]] = Registry("change of texts", group="jostle.text_changes")

_WORD = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")
_ROWS = ("qwertyuiop", "asdfghjkl", "zxcvbnm")  # of a keyboard, each half a key to the right of the one above
_LOOK_ALIKE = {  # what a scanner takes one for the other
    "l": "1", "1": "l", "i": "l", "o": "0", "0": "o", "s": "5", "5": "s", "b": "6", "g": "9", "q": "9", "z": "2",
    "2": "z", "e": "c", "c": "e", "u": "v", "v": "u", "h": "b", "n": "ri", "m": "rn", "rn": "m", "d": "cl", "cl": "d",
    "w": "vv", "vv": "w", "I": "l", "O": "0", "S": "5", "B": "8", "8": "B", "Z": "2", "G": "6", "D": "O", "t": "f",
    "f": "t",
}  # fmt: skip


class TextChange(ABC):
    """One way to change a text at one place."""

    @property
    def is_deterministic(self) -> bool:
        """Whether one draw at each place says it all."""
        return False

    def prepare(self, text: str) -> tuple[str, list[Span]]:
        """The unchanged text, and the spans (from, to) of its characters that can be changed: by default its words."""
        return text, [match.span() for match in _WORD.finditer(text) if self.fits(match.group())]

    def fits(self, word: str) -> bool:  # noqa: ARG002
        """Whether this word can be changed."""
        return True

    @abstractmethod
    def apply(self, word: str, uniforms: Sequence[float]) -> str:
        """What the characters at a span become, from two uniform numbers between 0 and 1."""

    @abstractmethod
    def describe(self) -> str:
        """A spec that makes this change again."""


def _pick(number: float, things: Sequence[str]) -> str:
    return things[min(int(number * len(things)), len(things) - 1)]


@TEXT_CHANGES.register("typo")
@dataclass(frozen=True)
class Typo(TextChange):
    """One slip of the fingers in a word of at least two letters.

    ``swap``: two neighbouring letters change places; ``drop``: a letter is missing; ``double``: a letter is typed
    twice; ``neighbour``: a key beside the right one is hit; ``any``: one of these four, equally likely.

    >>> Typo("swap").apply("film", (0.0, 0.5)), Typo("drop").apply("film", (0.0, 0.9)), Typo().fits("a")
    ('flim', 'fil', False)
    """

    kind: Literal["any", "swap", "drop", "double", "neighbour"] = "any"

    def __post_init__(self) -> None:
        checks.choice("kind", self.kind, ("any", "swap", "drop", "double", "neighbour"))

    def fits(self, word: str) -> bool:
        return len(word) >= 2 and any(letter.isalpha() for letter in word)

    def apply(self, word: str, uniforms: Sequence[float]) -> str:
        first, second = uniforms[0], uniforms[1]
        kind = _pick(first, ("swap", "drop", "double", "neighbour")) if self.kind == "any" else self.kind
        if kind == "swap":
            unequal = [n for n in range(len(word) - 1) if word[n] != word[n + 1]]
            if unequal:
                place = unequal[int(second * len(unequal))]
                return word[:place] + word[place + 1] + word[place] + word[place + 2 :]
            kind = "drop"  # nothing to swap in "aaa"
        place = int(second * len(word))
        if kind == "drop":
            return word[:place] + word[place + 1 :]
        if kind == "double":
            return word[: place + 1] + word[place:]
        return self._hit_beside(word, second)

    @staticmethod
    def _hit_beside(word: str, number: float) -> str:
        """The word with one letter replaced by a neighbour on the keyboard; without such a letter, one doubled."""
        places = [n for n, letter in enumerate(word) if neighbours(letter)]
        if not places:
            return word + word[-1]
        scaled = number * len(places)
        place = places[int(scaled)]
        new = _pick(scaled % 1, neighbours(word[place]))
        return word[:place] + (new.upper() if word[place].isupper() else new) + word[place + 1 :]

    def describe(self) -> str:
        return "typo" if self.kind == "any" else f"typo:{self.kind}"


def neighbours(letter: str) -> list[str]:
    """The letters beside one on an English keyboard; none for other characters.

    >>> neighbours("s"), neighbours("!")
    (['a', 'd', 'w', 'e', 'z', 'x'], [])
    """
    low = letter.lower()
    for number, row in enumerate(_ROWS):
        place = row.find(low)
        if low and place >= 0:
            beside = [(number, place - 1), (number, place + 1), (number - 1, place), (number - 1, place + 1)]
            beside += [(number + 1, place - 1), (number + 1, place)]
            return [_ROWS[r][c] for r, c in beside if 0 <= r < len(_ROWS) and 0 <= c < len(_ROWS[r])]
    return []


@TEXT_CHANGES.register("case")
@dataclass(frozen=True)
class Case(TextChange):
    """A word in other letters: ``upper``, ``lower``, ``title`` (first letter large) or ``swap``. Deterministic.

    >>> Case().apply("good", ()), Case("swap").apply("Good", ()), Case("lower").fits("good")
    ('GOOD', 'gOOD', False)
    """

    mode: Literal["upper", "lower", "title", "swap"] = "upper"

    def __post_init__(self) -> None:
        checks.choice("mode", self.mode, ("upper", "lower", "title", "swap"))

    @property
    def is_deterministic(self) -> bool:
        return True

    def fits(self, word: str) -> bool:
        return self.apply(word, ()) != word

    def apply(self, word: str, uniforms: Sequence[float]) -> str:  # noqa: ARG002
        made = {"upper": word.upper, "lower": word.lower, "title": word.capitalize, "swap": word.swapcase}
        return made[self.mode]()

    def describe(self) -> str:
        return "case" if self.mode == "upper" else f"case:{self.mode}"


@TEXT_CHANGES.register("ocr")
@dataclass(frozen=True)
class Ocr(TextChange):
    """One reading error of a scanner: a letter, or two, taken for what looks alike (l and 1, rn and m, cl and d).

    >>> Ocr().apply("modern", (0.0, 0.0)), Ocr().fits("!")
    ('rnodern', False)
    """

    def fits(self, word: str) -> bool:
        return bool(self._places(word))

    def apply(self, word: str, uniforms: Sequence[float]) -> str:
        places = self._places(word)
        place, read = places[int(uniforms[0] * len(places))]
        return word[:place] + _LOOK_ALIKE[read] + word[place + len(read) :]

    @staticmethod
    def _places(word: str) -> list[tuple[int, str]]:
        """Where which letters can be misread."""
        found = []
        for place in range(len(word)):
            for read in (word[place : place + 2], word[place]):
                if read in _LOOK_ALIKE and (place, read) not in found:
                    found.append((place, read))
        return found

    def describe(self) -> str:
        return "ocr"


@TEXT_CHANGES.register("alternatives")
@dataclass(frozen=True)
class Alternatives(TextChange):
    """A word becomes one of the alternatives given for it, such as its synonyms; other words stay.

    >>> better = Alternatives({"good": ["fine", "nice"]})
    >>> better.prepare("A good plot.")[1], better.apply("Good", (0.9, 0.0))
    ([(2, 6)], 'Nice')

    Arguments:
        words: a mapping from words, in small letters, to their alternatives; or a file: .json with such a mapping, or
            .csv or .tsv with the word in the first column and one alternative in each of the others.
    """

    words: Mapping[str, Sequence[str]] | str | Path
    _table: dict[str, tuple[str, ...]] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        given = self.words if isinstance(self.words, Mapping) else _read_alternatives(Path(self.words))
        table: dict[str, tuple[str, ...]] = {}
        for word, others in given.items():
            listed = (others,) if isinstance(others, str) else tuple(others)
            kept = tuple(str(other) for other in listed if str(other).strip() and str(other) != word)
            if kept:
                table[str(word).strip().lower()] = kept
        if not table:
            raise UsageError("words of Alternatives hold no word with an alternative")
        object.__setattr__(self, "_table", table)

    def fits(self, word: str) -> bool:
        return word.lower() in self._table

    def apply(self, word: str, uniforms: Sequence[float]) -> str:
        new = _pick(uniforms[0], self._table[word.lower()])
        if word.isupper() and len(word) > 1:
            return new.upper()
        return new[:1].upper() + new[1:] if word[:1].isupper() else new

    def describe(self) -> str:
        return (
            f"alternatives:<{len(self._table)} words>"
            if isinstance(self.words, Mapping)
            else f"alternatives:{self.words}"
        )


def _read_alternatives(path: Path) -> dict[str, list[str]]:
    text = read_text(path, "alternatives")
    if path.suffix.lower() == ".json":
        try:
            found = parse_json(text)
        except json.JSONDecodeError as error:
            raise UsageError(f"{path} is not JSON (line {error.lineno}: {error.msg})") from None
        if not isinstance(found, dict):
            raise UsageError(f"{path} must hold a mapping from words to lists of alternatives")
        return found
    if path.suffix.lower() not in (".csv", ".tsv"):
        raise UsageError(f"{path} must end in .json, .csv or .tsv: the word, then its alternatives")
    rows = csv.reader(text.splitlines(), delimiter="\t" if path.suffix.lower() == ".tsv" else ",")
    return {row[0]: row[1:] for row in rows if row}


@TEXT_CHANGES.register("slot")
@dataclass(frozen=True)
class PromptSlot(TextChange):
    """A place in a prompt that can be worded in several ways: ``{name}`` in the text.

    The first variant is the unchanged text; each of the others is equally likely.

    >>> ask = PromptSlot(("Please answer", "Answer"), name="ask")
    >>> ask.prepare("{ask}: is it late?"), ask.apply("Please answer", (0.0, 0.0))
    (('Please answer: is it late?', [(0, 13)]), 'Answer')

    Arguments:
        variants: at least two.
        name: of the slot.
    """

    variants: Sequence[str]
    name: str = "slot"

    def __post_init__(self) -> None:
        given = self.variants
        listed = given.split("|") if isinstance(given, str) else list(given)
        if len(listed) < 2 or len(set(listed)) < len(listed):
            raise checks.wrong("variants", given, "at least two different texts")
        object.__setattr__(self, "variants", tuple(str(one) for one in listed))

    @property
    def is_deterministic(self) -> bool:
        return len(self.variants) == 2

    def prepare(self, text: str) -> tuple[str, list[Span]]:
        marker, first = "{" + self.name + "}", self.variants[0]
        parts, spans, end = text.split(marker), list[Span](), 0
        for part in parts[:-1]:
            start = end + len(part)
            end = start + len(first)
            spans.append((start, end))
        return first.join(parts), spans

    def apply(self, word: str, uniforms: Sequence[float]) -> str:  # noqa: ARG002
        return _pick(uniforms[0] if uniforms else 0.0, self.variants[1:])

    def describe(self) -> str:
        return f"slot:{'|'.join(self.variants)}" + ("" if self.name == "slot" else f",name={self.name}")
