"""Texts with each token shaded by how often jostling it flips the prediction."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from jostle.integrations.text_pieces import Piece
from jostle.report.page import Passage, Token

_UNREAD_SHOWN = 160
LEGEND_SHARES = (0.05, 0.25, 0.5, 0.75, 1.0)


def passage(pieces: Sequence[Piece], counts: NDArray[np.float64], draws: int, label: str = "") -> Passage:
    """One text, shaded.

    >>> pieces = [Piece("[CLS]", (0,), is_special=True), Piece("not", (1,)), Piece(" "), Piece("bad", (2,))]
    >>> [(token.text, token.share, token.hint) for token in passage(pieces, np.array([np.nan, 3, 0]), 4).tokens][1:]
    [('not', 0.75, '3 of 4 draws flip (75 %)'), (' ', None, ''), ('bad', 0.0, '0 of 4 draws flip (0 %)')]

    Arguments:
        pieces: of the text, as ``TextReader.pieces`` gives them.
        counts: (tokens,) draws that flipped the prediction, NaN for tokens that were not jostled.
        draws: how often each token was jostled.
        label: what stands above it.
    """
    return Passage([_token(piece, counts, draws) for piece in pieces], label)


def legend(draws: int, level: str = "") -> list[Token]:
    """What the shades mean."""
    times = f"{draws:,} draws for each token" if draws > 1 else "one change for each token"
    shades = [Token(f"{share:.0%}".replace("%", " %"), share) for share in LEGEND_SHARES] if draws > 1 else []
    ends = [Token("never", 0.0, "no draw flips the prediction"), *shades]
    return [
        Token("flips the prediction:"),
        *(ends if draws > 1 else [ends[0], Token("always", 1.0)]),
        Token(times + level),
    ]


def _token(piece: Piece, counts: NDArray[np.float64], draws: int) -> Token:
    if piece.is_unread:
        more = len(piece.text) > _UNREAD_SHOWN
        return Token(piece.text[:_UNREAD_SHOWN] + (" …" if more else ""), None, "not read: the text is cut before it")
    flips = [float(counts[number]) for number in piece.tokens if np.isfinite(counts[number])]
    if not flips:
        hint = "not jostled" if piece.tokens else ""
        return Token(piece.text, None, hint, piece.is_special)
    said = ", ".join(f"{flip:.0f} of {draws} draws flip ({flip / draws:.0%})".replace("%", " %") for flip in flips)
    if len(flips) > 1:
        said = f"{len(flips)} tokens: {said}"
    return Token(piece.text, max(flips) / draws, said, piece.is_special)
