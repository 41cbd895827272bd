"""Shaded texts: what each token says, and what a legend says."""

import numpy as np

from jostle.integrations.text_pieces import Piece
from jostle.report import Page, Section, render
from jostle.report.texts import legend, passage


def test_a_token_says_its_flips():
    pieces = [
        Piece("[CLS]", (0,), is_special=True),
        Piece("bad", (1,)),
        Piece(" "),
        Piece("\U0001f600", (2, 3)),
        Piece(" the rest" * 50, is_unread=True),
    ]
    tokens = passage(pieces, np.array([np.nan, 10.0, 5.0, 40.0]), 40, "label").tokens
    assert [token.share for token in tokens] == [None, 0.25, None, 1.0, None]
    assert [token.is_added for token in tokens] == [True, False, False, False, False]
    assert [token.said for token in tokens] == [
        "not jostled",
        "10 of 40 draws flip (25 %)",
        "",
        "2 tokens: 5 of 40 draws flip (12 %), 40 of 40 draws flip (100 %)",
        "not read: the text is cut before it",
    ]
    assert tokens[-1].text.endswith(" …")
    assert len(tokens[-1].text) < 170


def test_the_legend_says_how_many_draws_there_were():
    assert [token.text for token in legend(40)][-1] == "40 draws for each token"
    assert [token.text for token in legend(1)] == [
        "flips the prediction:",
        "never",
        "always",
        "one change for each token",
    ]


def test_legend_and_added_tokens_are_on_the_page():
    pieces = [Piece("<s>", (0,), is_special=True), Piece(" a<b", (1,))]
    one = passage(pieces, np.array([np.nan, 3.0]), 4)
    html = render(Page("t", "", [Section("s", passages=[one], legend=legend(4))]))
    assert '<span class="added" title="not jostled">&lt;s&gt;</span>' in html
    assert '<mark style="--share: 75" title="3 of 4 draws flip (75 %)"> a&lt;b</mark>' in html
    assert '<p class="legend">flips the prediction:' in html
