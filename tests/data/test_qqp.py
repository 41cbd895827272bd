"""The format of the balanced Quora pairs, in small files made here."""

import pytest

from jostle import data
from jostle.base.errors import UsageError
from jostle.data.inventory import describe

TRAIN, TEST = "bimpm_dev.tsv", "bimpm_test.tsv"


def make(folder, name, raw):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(raw)


def load(folder, split="train", **options):
    return data.load("qqp", split, folder=folder, check=False, **options)


def test_both_splits_by_the_letter(tmp_path):
    make(tmp_path / "qqp", TRAIN, 'Is it "late"?\tIs "it late ?\t'.join(["1\t", "7\n"]).encode() + b"0\ta\tb\t8\n")
    make(tmp_path / "qqp", TEST, b"0\tc\td\t9\n")
    train, test = load(tmp_path), load(tmp_path, "test")
    assert train.texts == (('Is it "late"?', 'Is "it late ?'), ("a", "b"))
    assert (train.labels.tolist(), train.classes, train.name) == ([1, 0], 2, "qqp")
    assert train.note == "the development pairs of the balanced partition of arXiv 1702.03814"
    assert (test.texts, test.split) == ((("c", "d"),), "test")
    assert test.note == "the test pairs of the balanced partition of arXiv 1702.03814"


def test_broken_characters_and_rows_are_said_in_the_note(tmp_path):
    make(tmp_path, TRAIN, b"1\tcaf\xe9\tb\t1\n0\ta\tb\t2\n0\ta\tb\n")
    train = load(tmp_path)
    assert train.texts[0] == ("caf\ufffd", "b")
    assert train.note.endswith(
        "1702.03814; 1 of 3 rows left out: not 4 columns with a label 0 or 1; "
        "1 of 2 rows hold characters that are not UTF-8, replaced by U+FFFD"
    )


def test_one_file_is_enough_for_its_split(tmp_path):
    make(tmp_path, TEST, b"0\tc\td\t9\n")
    assert len(load(tmp_path, "test")) == 1
    with pytest.raises(UsageError, match=rf"dataset 'qqp' \(train\) needs {TRAIN}, not found in"):
        load(tmp_path)


def test_files_cannot_be_downloaded_and_the_error_says_where_they_are(tmp_path):
    origin = "dev.tsv and test.tsv of Quora_question_pair_partition"
    for call in (lambda: data.load("qqp"), lambda: data.fetch("qqp", tmp_path, progress=False)):
        with pytest.raises(UsageError, match=origin) as caught:
            call()
        assert TRAIN in str(caught.value)
        assert "\n" not in str(caught.value)
    assert not (tmp_path / "qqp").exists()
    state = describe("qqp", data.source_of("qqp"), None)
    assert state.state == "missing"
    assert state.note.startswith(f"by hand: {origin}")


def test_a_file_that_is_not_the_known_one(tmp_path):
    make(tmp_path, TRAIN, b"1\ta\tb\t1\n")
    with pytest.raises(UsageError, match=r"bimpm_dev.tsv has 8 bytes, expected 1,274,548; replace it \(dev.tsv and"):
        data.load("qqp", folder=tmp_path)
