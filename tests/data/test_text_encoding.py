"""Texts as numbers, against the package ``tokenizers`` doing all of it on its own."""

import itertools

import numpy as np
import pytest
import torch
from tokenizers import Tokenizer

from jostle.base.errors import UsageError
from jostle.data import Dataset, TextDataset, encode, encode_mapping, load_tokenizer, train_tokenizer
from jostle.data.text_encoding import longest_first
from tests.data.test_text_tokenizer import WORDS, bert, gpt, roberta, saved
from tests.data.test_train_tokenizer import TEXTS


@pytest.fixture(scope="module")
def tokenizer():
    return train_tokenizer(TEXTS, 500)


def made_up(width, count=60, seed=0, longest=12):
    """Texts of 1 to ``longest`` known words."""
    generator = np.random.default_rng(seed)

    def text():
        return " ".join(generator.choice(WORDS, generator.integers(1, longest + 1)))

    texts = tuple(tuple(text() for _ in range(width)) for _ in range(count))
    return TextDataset("made-up", texts, torch.from_numpy(generator.integers(0, 2, count)), 2, "test", "a note")


def by_the_package(tokenizer, dataset, max_length, side="right"):
    """Ids, masks and types as the package makes them, cut and padded by itself."""
    backend = Tokenizer.from_str(tokenizer.json)
    backend.encode_special_tokens = True
    backend.enable_truncation(max_length, strategy="longest_first")
    pad = 0 if tokenizer.pad is None else tokenizer.pad
    backend.enable_padding(direction=side, pad_id=pad, pad_token=tokenizer.token_of(pad))
    rows = backend.encode_batch([texts if len(texts) == 2 else texts[0] for texts in dataset.texts])
    return {
        "input_ids": torch.tensor([row.ids for row in rows]),
        "attention_mask": torch.tensor([row.attention_mask for row in rows]),
        "special_tokens_mask": torch.tensor([row.special_tokens_mask for row in rows]),
        "token_type_ids": torch.tensor([row.type_ids for row in rows]),
    }


@pytest.mark.parametrize("max_length", [6, 7, 11, 14, 25, 128])
@pytest.mark.parametrize("width", [1, 2])
@pytest.mark.parametrize("make", [bert, roberta, None], ids=["bert", "roberta", "ours"])
def test_the_mapping_is_what_the_package_makes(make, width, max_length, tokenizer, tmp_path):
    used = tokenizer if make is None else load_tokenizer(saved(tmp_path / "folder", make()))
    dataset = made_up(width)
    for side in ("right", "left"):
        made = encode_mapping(dataset, used, max_length, side=side, token_types=True)
        wanted = by_the_package(used, dataset, max_length, side)
        assert made.keys() == wanted.keys()
        for key in made:
            assert made[key].dtype == torch.int64
            assert torch.equal(made[key], wanted[key]), key


@pytest.mark.parametrize("width", [1, 2])
@pytest.mark.parametrize("max_length", [6, 14, 128])
def test_ids_are_padded_with_zero_on_the_right(width, max_length, tokenizer):
    dataset = made_up(width)
    encoded = encode(dataset, tokenizer, max_length)
    assert isinstance(encoded, Dataset)
    assert torch.equal(encoded.inputs, by_the_package(tokenizer, dataset, max_length)["input_ids"])
    assert torch.equal(encoded.labels, dataset.labels)
    assert (encoded.name, encoded.classes, encoded.split) == ("made-up", 2, "test")
    lengths = (encoded.inputs != 0).sum(1)
    assert lengths.max() == encoded.inputs.shape[1] <= max_length
    assert all((row[:length] != 0).all() for row, length in zip(encoded.inputs, lengths, strict=True))


def test_a_text_and_a_pair_by_hand(tokenizer):
    ids = dict(zip(("a", "b"), tokenizer.ids(["who is", "late"]), strict=True))
    labels = torch.tensor([0])
    alone = encode(TextDataset("alone", (("who is",),), labels, 1), tokenizer)
    assert alone.inputs.tolist() == [[2, *ids["a"], 3]]
    pair = encode(TextDataset("pair", (("who is", "late"),), labels, 1), tokenizer)
    assert pair.inputs.tolist() == [[2, *ids["a"], 3, 3, *ids["b"], 3]]


def test_the_note_counts_what_was_cut(tokenizer):
    dataset = made_up(1)
    lengths = [len(ids) + 2 for ids in tokenizer.ids([text for (text,) in dataset.texts])]
    limit = int(np.median(lengths))
    cut = sum(length > limit for length in lengths)
    assert 0 < cut < 60
    assert encode(dataset, tokenizer, limit).note == f"a note; {cut} of 60 examples cut to {limit} tokens"
    assert encode(dataset, tokenizer, max(lengths)).note == "a note"


def test_longest_first_is_taking_tokens_off_one_by_one():
    for first, second, room in itertools.product(range(9), range(9), range(2, 14)):
        lengths = [first, second]
        while sum(lengths) > room:
            lengths[1 if lengths[1] > lengths[0] else 0] -= 1
        assert longest_first([first, second], room) == lengths or (
            # Where both are cut to an odd room, the text that was longer, or else the second, has one more.
            sorted(longest_first([first, second], room)) == sorted(lengths) and min(first, second) > room // 2
        )
        assert sum(longest_first([first, second], room)) == min(first + second, room)
    assert longest_first([7], 3) == [3]


def test_odd_texts(tokenizer):
    """Empty, blank, emoji, very long and repeated texts: right, each in its own way."""
    long = " ".join(TEXTS * 5)
    assert len(long.split()) > 10_000
    texts = (("",), ("   ",), ("\U0001f600",), (long,), (TEXTS[0],), (TEXTS[0],))
    dataset = TextDataset("odd", texts, torch.arange(6) % 2, 2)
    encoded = encode(dataset, tokenizer)
    assert encoded.inputs.shape == (6, 128)
    assert encoded.inputs[0].tolist() == [2, 3] + [0] * 126
    assert encoded.inputs[1, 0] == 2
    assert (encoded.inputs[2] != 0).sum() == len(tokenizer.ids(["\U0001f600"])[0]) + 2
    assert encoded.inputs[3, 1:127].tolist() == tokenizer.ids([long])[0][:126]
    assert encoded.inputs[3, 127] == 3
    assert torch.equal(encoded.inputs[4], encoded.inputs[5])
    assert encoded.note == "1 of 6 examples cut to 128 tokens"
    mapping = encode_mapping(dataset, tokenizer)
    assert mapping["attention_mask"][0].sum() == 2
    assert mapping["special_tokens_mask"][0].all()
    assert torch.equal(mapping["input_ids"], encoded.inputs)


def test_two_very_long_texts_cost_no_more_than_their_tokens(tokenizer):
    long = " ".join(TEXTS * 5)
    encoded = encode(TextDataset("long", ((long, long),), torch.tensor([0]), 1), tokenizer)
    assert encoded.inputs.shape == (1, 128)
    assert (encoded.inputs == 3).sum() == 3


def test_empty_texts_of_pairs(tokenizer):
    texts = (("", ""), ("who", ""), ("", "who"))
    encoded = encode(TextDataset("empty", texts, torch.zeros(3, dtype=torch.int64), 1), tokenizer)
    [who] = tokenizer.ids(["who"])
    assert encoded.inputs[0, :4].tolist() == [2, 3, 3, 3]
    assert encoded.inputs[1].tolist() == [2, *who, 3, 3, 3]
    assert encoded.inputs[2].tolist() == [2, 3, 3, *who, 3]


def test_what_people_write_is_never_padding(tokenizer):
    texts = (("<pad> <s> </s>",), ("a",))
    encoded = encode(TextDataset("odd", texts, torch.tensor([0, 1]), 2), tokenizer)
    first = encoded.inputs[0].tolist()
    assert first.count(0) == 0
    assert (first.count(2), first.count(3)) == (1, 1)


def test_a_tokenizer_without_special_tokens(tmp_path):
    folder = saved(tmp_path / "gpt", gpt())
    dataset = made_up(2)
    with pytest.raises(UsageError, match=r"has no padding token; name one, for example load_tokenizer\(path, pad="):
        encode_mapping(dataset, load_tokenizer(folder))
    used = load_tokenizer(folder, pad="<|endoftext|>", side="left")
    made = encode_mapping(dataset, used, 9)
    assert "token_type_ids" not in made
    wanted = by_the_package(used, dataset, 9, "left")
    assert all(torch.equal(made[key], wanted[key]) for key in made)
    assert made["attention_mask"][:, -1].all()
    empty = TextDataset("empty", (("a",), ("",)), torch.tensor([0, 0]), 1)
    with pytest.raises(UsageError, match=r"'empty': texts\[1\] has no tokens with .*; leave empty texts out"):
        encode_mapping(empty, used)


def test_wrong_use_is_one_line(tokenizer, tmp_path):
    with pytest.raises(
        UsageError, match=r"pads with 1, but in a tensor of ids 0 is padding; use jostle.data.encode_map"
    ):
        encode(made_up(1), load_tokenizer(saved(tmp_path / "roberta", roberta())))
    words = TextDataset("words", (("a",), ("it [PAD] no",)), torch.tensor([0, 0]), 1)  # a word that is the padding
    with pytest.raises(UsageError, match=r"'words': texts\[1\] holds '\[PAD\]', which .* reads as padding"):
        encode(words, load_tokenizer(saved(tmp_path / "bert", bert())))
    with pytest.raises(UsageError, match="pads with None"):
        encode(made_up(1), load_tokenizer(saved(tmp_path / "gpt", gpt())))
    for width, least in ((1, 3), (2, 6)):
        assert encode(made_up(width), tokenizer, least).inputs.shape == (60, least)
        for wrong in (least - 1, 0, -5, 12.0, True, "20"):
            with pytest.raises(UsageError, match=f"max_length={wrong!r} must be a whole number, at least {least}"):
                encode(made_up(width), tokenizer, wrong)
    with pytest.raises(UsageError, match="unknown side 'centre'"):
        encode_mapping(made_up(1), tokenizer, side="centre")
