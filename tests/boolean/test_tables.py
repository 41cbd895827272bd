import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jostle.base.errors import FailureError, UsageError
from jostle.boolean.tables import read_table, write_table
from tests.properties.checked import MODEST

XOR = [-1, 1, 1, -1]


def in_file(tmp_path, text, name="f.txt"):
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    "text",
    [
        "0110",
        "0110\n",
        "# f(x) = x1 xor x2\n\n  0110  # all four values\n",
        "0 1 1 0",
        "0,1,1,0\n",
        "0\n1\n1\n0\n",
        "-1 1 1 -1",
        "-1,1,1,-1",
        "-1, 1,\n1, -1,\n",
        "-1.0 +1 1e0\t-1\r\n",
        "\ufeff0110\n",
    ],
)
@pytest.mark.parametrize("name", ["f.txt", "f.csv", "f.TXT"])
def test_signs_in_text(tmp_path, text, name):
    table = read_table(in_file(tmp_path, text, name))
    assert table.dtype == np.int8
    assert table.tolist() == XOR


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0.0 1.0 1.0 0.0", [0, 1, 1, 0]),  # a decimal point makes numbers of them
        ("0 1 1 0.5", [0, 1, 1, 0.5]),
        ("0 1", [-1, 1]),
        ("01", [-1, 1]),
        ("0 0 0 0", [-1, -1, -1, -1]),
        ("-1 0 1 1", [-1, 0, 1, 1]),
        ("10.0 11.0", [10, 11]),
        ("1e-3,-2.5", [0.001, -2.5]),
    ],
)
def test_how_values_are_written_decides_what_they_are(tmp_path, text, expected):
    assert read_table(in_file(tmp_path, text)).tolist() == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty"),
        ("# nothing but a comment\n", "is empty"),
        ("1", "has 1 values; expected 2.n"),
        ("0.5", "has 1 values; expected 2.n"),
        ("011", "has 3 values; expected 2.n"),
        ("1 -1 1", "has 3 values; expected 2.n"),
        ("1 -1\n1 x", "line 2: 'x' is not a number"),
        ("value\n1\n-1\n", "line 1: 'value' is not a number; a heading needs a #"),
        ("1;-1", "line 1: '1;-1' is not a number"),
        ("1_0 2", "line 1: '1_0' is not a number"),
        ("1 nan", "line 1: 'nan' is not finite"),
        ("1\n-inf", "line 2: '-inf' is not finite"),
        ("1,,1,1", "line 1: nothing before comma 2"),
        (",1", "line 1: nothing before comma 1"),
        ("0110\n1001", "line 1: '0110' could be bits or a number"),
        ("1 0\n10 11", "line 2: '10' could be bits or a number"),
        ("x" * 500, f"'{'x' * 20}...' is not a number"),
    ],
)
def test_what_cannot_be_read_is_one_line_with_the_file_and_the_place(tmp_path, text, message):
    path = in_file(tmp_path, text)
    with pytest.raises(UsageError, match=message) as caught:
        read_table(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("array", "expected", "dtype"),
    [
        (np.array([False, True, True, False]), XOR, np.int8),
        (np.array([0, 1, 1, 0]), XOR, np.int8),
        (np.array([0, 1, 1, 0], dtype=np.uint8), XOR, np.int8),
        (np.array(XOR, dtype=np.float32), XOR, np.int8),
        (np.array([0.0, 1.0, 1.0, 0.0]), [0, 1, 1, 0], np.float64),
        (np.array([3, 1]), [3, 1], np.float64),
    ],
)
def test_arrays(tmp_path, array, expected, dtype):
    np.save(tmp_path / "f.npy", array)
    table = read_table(tmp_path / "f.npy")
    assert table.dtype == dtype
    assert table.tolist() == expected


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.ones((2, 2)), r"has shape \(2, 2\); expected one dimension"),
        (np.float64(1), r"has shape \(\); expected one dimension"),
        (np.array([1.0, np.nan]), "has nan at position 1"),
        (np.array([1j, 1]), "type complex128"),
        (np.array(["a", "b"]), "type <U1"),
        (np.ones(0), "has 0 values"),
        (np.ones(6), "has 6 values"),
    ],
)
def test_arrays_that_are_no_tables(tmp_path, array, message):
    np.save(tmp_path / "f.npy", array)
    with pytest.raises(UsageError, match=message):
        read_table(tmp_path / "f.npy")


def test_pickles_and_other_files_are_refused(tmp_path):
    path = tmp_path / "f.npy"
    np.save(path, np.array([1, "x"], dtype=object), allow_pickle=True)
    with pytest.raises(UsageError, match="not a plain array of numbers"):
        read_table(path)
    np.savez(tmp_path / "f.npz", np.ones(2))
    for content in (b"", b"0110", (tmp_path / "f.npz").read_bytes()):
        path.write_bytes(content)
        with pytest.raises(UsageError, match="not a plain array of numbers"):
            read_table(path)
    np.save(path, np.ones(64))
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(UsageError, match="not a plain array of numbers"):
        read_table(path)


@pytest.mark.parametrize("name", ["f.npy", "f.txt"])
def test_missing_files_and_folders(tmp_path, name):
    with pytest.raises(UsageError, match=f"{name} does not exist"):
        read_table(tmp_path / name)
    (tmp_path / name).mkdir()
    with pytest.raises(UsageError, match="cannot be read"):
        read_table(tmp_path / name)


def test_unknown_endings_and_binary_text(tmp_path):
    with pytest.raises(UsageError, match=r"ends in '.json'; expected one of .npy, .txt, .csv"):
        read_table(tmp_path / "f.json")
    with pytest.raises(UsageError, match="ends in 'nothing'"):
        write_table(tmp_path / "f", np.ones(2))
    (tmp_path / "f.txt").write_bytes(b"\xff\xfe0110")
    with pytest.raises(UsageError, match="not a text file"):
        read_table(tmp_path / "f.txt")


tables = st.integers(1, 5).flatmap(
    lambda n: st.one_of(
        st.lists(st.sampled_from([-1, 1]), min_size=2**n, max_size=2**n),
        st.lists(st.sampled_from([0.0, 1.0]), min_size=2**n, max_size=2**n),
        st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=2**n, max_size=2**n),
    )
)


@pytest.mark.parametrize("suffix", [".npy", ".txt", ".csv"])
@MODEST
@given(values=tables)
def test_what_is_written_is_read_back(tmp_path_factory, suffix, values):
    path = tmp_path_factory.mktemp("tables") / f"f{suffix}"
    write_table(path, np.array(values))
    found = read_table(path)
    assert found.tolist() == values
    assert (found.dtype == np.int8) == all(value in (-1, 1) for value in values)


def test_what_is_written(tmp_path):
    write_table(tmp_path / "f.txt", np.array([False, True, True, False]))
    assert (tmp_path / "f.txt").read_text() == "0110\n"
    write_table(tmp_path / "f.csv", np.array(XOR))
    assert (tmp_path / "f.csv").read_text() == "-1\n1\n1\n-1\n"
    write_table(tmp_path / "f.csv", np.array([0, 1]))
    assert (tmp_path / "f.csv").read_text() == "0.0\n1.0\n"


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (np.ones((2, 2)), "has shape"),
        (np.ones(3), "has 3 values"),
        (np.array([1.0, np.inf]), r"table\[1\] is not finite"),
        (np.array(["a", "b"]), "type <U1"),
    ],
)
def test_what_cannot_be_written(tmp_path, table, message):
    with pytest.raises(UsageError, match=message):
        write_table(tmp_path / "f.txt", table)
    assert list(tmp_path.iterdir()) == []


def test_a_failed_write_leaves_nothing(tmp_path, monkeypatch):
    def fail(*_, **__):
        raise OSError("no space")

    monkeypatch.setattr(np, "save", fail)
    with pytest.raises(FailureError, match="no space"):
        write_table(tmp_path / "f.npy", np.ones(2))
    assert list(tmp_path.iterdir()) == []
