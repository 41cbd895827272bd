"""Tokenizers of Hugging Face folders, made here by the package ``tokenizers`` itself."""

import json
import sys

import pytest
from tokenizers import AddedToken, Tokenizer, models, pre_tokenizers, processors

from jostle.base.errors import UsageError
from jostle.data import load_tokenizer
from jostle.data.text_tokenizer import Slot, TextTokenizer

WORDS = ["a", "is", "it", "late", "no", "who"]


def word_level(specials, processor=None):
    """A tokenizer of whole words; special tokens get the numbers they are listed under."""
    tokens = {**{word: number + 10 for number, word in enumerate(WORDS)}, **specials}
    backend = Tokenizer(models.WordLevel(tokens, unk_token=next(iter(specials))))
    backend.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    backend.add_special_tokens([AddedToken(token, special=True) for token in specials])
    if processor is not None:
        backend.post_processor = processor
    return backend


def bert():
    specials = {"[UNK]": 1, "[PAD]": 0, "[CLS]": 2, "[SEP]": 3}
    return word_level(specials, processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2)))


def roberta():
    specials = {"<unk>": 3, "<s>": 0, "<pad>": 1, "</s>": 2}
    return word_level(specials, processors.RobertaProcessing(("</s>", 2), ("<s>", 0)))


def gpt():
    return word_level({"<|endoftext|>": 9})


def saved(folder, backend, **settings):
    folder.mkdir(exist_ok=True)
    backend.save(str(folder / "tokenizer.json"))
    for name, contents in settings.items():
        (folder / f"{name}.json").write_text(json.dumps(contents), encoding="utf-8")
    return folder


def test_layouts_are_those_of_the_models(tmp_path):
    found = load_tokenizer(saved(tmp_path / "bert", bert()))
    assert found.layout(1) == (Slot(2, 0, 0), Slot(None, 0, 0), Slot(3, 0, 0))
    assert found.layout(2) == (Slot(2, 0, 0), Slot(None, 0, 0), Slot(3, 0, 0), Slot(None, 1, 1), Slot(3, 0, 1))
    found = load_tokenizer(saved(tmp_path / "roberta", roberta()))
    specials = [slot.special for slot in found.layout(2)]
    assert specials == [0, None, 2, 2, None, 2]
    found = load_tokenizer(saved(tmp_path / "gpt", gpt()))
    assert [slot.special for slot in found.layout(2)] == [None, None]
    assert [slot.which for slot in found.layout(2)] == [0, 1]


@pytest.mark.parametrize(
    ("backend", "settings", "pad", "side"),
    [
        (bert, {}, 0, "right"),
        (roberta, {}, 1, "right"),
        (gpt, {}, None, "right"),
        (gpt, {"tokenizer_config": {"pad_token": "<|endoftext|>", "padding_side": "left"}}, 9, "left"),
        (gpt, {"special_tokens_map": {"pad_token": {"content": "<|endoftext|>", "lstrip": False}}}, 9, "right"),
        (roberta, {"tokenizer_config": {"pad_token": None, "padding_side": "left"}}, 1, "left"),
    ],
)
def test_padding_is_the_tokenizers_own(tmp_path, backend, settings, pad, side):
    found = load_tokenizer(saved(tmp_path / "folder", backend(), **settings))
    assert (found.pad, found.side) == (pad, side)
    assert load_tokenizer(tmp_path / "folder" / "tokenizer.json").pad == pad


def test_padding_written_in_the_file_is_known_and_padding_given_wins(tmp_path):
    backend = gpt()
    backend.enable_padding(direction="left", pad_id=9, pad_token="<|endoftext|>")
    backend.enable_truncation(3)
    folder = saved(tmp_path / "folder", backend)
    found = load_tokenizer(folder)
    assert (found.pad, found.side) == (9, "left")
    assert found.ids(["who is it late no", "no"]) == [[15, 11, 12, 13, 14], [14]]  # neither padded nor cut
    given = load_tokenizer(folder, pad="no", side="right")
    assert (given.pad, given.side) == (14, "right")
    given.save(tmp_path / "kept.json")
    assert (load_tokenizer(tmp_path / "kept.json").pad, given.vocabulary) == (14, 16)


def test_names_of_special_tokens_in_a_text_are_text(tmp_path):
    backend = bert()
    backend.pre_tokenizer = pre_tokenizers.Whitespace()  # which parts brackets from words
    assert backend.encode("late[SEP]it", add_special_tokens=False).ids == [13, 3, 12]
    found = load_tokenizer(saved(tmp_path / "bert", backend))
    assert found.ids(["late[SEP]it"]) == [[13, 1, 1, 1, 12]]


def test_more_texts_than_are_handed_over_at_once(tmp_path):
    found = load_tokenizer(saved(tmp_path / "bert", bert()))
    texts = [WORDS[number % 6] for number in range(2500)]
    assert found.ids(texts) == [[10 + number % 6] for number in range(2500)]


@pytest.mark.parametrize(
    ("contents", "message"),
    [
        ("", "cannot be read as a tokenizer.json"),
        ("{}", "cannot be read as a tokenizer.json"),
        ('{"model": 3}', "cannot be read as a tokenizer.json"),
    ],
)
def test_damaged_files_are_one_line(tmp_path, contents, message):
    (tmp_path / "tokenizer.json").write_text(contents, encoding="utf-8")
    with pytest.raises(UsageError, match=message) as caught:
        load_tokenizer(tmp_path)
    assert "\n" not in str(caught.value)
    assert "tokenizer.json" in str(caught.value)


def test_other_wrong_use_is_one_line(tmp_path):
    with pytest.raises(UsageError, match=r"tokenizer folder .* holds no tokenizer.json"):
        load_tokenizer(tmp_path)
    with pytest.raises(UsageError, match=r"none.json does not exist"):
        load_tokenizer(tmp_path / "none.json")
    folder = saved(tmp_path / "folder", gpt())
    with pytest.raises(UsageError, match="has no token '<pad>' to pad with"):
        load_tokenizer(folder, pad="<pad>")
    with pytest.raises(UsageError, match="unknown side 'rigth'; did you mean right"):
        load_tokenizer(folder, side="rigth")
    (folder / "tokenizer_config.json").write_text("{", encoding="utf-8")
    with pytest.raises(UsageError, match=r"tokenizer_config.json is not JSON"):
        load_tokenizer(folder)


def test_a_side_that_is_none_is_refused_in_a_folder(tmp_path):
    with pytest.raises(UsageError, match=r"unknown padding_side .*'middle'"):
        load_tokenizer(saved(tmp_path / "folder", bert(), tokenizer_config={"padding_side": "middle"}))


def test_texts_that_are_no_texts(tmp_path):
    found = load_tokenizer(saved(tmp_path / "bert", bert()))
    with pytest.raises(UsageError, match=r"texts\[1\] is NoneType; expected a text"):
        found.ids(["a", None])
    with pytest.raises(UsageError, match=r"texts\[1030\] holds half a character"):
        found.ids(["a"] * 1030 + ["\udfff"])


def test_a_tokenizer_that_drops_the_probe_is_refused():
    from tokenizers import normalizers

    backend = bert()
    backend.normalizer = normalizers.Replace("a", "")
    with pytest.raises(UsageError, match="makes 0 tokens"):
        TextTokenizer(backend.to_str(), "odd")


def test_fingerprints_tell_tokenizers_apart(tmp_path):
    one, same, other = (
        load_tokenizer(saved(tmp_path / name, make()))
        for name, make in (("one", bert), ("same", bert), ("other", roberta))
    )
    assert one.fingerprint() == same.fingerprint() != other.fingerprint()
    assert "vocabulary=16, pad=0, side='right'" in repr(one)


def test_without_the_package_its_name_is_said(monkeypatch, tmp_path):
    folder = saved(tmp_path / "bert", bert())
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    with pytest.raises(UsageError, match="pip install tokenizers"):
        load_tokenizer(folder)
