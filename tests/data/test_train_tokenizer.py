"""Training tokenizers."""

import itertools
import json
import os
import subprocess
import sys

import numpy as np
import pytest
import torch

from jostle.base.errors import UsageError
from jostle.data import TextDataset, load_tokenizer, train_tokenizer


def made_up_texts(count=300, seed=0):
    """Sentences of made-up words, many of them equally frequent, so that merges have ties."""
    generator = np.random.default_rng(seed)
    letters = list("abcdefghijklmnopqrstuvwxyzäöü")
    words = ["".join(generator.choice(letters, generator.integers(2, 7))) for _ in range(600)]
    return [" ".join(generator.choice(words, 8)) for _ in range(count)]


TEXTS = made_up_texts()
_PROGRAM = """
import json, sys
from jostle.data import train_tokenizer
texts = json.load(sys.stdin)
print(*(train_tokenizer(texts, 600, kind).fingerprint() for kind in ("bpe", "wordpiece")))
"""


@pytest.fixture(scope="module")
def trained():
    return {kind: train_tokenizer(TEXTS, 600, kind) for kind in ("bpe", "wordpiece")}


@pytest.mark.parametrize("kind", ["bpe", "wordpiece"])
class TestBoth:
    def test_the_same_texts_give_the_same_file(self, kind, trained, tmp_path):
        for name in ("one", "two", "three"):
            train_tokenizer(list(TEXTS), 600, kind).save(tmp_path / name)
        wanted = trained[kind].json.encode()
        assert [(tmp_path / name).read_bytes() for name in ("one", "two", "three")] == [wanted] * 3
        assert train_tokenizer(TEXTS[1:], 600, kind).json.encode() != wanted

    def test_special_tokens_have_the_first_numbers(self, kind, trained):
        tokenizer = trained[kind]
        assert [tokenizer.id_of(token) for token in ("<pad>", "<unk>", "<s>", "</s>")] == [0, 1, 2, 3]
        assert (tokenizer.pad, tokenizer.side) == (0, "right")
        assert tokenizer.vocabulary <= 600
        assert {token["content"] for token in json.loads(tokenizer.json)["added_tokens"]} == {
            "<pad>",
            "<unk>",
            "<s>",
            "</s>",
        }

    def test_every_number_below_the_vocabulary_is_a_token(self, kind, trained):
        tokenizer = trained[kind]
        tokens = [tokenizer.token_of(number) for number in range(tokenizer.vocabulary)]
        assert None not in tokens
        assert [tokenizer.id_of(token) for token in tokens] == list(range(tokenizer.vocabulary))

    def test_a_saved_file_reads_back_the_same(self, kind, trained, tmp_path):
        trained[kind].save(tmp_path / "words.json")
        again = load_tokenizer(tmp_path / "words.json")
        again.save(tmp_path / "again.json")
        assert (tmp_path / "again.json").read_bytes() == (tmp_path / "words.json").read_bytes()
        assert again.ids(TEXTS) == trained[kind].ids(TEXTS)
        assert (again.pad, again.side, again.vocabulary) == (0, "right", trained[kind].vocabulary)

    def test_what_people_write_is_never_a_special_token(self, kind, trained):
        texts = ["<pad>", "a </s> b", "<s><unk>"]
        ids = list(itertools.chain(*trained[kind].ids(texts)))
        assert not {0, 2, 3} & set(ids)

    def test_texts_of_a_dataset_and_of_tuples_are_the_same(self, kind, trained):
        pairs = tuple(zip(TEXTS[::2], TEXTS[1::2], strict=True))
        dataset = TextDataset("made-up", pairs, torch.zeros(len(pairs), dtype=torch.int64), 1)
        assert train_tokenizer(dataset, 600, kind).json == train_tokenizer(pairs, 600, kind).json == trained[kind].json

    def test_empty_and_blank_texts_have_no_tokens(self, kind, trained):
        ids = trained[kind].ids(["", "\n" if kind == "wordpiece" else "", "ab"])
        assert [bool(one) for one in ids] == [False, False, True]


def test_another_process_with_other_threads_gives_the_same_files(trained):
    environment = {**os.environ, "RAYON_NUM_THREADS": "3", "PYTHONHASHSEED": "5"}
    made = subprocess.run(
        [sys.executable, "-c", _PROGRAM], env=environment, input=json.dumps(TEXTS), capture_output=True, text=True
    )
    assert made.stdout.split() == [trained[kind].fingerprint() for kind in ("bpe", "wordpiece")], made.stderr


def test_bpe_loses_nothing(trained):
    """The bytes of a text are those of its tokens, with a space before the first word."""
    from tokenizers.pre_tokenizers import ByteLevel

    texts = ["Ab  c\t\n", "\U0001f600 \U0001f468\u200d\U0001f469", "日本語", "e\u0301 \u202e\x00", " "]
    stands_for = _bytes_of_letters()
    assert set(stands_for) == set(ByteLevel.alphabet())
    for text, ids in zip(texts, trained["bpe"].ids(texts), strict=True):
        raw = bytes(stands_for[letter] for number in ids for letter in trained["bpe"].token_of(number))
        assert raw.decode() == (text if text.startswith(" ") else f" {text}")
        assert 1 not in ids


def _bytes_of_letters():
    """GPT-2's letters for bytes: printable ones stand for themselves, the others for 256, 257, ... in order."""
    plain = [*range(ord("!"), ord("~") + 1), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in plain]
    return {chr(byte): byte for byte in plain} | {chr(256 + place): byte for place, byte in enumerate(others)}


def test_bpe_merges_the_most_frequent_pair_first():
    """By hand: in ' aaab' x 3 and ' aab' x 2, 'aa' is the most frequent pair (counts 6 + 2 = 8 overlapping)."""
    tokenizer = train_tokenizer(["aaab"] * 3 + ["aab"] * 2, vocabulary=261)
    assert tokenizer.vocabulary == 261
    assert tokenizer.token_of(260) == "aa"


def test_wordpiece_is_blind_to_case_and_accents_and_reads_from_the_left(trained):
    tokenizer = trained["wordpiece"]
    word = TEXTS[0].split()[0]
    assert tokenizer.ids([word.upper()]) == tokenizer.ids([word])
    tokens = [tokenizer.token_of(number) for number in tokenizer.ids([word])[0]]
    plain = word.replace("ä", "a").replace("ö", "o").replace("ü", "u")
    assert "".join(token.removeprefix("##") for token in tokens) == plain
    assert all(token.startswith("##") for token in tokens[1:])
    assert tokenizer.ids(["\U0001f600"]) == [[1]]


def test_wordpiece_keeps_the_most_frequent_characters():
    rare = [chr(0x4E00 + number) for number in range(200)]
    texts = ["common words here " * 50, " ".join(rare), f"{rare[0]} {rare[1]} {rare[0]}"]
    tokenizer = train_tokenizer(texts, vocabulary=100, kind="wordpiece")
    assert tokenizer.vocabulary <= 100
    assert tokenizer.ids([rare[0]])[0][0] != 1
    assert tokenizer.ids([rare[150]]) == [[1]]
    assert tokenizer.json == train_tokenizer(texts, vocabulary=100, kind="wordpiece").json


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((["a"], 259), "vocabulary=259 must be a whole number, at least 260 for kind='bpe'"),
        ((["a"], 99, "wordpiece"), "vocabulary=99 must be a whole number, at least 100 for kind='wordpiece'"),
        ((["a"], True), "vocabulary=True must be"),
        ((["a"], 1e3), "vocabulary=1000.0 must be"),
        ((["a"], 300, "wordpieces"), "unknown kind of tokenizer 'wordpieces'; did you mean wordpiece"),
        (([], 300), "texts holds 0 texts and no word in them"),
        ((["", " \n"], 300), "texts holds 2 texts and no word in them"),
        (("one text", 300), r"got one text; write \[text\]"),
        ((["a", ("b", 3)], 300), r"texts\[2\] is int; expected a text"),
        ((["a", "b\ud800"], 300), r"texts\[1\] holds half a character \(\\ud800\) at 1"),
    ],
)
def test_wrong_use_is_one_line(arguments, message):
    with pytest.raises(UsageError, match=message) as caught:
        train_tokenizer(*arguments)
    assert "\n" not in str(caught.value)


def test_without_the_package_its_name_is_said(monkeypatch):
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    for kind in ("bpe", "wordpiece"):
        with pytest.raises(UsageError, match="pip install tokenizers"):
            train_tokenizer(["a"], 300, kind)
