"""Texts for models that take strings: a text is cut into words, and put together again after one of them changed.

``Lexicon`` gives every word of the texts a number, so that words can be jostled as token ids are. ``TextFunction``
turns the numbers back into strings for a function of strings: a pipeline of scikit-learn, or a service. ``WordReader``
does for them what a ``TextReader`` does for models with a tokenizer.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
from torch import Tensor

from jostle.base.errors import UsageError
from jostle.data.text_dataset import TextDataset
from jostle.integrations.text_pieces import Piece

_WORD = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")


class Lexicon:
    """The words of some texts, each with a number; together, the pieces of a text are the text.

    A word goes with what stands between it and the next word. Padding is 0.

    >>> lexicon = Lexicon(["Not bad, not bad at all!"])
    >>> lexicon.rows[0], lexicon.text(lexicon.rows[0])
    ([1, 2, 3, 4, 5, 6], 'Not bad, not bad at all!')
    >>> [lexicon.pieces[number] for number in lexicon.rows[0]], lexicon.pieces[lexicon.words[0]]
    (['Not ', 'bad, ', 'not ', 'bad ', 'at ', 'all!'], 'Not ')

    Attributes:
        pieces: by number; the first, padding, is empty.
        rows: the numbers of the pieces of each text.
        words: the numbers of all different words, each followed by a space: what a word can be replaced by.

    Arguments:
        texts: as people wrote them.
    """

    def __init__(self, texts: Iterable[str]) -> None:
        self.pieces = [""]
        self._numbers = {"": 0}
        self.rows = [[self._number(piece) for piece in _cut(number, text)] for number, text in enumerate(texts)]
        found = dict.fromkeys(word for piece in self.pieces for word in _WORD.findall(piece)[:1])
        self.words = [self._number(f"{word} ") for word in found]

    def _number(self, piece: str) -> int:
        if piece not in self._numbers:
            self._numbers[piece] = len(self.pieces)
            self.pieces.append(piece)
        return self._numbers[piece]

    def text(self, numbers: Sequence[int]) -> str:
        """The text of these pieces."""
        return "".join(self.pieces[number] for number in numbers)


class TextFunction:
    """A function of strings as a function of the numbers of their words.

    Arguments:
        function: from a list of strings to outputs (batch, ...).
        lexicon: of the texts that it will be asked about.
    """

    pad = 0  # the first piece, which is empty

    def __init__(self, function: Callable[[list[str]], Any], lexicon: Lexicon) -> None:
        self.function, self.lexicon = function, lexicon

    def __call__(self, input_ids: Tensor, attention_mask: Tensor) -> Any:
        """The outputs for texts of these words, (batch, words), where the mask is 1."""
        rows, lengths = input_ids.tolist(), attention_mask.sum(dim=1).tolist()
        return self.function([self.lexicon.text(row[:length]) for row, length in zip(rows, lengths, strict=True)])


class WordReader:
    """Turns texts into the numbers of their words, in the place of a ``TextReader`` with a tokenizer.

    Attributes:
        lexicon: of the texts that were encoded last.
        max_length: words of a text that are read: all.
    """

    max_length = 10**9

    def __init__(self) -> None:
        self.lexicon = Lexicon([])

    @property
    def tokenizer(self) -> "WordReader":
        """Itself: it knows the words."""
        return self

    @property
    def vocabulary(self) -> int:
        """How many different pieces there are."""
        return len(self.lexicon.pieces)

    def words(self) -> list[int]:
        """The numbers of the words that a word can be replaced by."""
        return self.lexicon.words

    def id_of(self, token: str) -> int | None:
        """The number of a word, by itself or before a space; None if no text has it."""
        return next(
            (self.lexicon.pieces.index(one) for one in (f"{token} ", token) if one in self.lexicon.pieces), None
        )

    def shown(self, number: int) -> str:
        """The word of this number."""
        return self.lexicon.pieces[number].strip()

    def encode(self, dataset: TextDataset) -> dict[str, Tensor]:
        """``input_ids``, ``attention_mask`` and ``special_tokens_mask`` of single texts."""
        if dataset.width != 1:
            raise UsageError(f"{dataset.name} holds pairs of texts, and a function of strings takes single ones")
        self.lexicon = Lexicon(texts[0] for texts in dataset.texts)
        rows, width = self.lexicon.rows, max(map(len, self.lexicon.rows))
        ids = torch.tensor([[*row, *[0] * (width - len(row))] for row in rows])
        return {"input_ids": ids, "attention_mask": (ids > 0).long(), "special_tokens_mask": (ids == 0).long()}

    def count_cut(self, dataset: TextDataset, encoded: object) -> int:  # noqa: ARG002
        """Number of texts whose ends are not read: none."""
        return 0

    def pieces(self, texts: tuple[str, ...]) -> list[Piece]:
        """One text as it is shown, piece by piece."""
        return [Piece(piece, (number,)) for number, piece in enumerate(_cut(0, texts[0]))]


def _cut(number: int, text: str) -> list[str]:
    """The pieces of a text: a word, and what follows it up to the next; the first begins where the text does."""
    starts = [match.start() for match in _WORD.finditer(text)]
    if not starts:
        if not text.strip():
            raise UsageError(f"prompt {number} has no words: leave out empty texts")
        return [text]
    return [text[start:stop] for start, stop in zip([0, *starts[1:]], [*starts[1:], len(text)], strict=True)]
