"""Texts in pieces: nothing is lost, and pieces are numbered as their tokens are."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from jostle.data import TextDataset, TextTokenizer, encode_mapping, train_tokenizer
from jostle.integrations.text_pieces import cut_into_pieces
from tests.integrations.text_folders import TEXTS, tokenizer


def ours(kind):
    backend = tokenizer(kind)
    backend.enable_padding(pad_id=0, pad_token="[PAD]")
    return TextTokenizer(backend.to_str())


TOKENIZERS = {"wordpiece": ours("bert"), "bytes": train_tokenizer(TEXTS * 5, vocabulary=300)}


def length(texts, words, limit):
    dataset = TextDataset("x", (tuple(texts),), torch.tensor([0]), 1)
    return int(encode_mapping(dataset, words, limit)["attention_mask"].sum())


@given(st.text(max_size=30), st.integers(3, 40), st.sampled_from(sorted(TOKENIZERS)))
def test_pieces_are_the_text_and_their_numbers_the_tokens(text, limit, kind):
    words = TOKENIZERS[kind]
    found = cut_into_pieces([text], words, limit)
    assert "".join(piece.text for piece in found if not piece.is_special) == text
    assert [number for piece in found for number in piece.tokens] == list(range(length([text], words, limit)))


@given(st.text("ab .!\U0001f600", max_size=9), st.text("cd\n", max_size=9), st.integers(6, 20))
def test_pairs(first, second, limit):
    words = TOKENIZERS["bytes"]
    found = cut_into_pieces([first, second], words, limit)
    assert "".join(piece.text for piece in found if not piece.is_special) == first + second
    count = length([first, second], words, limit)
    assert [number for piece in found for number in piece.tokens] == list(range(count))
    assert [piece.text for piece in found if piece.is_special] == ["<s>", "</s>", "</s>", "</s>"]


@pytest.mark.parametrize("text", ["Not  a DULL plot!", "dulls, films."])
def test_a_piece_is_the_word_of_its_token(text):
    words = TOKENIZERS["wordpiece"]
    shown = [piece.text for piece in cut_into_pieces([text], words, 30) if piece.tokens and not piece.is_special]
    ids = words.ids([text])[0]
    assert [words.token_of(number).removeprefix("##") for number in ids] == [piece.lower() for piece in shown]


def test_an_emoji_of_several_tokens_is_one_piece():
    found = cut_into_pieces(["a \U0001f600"], TOKENIZERS["bytes"], 30)
    [emoji] = [piece for piece in found if "\U0001f600" in piece.text]
    assert len(emoji.tokens) >= 4


def test_what_is_not_read_is_marked():
    found = cut_into_pieces(["good bad film plot dull"], TOKENIZERS["wordpiece"], 4)
    assert [(piece.text, piece.tokens, piece.is_unread) for piece in found if not piece.is_special] == [
        ("good", (1,), False),
        (" ", (), False),
        ("bad", (2,), False),
        (" film plot dull", (), True),
    ]
