"""The search order, with MNIST's and CIFAR-10's files of different contents in different places."""

from pathlib import Path

import pytest

from jostle import data
from jostle.base.errors import UsageError
from jostle.data.places import cache_folder, places
from tests.data.made_up import make_batches, make_idx

BATCHES = [f"data_batch_{number}.bin" for number in range(1, 6)]


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "folder").mkdir()
    return tmp_path / "folder"


@pytest.fixture
def variable(tmp_path, monkeypatch):
    (tmp_path / "variable").mkdir()
    monkeypatch.setenv("JOSTLE_DATA", str(tmp_path / "variable"))
    return tmp_path / "variable"


def count(name, folder=None):
    return len(data.load(name, folder=folder, check=False, download=False))


def test_the_folder_given_comes_first_then_the_variable_then_the_cache(folder, variable, cache):
    make_idx(cache / "mnist", train=3)
    assert count("mnist", folder) == 3
    make_idx(variable / "mnist", train=4)
    assert count("mnist", folder) == 4
    make_idx(folder, train=6)
    assert count("mnist", folder) == 6
    make_idx(folder / "mnist", train=5)  # its own folder before files that lie about
    assert count("mnist", folder) == 5
    assert count("mnist") == 4


def test_a_folder_given_is_used_though_it_lacks_files_that_another_place_has(folder, variable, cache):
    make_batches(folder / "cifar10", BATCHES[:2], count=1)
    make_batches(variable / "cifar10", BATCHES, count=2)
    assert count("cifar-10", folder) == 2
    assert count("cifar-10") == 10


def test_the_variable_gives_way_to_a_whole_dataset_in_the_cache(variable, cache):
    make_batches(variable / "cifar10", BATCHES[:3], count=1)
    assert count("cifar-10") == 3
    make_batches(cache / "cifar10", BATCHES, count=2)
    assert count("cifar-10") == 10


def test_part_of_a_dataset_in_the_cache_is_an_unfinished_download(cache):
    make_batches(cache / "cifar10", BATCHES[:4], count=1)
    with pytest.raises(UsageError, match=r"dataset 'cifar-10' \(train\) needs data_batch_1\.bin, "):
        count("cifar-10")


def test_files_of_one_dataset_never_come_from_two_places(folder, variable):
    make_idx(folder / "mnist", train=5)
    make_idx(variable / "mnist", train=5)
    (folder / "mnist" / "train-labels-idx1-ubyte.gz").unlink()
    (variable / "mnist" / "train-images-idx3-ubyte.gz").unlink()
    with pytest.raises(UsageError, match="not found in"):
        count("mnist", folder)


def test_folders_that_do_not_exist(tmp_path, monkeypatch):
    with pytest.raises(UsageError, match=f"folder={tmp_path / 'no'} is not a folder"):
        count("mnist", tmp_path / "no")
    monkeypatch.setenv("JOSTLE_DATA", str(tmp_path / "none"))
    with pytest.raises(UsageError, match=f"JOSTLE_DATA={tmp_path / 'none'} is not a folder"):
        count("mnist")


def test_the_cache(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder() == tmp_path / "jostle"
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for nothing in ("", "relative/path"):  # the XDG specification: relative paths are ignored
        monkeypatch.setenv("XDG_CACHE_HOME", nothing)
        assert cache_folder() == tmp_path / "home" / ".cache" / "jostle"


def test_a_tilde_is_the_home_folder(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    assert places("~")[0].path == Path(tmp_path)
