"""``jostle.data.load``, over every registered dataset."""

import os

import pytest
import torch

from jostle import data
from jostle.base.errors import UsageError
from jostle.data import DATASETS, FileDataset
from jostle.data.places import locate, places

FOLDER = os.environ.get("JOSTLE_DATA")


@pytest.mark.parametrize("split", ["train", "test"])
@pytest.mark.parametrize("name", data.names())
def test_contract(name, split, monkeypatch):
    if isinstance(DATASETS.get(name), FileDataset):
        if FOLDER:
            monkeypatch.setenv("JOSTLE_DATA", FOLDER)
        if locate(DATASETS.get(name), split, places()) is None:
            pytest.skip(f"{name}'s official files are not there")
    dataset = data.load(name, split, download=False)
    again = data.load(name, split, limit=7, download=False)
    assert (dataset.name, dataset.split) == (name, split)
    assert dataset.inputs.dtype == torch.float32
    assert dataset.labels.dtype == torch.int64
    assert set(dataset.labels.tolist()) == set(range(dataset.classes))
    assert len(dataset.inputs) == len(dataset.labels)
    assert torch.equal(again.inputs, dataset.inputs[:7])
    assert torch.equal(again.labels, dataset.labels[:7])
    assert again.note == dataset.note


def test_seed_and_balanced_reach_a_dataset_of_a_package():
    some = data.load("mnist-5000", limit=50, seed=1, balanced=True)
    assert some.labels.bincount().tolist() == [5] * 10
    assert not torch.equal(some.inputs, data.load("mnist-5000", limit=50, balanced=True).inputs)


@pytest.mark.parametrize("name", ["mnist-5000", "mnist"])
def test_bad_seed_is_said_before_files_are_looked_for(name):
    with pytest.raises(UsageError, match="seed=-1 must be a whole number, at least 0"):
        data.load(name, seed=-1)


def test_unknown_name():
    with pytest.raises(UsageError, match="unknown dataset 'mnist-500'; did you mean mnist-5000"):
        data.load("mnist-500")


@pytest.mark.parametrize(
    ("split", "message"), [("valid", "unknown split 'valid'"), (None, "split=None must be a name, a text")]
)
def test_unknown_split(split, message):
    with pytest.raises(UsageError, match=message):
        data.load("mnist-5000", split)


@pytest.mark.parametrize("limit", [0, -3, 2.5, True, "10"])
def test_bad_limit(limit):
    with pytest.raises(UsageError, match=f"limit={limit!r} must be a whole number, at least 1"):
        data.load("mnist-5000", limit=limit)


def test_limit_beyond_the_data():
    with pytest.raises(UsageError, match="cannot take 4001 of the 4000 train examples"):
        data.load("mnist-5000", limit=4001)
