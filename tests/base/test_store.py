import pytest

from jostle.base.errors import FailureError, UsageError
from jostle.base.store import Store


def test_records_survive_and_keep_their_order(tmp_path):
    store = Store(tmp_path / "new" / "records.jsonl")
    for number in range(5):
        store.append(f"cell-{number}", {"value": number / 3})
    again = Store(store.path)
    assert list(again) == [f"cell-{number}" for number in range(5)]
    assert again["cell-2"]["value"] == 2 / 3
    assert "cell-9" not in again
    assert len(again) == 5


@pytest.mark.parametrize("cut", [1, 5, 20])
def test_a_torn_last_line_is_dropped_and_overwritten(tmp_path, cut):
    store = Store(tmp_path / "records.jsonl")
    store.append("a", {"value": 1})
    store.append("b", {"value": 2})
    content = store.path.read_bytes()
    store.path.write_bytes(content[:-cut])
    torn = Store(store.path)
    assert list(torn) == ["a"]
    torn.append("b", {"value": 3})
    assert Store(store.path)["b"] == {"value": 3}
    assert store.path.read_bytes().count(b"\n") == 2


def test_a_key_is_written_once(tmp_path):
    store = Store(tmp_path / "records.jsonl")
    store.append("a", {})
    with pytest.raises(UsageError, match="already in"):
        store.append("a", {})


def test_foreign_files_and_folders_are_refused(tmp_path):
    (tmp_path / "other.txt").write_text("hello\nworld\n")
    with pytest.raises(UsageError, match="line 1 is not a record"):
        Store(tmp_path / "other.txt")
    with pytest.raises(UsageError, match="is a directory"):
        Store(tmp_path)


def test_what_cannot_be_written_is_one_clear_line(tmp_path):
    (tmp_path / "file").write_text("")
    store = Store(tmp_path / "records.jsonl")
    store.path = tmp_path / "file" / "records.jsonl"
    with pytest.raises(FailureError, match="could not write"):
        store.append("a", {})


def test_any_flipped_bit_is_noticed(tmp_path):
    store = Store(tmp_path / "records.jsonl")
    store.append("a", {"value": 0.125, "name": "x", "deep": [1, {"y": None}]})
    whole = store.path.read_bytes()
    for bit in range(8 * (len(whole) - 1)):  # without the newline: a last line without it is torn
        damaged = bytearray(whole)
        damaged[bit // 8] ^= 1 << bit % 8
        store.path.write_bytes(damaged)
        try:
            again = Store(store.path)
        except UsageError as error:
            assert "line 1 is" in str(error)  # noqa: PT017 - an opening that finds nothing is right too
        else:
            assert list(again) == []  # a flip to a newline leaves torn parts


def test_lines_without_a_checksum_are_read(tmp_path):
    (tmp_path / "records.jsonl").write_text('{"key": "a", "record": {"value": 1}}\n')
    store = Store(tmp_path / "records.jsonl")
    store.append("b", {"value": 2})
    assert [record["value"] for record in map(Store(store.path).__getitem__, store)] == [1, 2]


@pytest.mark.parametrize(
    "line", ["[" * 100_000, '{"key": 1, "record": {}}', '{"key": "a", "record": 3}', "null", '"a"']
)
def test_lines_of_another_shape_are_refused(tmp_path, line):
    (tmp_path / "records.jsonl").write_text(line + "\n")
    with pytest.raises(UsageError, match="line 1 is not a record"):
        Store(tmp_path / "records.jsonl")
