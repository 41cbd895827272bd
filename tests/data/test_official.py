import hashlib
import os

import pytest

from jostle.base.errors import UsageError
from jostle.data import official
from jostle.data.official import FoundFiles, OfficialFile
from tests.data.made_up import make_idx, make_official

HELLO = hashlib.sha256(b"hello").hexdigest()


@pytest.fixture
def path(tmp_path):
    (tmp_path / "a").write_bytes(b"hello")
    return tmp_path / "a"


def test_right_size_and_checksum(path):
    assert OfficialFile("a", 5, HELLO).problem(path) == ""


def test_what_differs_is_named(path, tmp_path):
    assert OfficialFile("a", 6, HELLO).problem(path) == "has 5 bytes, expected 6"
    assert OfficialFile("a", 5, "f" * 64).problem(path) == f"has sha256 {HELLO[:12]}..., expected ffffffffffff..."
    assert OfficialFile("b", 5, HELLO).problem(tmp_path / "b") == "cannot be read (No such file or directory)"


def test_a_file_is_read_once_until_it_changes(path):
    official._sha256.cache_clear()
    file = OfficialFile("a", 5, HELLO)
    assert [file.problem(path) for _ in range(3)] == ["", "", ""]
    assert official._sha256.cache_info().misses == 1
    path.write_bytes(b"jello")
    os.utime(path, ns=(1, 1))
    assert file.problem(path).startswith("has sha256 ")


def test_a_wrong_file_is_refused_with_a_remedy_unless_unchecked(tmp_path, monkeypatch):
    make_idx(tmp_path, train=3)
    dataset = make_official(monkeypatch, "mnist", tmp_path)
    name = dataset.files[0].name
    assert FoundFiles(dataset, tmp_path, frozenset([name])).path(name) == tmp_path / name
    (tmp_path / name).write_bytes(b"other")
    with pytest.raises(UsageError, match=r"^dataset 'mnist': .* has 5 bytes, .* data get mnist .* check=False"):
        FoundFiles(dataset, tmp_path, frozenset([name])).path(name)
    assert FoundFiles(dataset, tmp_path, frozenset([name]), check=False).path(name) == tmp_path / name
