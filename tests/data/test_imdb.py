"""IMDB's format, in small files made here."""

import csv
import gzip
import io

import pytest
import torch

from jostle import data
from jostle.base.errors import UsageError
from jostle.data import imdb
from jostle.data.inventory import describe
from jostle.data.text_tables import LabelledRows

ROWS = [(row // 10, f'review "{row}", good<br />\nand long') for row in range(20)]
ROWS = [*ROWS[:3], ROWS[1], *ROWS[3:], ROWS[12]]  # two repeats


@pytest.fixture(autouse=True)
def _small(monkeypatch):
    monkeypatch.setattr(imdb, "TEST_PER_CLASS", 3)


def make(folder, rows=ROWS, names=("label", "text")):
    folder.mkdir(parents=True, exist_ok=True)
    text = io.StringIO()
    csv.writer(text).writerows([names, *rows])
    (folder / imdb.FILE).write_bytes(gzip.compress(text.getvalue().encode(), mtime=0))
    return folder


def load(folder, split="train", **options):
    return data.load("imdb", split, folder=folder, check=False, **options)


def test_repeats_are_left_out_and_a_part_is_held_out(tmp_path):
    train, test = load(make(tmp_path / "imdb").parent), load(tmp_path, "test")
    assert (len(train), len(test)) == (14, 6)
    assert test.labels.bincount().tolist() == [3, 3]
    found = [*zip(train.labels.tolist(), train.texts, strict=True), *zip(test.labels.tolist(), test.texts, strict=True)]
    assert sorted(found) == sorted({(label, (text,)) for label, text in ROWS})
    assert len(set(train.labels[:8].tolist())) == 2  # mixed, though the file is sorted
    note = "from the official training split: 2 repeats left out, 3 of each class held out as the test split"
    assert train.note == test.note == note
    assert load(tmp_path, limit=4, balanced=True).labels.bincount().tolist() == [2, 2]


def test_the_package_gives_the_same_dataset(tmp_path, monkeypatch):
    rows = LabelledRows(tuple((text,) for _, text in ROWS), torch.tensor([label for label, _ in ROWS]).numpy())
    monkeypatch.setattr(imdb, "read_reviews", lambda source, dataset: rows)
    for split in ("train", "test"):
        from_package, from_file = data.load("imdb", split), load(make(tmp_path), split)
        assert from_package.texts == from_file.texts
        assert torch.equal(from_package.labels, from_file.labels)
        assert from_package.note == from_file.note
    state = describe("imdb", data.source_of("imdb"), None)
    assert (state.state, state.licence) == ("ok", "none stated; cite Maas et al. (2011)")
    assert data.fetch("imdb") == (None, [])


def test_a_file_is_preferred_to_the_package(tmp_path, monkeypatch):
    monkeypatch.setattr(imdb, "read_reviews", None)
    assert len(load(make(tmp_path))) == 14
    state = describe("imdb", data.source_of("imdb"), tmp_path)
    assert state.state == "wrong"
    with pytest.raises(UsageError, match=r"imdb_train.csv.gz has .* bytes, expected 12,829,685; replace it"):
        data.load("imdb", folder=tmp_path)


@pytest.mark.parametrize(
    ("rows", "names", "message"),
    [
        (ROWS[:6], ("label", "text"), r"column 'label' holds \['0'\]; expected 0 and 1"),
        (ROWS[8:15], ("label", "text"), "3 negative and 4 positive reviews; 3 of each are held out"),
        (ROWS, ("label", "review"), "unknown column of .*imdb_train.csv.gz 'text'"),
        ([("pos", "a"), ("neg", "b")], ("label", "text"), r"holds \['neg', 'pos'\]; expected 0 and 1"),
    ],
)
def test_wrong_files_are_one_line(tmp_path, rows, names, message):
    with pytest.raises(UsageError, match=message):
        load(make(tmp_path, rows, names))
