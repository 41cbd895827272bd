import csv
import gzip

import pytest

from jostle.base.errors import UsageError
from jostle.data.text_tables import decode, read_bytes, read_pairs, split_rows


def written(path, raw):
    path.write_bytes(raw)
    return path


def test_pairs_are_read_by_the_letter(tmp_path):
    """Quotation marks are literal, other line ends belong to the text, the last line needs no end."""
    raw = '1\t"one\ttwo"\n0\tthree\u2028four\x85\t""five\r\n1\t\t6'.encode()
    rows = read_pairs(written(tmp_path / "a.tsv", raw), columns=3, texts=(1, 2))
    assert rows.texts == (('"one', 'two"'), ("three\u2028four\x85", '""five'), ("", "6"))
    assert rows.labels.tolist() == [1, 0, 1]
    assert rows.note == ""


def test_a_byte_order_mark_and_a_header(tmp_path):
    raw = b"\xef\xbb\xbflabel\ta\tb\r\n0\tx\ty\r\n"
    rows = read_pairs(written(tmp_path / "a.tsv", raw), columns=3, texts=(1, 2), header=("label", "a", "b"))
    assert (rows.texts, rows.labels.tolist()) == ((("x", "y"),), [0])
    with pytest.raises(UsageError, match=r"a.tsv row 0 reads \('0', 'x', 'y'\); expected the columns label, a, b"):
        read_pairs(written(tmp_path / "a.tsv", b"0\tx\ty\n"), columns=3, texts=(1, 2), header=("label", "a", "b"))


def test_bad_rows_are_left_out_and_counted(tmp_path):
    raw = b"1\ta\tb\n2\ta\tb\n1\tonly\n\n0\tc\td\textra\n0\tc\xe9\td\xff\n"
    rows = read_pairs(written(tmp_path / "a.tsv", raw), columns=3, texts=(1, 2))
    assert rows.texts == (("a", "b"), ("c\ufffd", "d\ufffd"))
    assert rows.note == (
        "3 of 5 rows left out: not 3 columns with a label 0 or 1; "
        "1 of 2 rows hold characters that are not UTF-8, replaced by U+FFFD"
    )


@pytest.mark.parametrize("raw", [b"", b"\n\n", b"a,b,c\n", b"x\ty\tz\n"])
def test_a_file_without_a_good_row(tmp_path, raw):
    with pytest.raises(UsageError, match=r"a.tsv holds no row as expected: 3 columns with tabs between them"):
        read_pairs(written(tmp_path / "a.tsv", raw), columns=3, texts=(1, 2))


def test_packed_files(tmp_path):
    packed = gzip.compress(b"contents " * 100)
    assert read_bytes(written(tmp_path / "a.csv.gz", packed)) == b"contents " * 100
    with pytest.raises(UsageError, match="cut short: its gzip stream has no end"):
        read_bytes(written(tmp_path / "a.csv.gz", packed[:-9]))
    with pytest.raises(UsageError, match="damaged or no gzip file"):
        read_bytes(written(tmp_path / "a.csv.gz", b"plain"))
    with pytest.raises(UsageError, match=r"b.csv does not exist"):
        read_bytes(tmp_path / "b.csv")
    with pytest.raises(UsageError, match="cannot be read: Is a directory"):
        read_bytes(tmp_path)


def test_a_file_in_another_encoding_names_the_line(tmp_path):
    with pytest.raises(UsageError, match=r"a.csv line 2 is not UTF-8 \(byte 0xe9\); save the file as UTF-8"):
        decode("label\ncafé\n".encode("latin-1"), tmp_path / "a.csv")
    assert decode("\ufeffcafé".encode(), tmp_path / "a.csv") == "café"


def test_quoted_fields_hold_separators_line_ends_and_quotes(tmp_path):
    rows = [["text", "label"], ['he said "no", twice', "1"], ["two\nlines\r\nhere", "0"], ["", ""]]
    with (tmp_path / "a.csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows(rows)
    text = (tmp_path / "a.csv").read_bytes().decode()
    assert list(split_rows(text, ",", True, tmp_path)) == rows


def test_literal_quotes_and_blank_lines(tmp_path):
    assert list(split_rows('a\t"b\n\n"c" d\te\r\n', "\t", False, tmp_path)) == [["a", '"b'], ['"c" d', "e"]]


@pytest.mark.parametrize(
    ("text", "where"),
    [('a,b\n1,"x\n2,y\n', "row 1"), ('a,b\n1,x\n2,"x"y\n3,z\n', "row 2"), ('"a,b\n1,x\n', "the header")],
)
def test_a_quote_that_is_not_closed_names_the_row(tmp_path, text, where):
    with pytest.raises(UsageError, match=f"a.csv {where} cannot be read .*is a quotation mark not closed") as caught:
        list(split_rows(text, ",", True, tmp_path / "a.csv"))
    assert "\n" not in str(caught.value)


def test_long_fields_are_read_and_the_limit_of_the_process_is_put_back(tmp_path):
    before = csv.field_size_limit()
    text = "word " * 100_000
    assert list(split_rows(f"a,b\n{text},1\n", ",", True, tmp_path))[1] == [text, "1"]
    with pytest.raises(UsageError):
        list(split_rows('"a', ",", True, tmp_path))
    unfinished = split_rows("a,b\n1,2\n", ",", True, tmp_path)
    next(unfinished)
    assert csv.field_size_limit() == before
