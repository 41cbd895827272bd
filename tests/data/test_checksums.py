import hashlib
import os

import pytest

from jostle.base.errors import UsageError
from jostle.data import checksums
from jostle.data.checksums import difference, verify

HELLO = hashlib.sha256(b"hello").hexdigest()


@pytest.fixture
def path(tmp_path):
    (tmp_path / "a").write_bytes(b"hello")
    return tmp_path / "a"


def test_right_size_and_checksum(path):
    assert difference(path, 5, HELLO) == ""
    verify(path, 5, HELLO, "letters")


def test_what_differs_is_named(path, tmp_path):
    assert difference(path, 6, HELLO) == "has 5 bytes, expected 6"
    assert difference(path, 5, "f" * 64) == f"has sha256 {HELLO[:12]}..., expected ffffffffffff..."
    assert difference(tmp_path / "b", 5, HELLO) == "cannot be read (No such file or directory)"
    with pytest.raises(UsageError, match=rf"^dataset 'letters': {path} has sha256 .* get letters .* check=False"):
        verify(path, 5, "f" * 64, "letters")


def test_a_file_is_read_once_until_it_changes(path, monkeypatch):
    checksums._digest.cache_clear()
    for _ in range(3):
        assert difference(path, 5, HELLO) == ""
    assert checksums._digest.cache_info().misses == 1
    path.write_bytes(b"jello")
    os.utime(path, ns=(1, 1))
    assert difference(path, 5, HELLO).startswith("has sha256 ")
