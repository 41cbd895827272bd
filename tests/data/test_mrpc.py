"""MRPC's format, in small files made here."""

import pytest

from jostle import data
from jostle.base.errors import UsageError
from jostle.data.inventory import describe

TRAIN, TEST = "msr_paraphrase_train.txt", "msr_paraphrase_test.txt"
HEADER = "Quality\t#1 ID\t#2 ID\t#1 String\t#2 String"


def make(folder, name, rows, header=HEADER):
    """A file as published: byte order mark, CRLF, quotation marks as they are."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = [header, *("\t".join(map(str, row)) for row in rows)]
    (folder / name).write_bytes(("\ufeff" + "".join(f"{line}\r\n" for line in lines)).encode())


ROWS = [
    (1, 11, 12, 'The shop is "open", he said.', 'He said: "The shop is open.'),
    (0, 13, 14, "Prices rose 5 %.", "Prices fell."),
    (1, 15, 16, "Café, naïve — yes", "'"),
]


def load(folder, split="train", **options):
    return data.load("mrpc", split, folder=folder, check=False, download=False, **options)


def test_both_splits_by_the_letter(tmp_path):
    make(tmp_path / "mrpc", TRAIN, ROWS)
    make(tmp_path / "mrpc", TEST, ROWS[1:2])
    train, test = load(tmp_path), load(tmp_path, "test")
    assert train.texts == tuple((first, second) for *_, first, second in ROWS)
    assert (train.labels.tolist(), train.classes) == ([1, 0, 1], 2)
    assert (train.name, train.split, train.note) == ("mrpc", "train", "")
    assert test.texts == (("Prices rose 5 %.", "Prices fell."),)
    assert test.split == "test"
    assert load(tmp_path, limit=2, seed=0).texts == train.subset(2, seed=0).texts


def test_bad_rows_are_said_in_the_note(tmp_path):
    make(tmp_path, TRAIN, [*ROWS, (1, 17, 18, "only one"), ("x", 1, 2, "a", "b")])
    train = load(tmp_path)
    assert len(train) == 3
    assert train.note == "2 of 5 rows left out: not 5 columns with a label 0 or 1"


def test_a_file_with_other_columns(tmp_path):
    make(tmp_path, TRAIN, ROWS, header="index\tsentence1\tsentence2\tlabel")
    with pytest.raises(UsageError, match=f"{TRAIN} row 0 reads .*; expected the columns Quality, #1 ID"):
        load(tmp_path)


def test_a_file_that_is_not_the_known_one(tmp_path):
    make(tmp_path, TRAIN, ROWS)
    with pytest.raises(UsageError, match=r"dataset 'mrpc': .*train.txt has .* bytes, expected .*; replace it \(publ"):
        data.load("mrpc", folder=tmp_path, download=False)


def test_each_known_copy_is_right(tmp_path, monkeypatch):
    """A second copy with another checksum is read and called right, and only these two are."""
    import hashlib
    from dataclasses import replace

    from jostle.data.mrpc import Mrpc

    make(tmp_path / "mrpc", TRAIN, ROWS)
    raw = (tmp_path / "mrpc" / TRAIN).read_bytes()
    other = replace(Mrpc.files[0], size=len(raw), sha256=hashlib.sha256(raw).hexdigest())
    monkeypatch.setattr(Mrpc, "other_copies", (other,))
    assert len(data.load("mrpc", folder=tmp_path, download=False)) == 3
    state = describe("mrpc", data.source_of("mrpc"), tmp_path)
    assert [file.state for file in state.files] == ["ok", "missing"]
    (tmp_path / "mrpc" / TRAIN).write_bytes(raw + b"\n")
    state = describe("mrpc", data.source_of("mrpc"), tmp_path)
    assert [file.state for file in state.files] == ["wrong", "missing"]


def test_without_files_the_error_says_what_to_do(tmp_path, cache):
    with pytest.raises(UsageError) as caught:
        data.load("mrpc", download=False)
    line = str(caught.value)
    assert line.startswith(f"dataset 'mrpc' (train) needs {TRAIN}, not found in {cache} (cache)")
    assert line.endswith(f"put them in {cache / 'mrpc'}, or run jostle data get mrpc with a network")
