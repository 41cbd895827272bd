"""Files of texts of one's own, as ``csv:FILE``."""

import csv
import gzip

import pytest

from jostle import data
from jostle.base.errors import UsageError
from jostle.data.text_csv import load_csv


def write(path, rows, names=("text", "label")):
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([names, *rows])
    return path


@pytest.fixture
def reviews(tmp_path):
    rows = [("good, really", "pos"), ('so "bad"', "neg"), ("two\nlines", "pos"), ("", "neg"), ("\U0001f600", "pos")]
    return write(tmp_path / "reviews.csv", rows)


def test_words_as_labels_are_numbered_in_sorted_order(reviews):
    dataset = data.load(f"csv:{reviews}")
    assert isinstance(dataset, data.TextDataset)
    assert dataset.texts == (("good, really",), ('so "bad"',), ("two\nlines",), ("",), ("\U0001f600",))
    assert (dataset.labels.tolist(), dataset.classes) == ([1, 0, 1, 0, 1], 2)
    assert (dataset.name, dataset.split) == ("csv:reviews.csv", "train")
    assert dataset.note == "one file without splits; labels: 0 = neg, 1 = pos"


@pytest.mark.parametrize(
    ("labels", "numbers", "classes", "note"),
    [
        (["0", "2", "0"], [0, 2, 0], 3, ""),
        ([" 1", "0 ", "1"], [1, 0, 1], 2, ""),
        (["-1", "1", "10"], [0, 1, 2], 3, "; labels: 0 = -1, 1 = 1, 2 = 10"),
        (["1.0", "0.0", "1.0"], [1, 0, 1], 2, "; labels: 0 = 0.0, 1 = 1.0"),
    ],
)
def test_numbers_as_labels(tmp_path, labels, numbers, classes, note):
    dataset = load_csv(write(tmp_path / "a.csv", [("text", label) for label in labels]))
    assert (dataset.labels.tolist(), dataset.classes) == (numbers, classes)
    assert dataset.note == f"one file without splits{note}"


def test_many_words_as_labels_are_not_all_listed(tmp_path):
    dataset = load_csv(write(tmp_path / "a.csv", [("text", f"word {number:02d}") for number in range(20)]))
    assert dataset.classes == 20
    assert dataset.note.endswith("9 = word 09, ...")


def test_pairs_and_names_of_columns(tmp_path):
    rows = [(7, "late?", "early?", "0"), (8, "who?", "whom?", "1")]
    path = write(tmp_path / "pairs.csv", rows, ("id", "question1", "question2", "is_duplicate"))
    dataset = data.load(f"csv:{path}:text=question1,second=question2,label=is_duplicate")
    assert dataset.texts == (("late?", "early?"), ("who?", "whom?"))
    assert dataset.labels.tolist() == [0, 1]


def test_tabs_literal_quotes_and_packing(tmp_path):
    raw = b'\xef\xbb\xbftext\tlabel\r\n"so\t1\r\n5" nails\t0\r\n'
    (tmp_path / "a.tsv.gz").write_bytes(gzip.compress(raw))
    assert load_csv(tmp_path / "a.tsv.gz").texts == (('"so',), ('5" nails',))
    (tmp_path / "b.tsv").write_bytes(b'text\tlabel\n"a ""b"" c"\t1\n')
    assert load_csv(tmp_path / "b.tsv").texts == (('"a ""b"" c"',),)
    assert data.load(f"csv:{tmp_path / 'b.tsv'}:quoted=true").texts == (('a "b" c',),)


def test_limit_seed_and_balance_reach_the_file(tmp_path):
    spec = f"csv:{write(tmp_path / 'a.csv', [(f'text {row}', row % 2) for row in range(20)])}"
    assert data.load(spec, limit=3).texts == (("text 0",), ("text 1",), ("text 2",))
    some = data.load(spec, limit=6, seed=1, balanced=True)
    assert some.labels.bincount().tolist() == [3, 3]
    assert some.texts == data.load(spec, limit=6, seed=1, balanced=True).texts
    assert some.texts != data.load(spec, limit=6, balanced=True).texts


def test_a_test_split_is_held_out_without_repeats_on_both_sides(tmp_path):
    rows = [(f"text {row % 30}", row % 2) for row in range(50)]
    spec = f"csv:{write(tmp_path / 'a.csv', rows)}:test=0.2"
    train, test = (data.load(spec, split) for split in ("train", "test"))
    assert len(train) + len(test) == 50
    assert len(set(test.texts)) == 6
    assert not set(train.texts) & set(test.texts)
    assert test.note == "20% of the distinct texts held out as the test split"
    assert test.split == "test"
    assert [int(text.split()[1]) % 2 for (text,) in test.texts] == test.labels.tolist()


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (["only text"], "a.csv row 2, column 'label': missing, the row ends after 1 of 2 columns"),
        (["text", "1", "more"], "a.csv row 2, column 'label': 3 columns where the line of names has 2"),
        (["text", " "], "a.csv row 2, column 'label': empty, expected a label"),
    ],
)
def test_a_bad_row_is_named_or_skipped(tmp_path, row, message):
    path = write(tmp_path / "a.csv", [("good", "1"), row, ("fine", "0")])
    with pytest.raises(UsageError, match=message) as caught:
        data.load(f"csv:{path}")
    assert "\n" not in str(caught.value)
    dataset = data.load(f"csv:{path}:skip=true")
    assert dataset.texts == (("good",), ("fine",))
    assert dataset.note == "one file without splits; 1 rows left out: wrong number of columns or no label"


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.csv", "", "a.csv is empty; expected a line with the names of its columns"),
        ("a.csv", "text,label\n", "a.csv holds no rows that can be used below its line of names"),
        ("a.csv", "txt,label\na,1\n", "unknown column of .*a.csv 'text'; did you mean txt"),
        ("a.csv", "text,class\na,1\n", "unknown column of .*a.csv 'label'"),
        ("a.csv", "text,text,label\na,b,1\n", "a.csv has 2 columns called 'text'; rename all but one"),
        ("a.csv", 'text,label\n"a,1\n', "a.csv row 1 cannot be read .*; is a quotation mark not closed"),
        (
            "a.csv",
            "text,label\na,404289\n",
            "column 'label' has a label 404289 in 1 rows; .* is it the column of labels",
        ),
        ("a.xlsx", "text,label\na,1\n", r"a.xlsx must end in .csv \(commas\) or .tsv \(tabs\), and perhaps .gz"),
    ],
)
def test_bad_files_are_one_line(tmp_path, name, text, message):
    (tmp_path / name).write_text(text, encoding="utf-8")
    with pytest.raises(UsageError, match=message) as caught:
        data.load(f"csv:{tmp_path / name}")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (":txt=a", "unknown option of csv 'txt'; did you mean text"),
        (":skip=maybe", "skip=maybe must be true or false"),
        (":test=half", "test=half must be a number above 0 and below 1"),
        (":test=1", "test=1.0 must be a finite number above 0 and below 1"),
        (":test=nan", "test=nan must be a finite number above 0 and below 1"),
        (":test=0.01", "reviews.csv holds 5 rows, too few to hold out test=0.01"),
    ],
)
def test_bad_options_are_one_line(reviews, options, message):
    with pytest.raises(UsageError, match=message):
        data.load(f"csv:{reviews}{options}")


def test_bad_specs(reviews, tmp_path):
    with pytest.raises(UsageError, match="must read csv:FILE"):
        data.load("csv:")
    with pytest.raises(UsageError, match=r"none.csv does not exist"):
        data.load(f"csv:{tmp_path / 'none.csv'}")
    with pytest.raises(UsageError, match="unknown split 'valid'"):
        data.load(f"csv:{reviews}", "valid")
    with pytest.raises(UsageError, match=r"limit=.* must be a whole number"):
        data.load(f"csv:{reviews}", limit=0)
    with pytest.raises(UsageError, match=r"cannot take 6 of the 5 train examples of 'csv:reviews.csv'"):
        data.load(f"csv:{reviews}", limit=6)


def test_semicolons_of_spreadsheets(tmp_path):
    (tmp_path / "a.csv").write_text('text;label\n"well; done";1\nso, so;0\n')
    found = load_csv(tmp_path / "a.csv")
    assert found.texts == (("well; done",), ("so, so",))
    assert found.labels.tolist() == [1, 0]
