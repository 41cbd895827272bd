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
