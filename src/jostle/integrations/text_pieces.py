"""A text cut into the pieces that its tokens stand for, so that it can be shown as people wrote it."""

from collections.abc import Sequence
from dataclasses import dataclass

from jostle.base.errors import UsageError
from jostle.data.text_encoding import longest_first
from jostle.data.text_tokenizer import TextTokenizer

Span = tuple[int, int]


@dataclass(frozen=True)
class Piece:
    """A part of an example as it is shown.

    Arguments:
        text: as it was written; for a special token its name.
        tokens: numbers of the tokens of this piece, from 0 in its example; several where tokens share a character, none
            for text between tokens.
        is_special: whether the tokenizer added it.
        is_unread: whether it comes after the last token that the model gets.
    """

    text: str
    tokens: tuple[int, ...] = ()
    is_special: bool = False
    is_unread: bool = False


def cut_into_pieces(texts: Sequence[str], tokenizer: TextTokenizer, max_length: int) -> list[Piece]:
    """One example, cut as ``jostle.data.encode_mapping`` cuts it; all pieces of a text together are the text.

    >>> from jostle.data import train_tokenizer
    >>> tokenizer = train_tokenizer(["low lower lowest", "slow slower slowest"] * 5, vocabulary=280)
    >>> [(piece.text, piece.tokens) for piece in cut_into_pieces(["low slow"], tokenizer, 9)]
    [('<s>', (0,)), ('low', (1,)), (' slow', (2,)), ('</s>', (3,))]

    Arguments:
        texts: one text, or the two of a pair.
        tokenizer: whose tokens the pieces are.
        max_length: most tokens of an example, special ones included.
    """
    layout = tokenizer.layout(len(texts))
    spans = spans_of(texts, tokenizer)
    room = max_length - sum(slot.special is not None for slot in layout)
    kept = longest_first([len(part) for part in spans], room)
    found: list[Piece] = []
    count = 0
    for slot in layout:
        if slot.special is not None:
            found.append(Piece(tokenizer.token_of(slot.special) or f"<{slot.special}>", (count,), is_special=True))
            count += 1
            continue
        found += _cut_text(texts[slot.which], spans[slot.which], kept[slot.which], count)
        count += kept[slot.which]
    return found


def spans_of(texts: Sequence[str], tokenizer: TextTokenizer) -> list[list[Span]]:
    """For each text, the characters (from, to) that each of its tokens stands for, special tokens left out."""
    try:
        from tokenizers import Tokenizer
    except ModuleNotFoundError:
        raise UsageError("texts need the package tokenizers: pip install tokenizers") from None
    backend = Tokenizer.from_str(tokenizer.json)
    backend.no_padding()
    backend.no_truncation()
    backend.encode_special_tokens = True  # names of special tokens are text, as in TextTokenizer
    return [one.offsets for one in backend.encode_batch(list(texts), add_special_tokens=False)]


def _cut_text(text: str, spans: Sequence[Span], kept: int, first: int) -> list[Piece]:
    """The pieces of one text. Its first token has the number ``first``, and the model reads ``kept`` of its tokens."""
    found: list[Piece] = []
    end = 0
    for number, (start, stop) in enumerate(spans[:kept], first):
        if start > end:
            found.append(Piece(text[end:start]))
            end = start
        if stop > end or not found:
            found.append(Piece(text[end:stop], (number,)))
        else:  # a token without a character of its own, as for an emoji of several bytes
            found[-1] = Piece(found[-1].text, (*found[-1].tokens, number))
        end = max(end, stop)
    if end < len(text):
        found.append(Piece(text[end:], is_unread=kept < len(spans)))
    return found
