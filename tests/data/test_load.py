"""``jostle.data.load``, over every registered dataset."""

import pytest
import torch

from jostle import data
from jostle.errors import UsageError


@pytest.mark.parametrize("split", ["train", "test"])
@pytest.mark.parametrize("name", data.names())
def test_contract(name, split):
    dataset = data.load(name, split)
    again = data.load(name, split, limit=7)
    assert (dataset.name, dataset.split) == (name, split)
    assert dataset.labels.dtype == torch.int64
    assert set(dataset.labels.tolist()) == set(range(dataset.classes))
    assert len(dataset.inputs) == len(dataset.labels)
    assert torch.equal(again.inputs, dataset.inputs[:7])
    assert torch.equal(again.labels, dataset.labels[:7])


def test_unknown_name():
    with pytest.raises(UsageError, match="unknown dataset 'mnist-500'; did you mean mnist-5000"):
        data.load("mnist-500")


@pytest.mark.parametrize("split", ["valid", None])
def test_unknown_split(split):
    with pytest.raises(UsageError, match=f"unknown split '{split}'"):
        data.load("mnist-5000", split)


@pytest.mark.parametrize("limit", [0, -3, 2.5, True, "10"])
def test_bad_limit(limit):
    with pytest.raises(UsageError, match=f"limit must be a whole number of at least 1, got {limit!r}"):
        data.load("mnist-5000", limit=limit)


def test_limit_beyond_the_data():
    with pytest.raises(UsageError, match="cannot take 4001 of the 4000 train examples"):
        data.load("mnist-5000", limit=4001)
