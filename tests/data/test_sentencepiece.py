"""Tokenizers of SentencePiece and llama2.c: the pieces with the highest scores are joined first."""

import os
import struct
from pathlib import Path

import pytest

from jostle import UsageError
from jostle.data.text_tokenizer import load_tokenizer

PIECES = [
    "<unk>",
    "<s>",
    "</s>",
    *(f"<0x{number:02X}>" for number in range(256)),
    " a",
    "bc",
    " abc",
    " ",
    "a",
    "b",
    "c",
]
SCORES = [0.0] * 259 + [-2.0, -1.0, -3.0, -4.0, -5.0, -6.0, -7.0]
STORIES = Path(os.environ.get("JOSTLE_NETWORKS", "/nowhere")) / "stories260K"


def llama2c(path):
    parts = [
        struct.pack("<fi", score, len(text.encode())) + text.encode()
        for text, score in zip(PIECES, SCORES, strict=True)
    ]
    path.write_bytes(struct.pack("<i", 6) + b"".join(parts))
    return path


def protocol_buffer(path, kind=2):
    def field(number, content):
        return bytes([number << 3 | 2, len(content)]) + content

    def piece(text, score, which):
        text = text.replace(" ", "\u2581").encode()
        return field(1, field(1, text) + bytes([2 << 3 | 5]) + struct.pack("<f", score) + bytes([3 << 3, which]))

    kinds = {"<unk>": 2, "<s>": 3, "</s>": 3}
    parts = [
        piece(text, score, kinds.get(text, 6 if "<0x" in text else 1))
        for text, score in zip(PIECES, SCORES, strict=True)
    ]
    path.write_bytes(b"".join(parts) + field(2, bytes([3 << 3, kind])))
    return path


@pytest.mark.parametrize(("name", "make"), [("t.bin", llama2c), ("tokenizer.model", protocol_buffer)])
def test_pieces_are_joined_by_score_and_unknown_characters_become_bytes(tmp_path, name, make):
    tokenizer = load_tokenizer(make(tmp_path / name))
    assert tokenizer.ids(["abc", "bc a", "é"]) == [[261], [262, 260, 259], [262, 3 + 0xC3, 3 + 0xA9]]
    assert [slot.special for slot in tokenizer.layout(1)] == [1, None]
    assert tokenizer.pad is None
    assert tokenizer.words() == list(range(3, 266))


def test_a_folder_may_hold_a_model_of_sentencepiece(tmp_path):
    protocol_buffer(tmp_path / "tokenizer.model")
    assert load_tokenizer(tmp_path).ids(["abc"]) == [[261]]


def test_other_files_are_one_line(tmp_path):
    with pytest.raises(UsageError, match="is not of byte pairs; save it as"):
        load_tokenizer(protocol_buffer(tmp_path / "tokenizer.model", kind=1))
    whole = llama2c(tmp_path / "t.bin").read_bytes()
    (tmp_path / "t.bin").write_bytes(whole[:-3])
    with pytest.raises(UsageError, match="cannot be read as a file of SentencePiece"):
        load_tokenizer(tmp_path / "t.bin")
    (tmp_path / "t.bin").write_bytes(b"")
    with pytest.raises(UsageError, match="has no pieces <unk>"):
        load_tokenizer(tmp_path / "t.bin")


@pytest.mark.skipif(not STORIES.is_dir(), reason="JOSTLE_NETWORKS names no folder with stories260K")
def test_the_two_files_of_stories260k_cut_alike():
    first, second = (load_tokenizer(STORIES / name) for name in ("tok512.bin", "tok512.model"))
    texts = ["Once upon a time, there was a little girl.", "Zoë's 日本 dog\nran!", " two  spaces"]
    assert first.ids(texts) == second.ids(texts)
    assert first.ids(texts)[0][:4] == [403, 407, 261, 378]
