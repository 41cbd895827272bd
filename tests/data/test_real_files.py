"""The real files, where JOSTLE_DATA names a folder that holds them."""

import os

import pytest
import torch

from jostle import data
from jostle.data import DATASETS
from jostle.data.places import locate, places

FOLDER = os.environ.get("JOSTLE_DATA")
OFFICIAL = {  # examples, shape, mean and deviation of pixels in [0, 1], as widely published for the training split
    "mnist": (60_000, (1, 28, 28), 0.1307, 0.3081),
    "fashion-mnist": (60_000, (1, 28, 28), 0.2860, 0.3530),
    "cifar-10": (50_000, (3, 32, 32), 0.4734, 0.2516),
    "svhn": (73_257, (3, 32, 32), 0.4514, 0.1993),
}


@pytest.mark.parametrize("name", OFFICIAL)
def test_splits_have_the_known_contents(name, monkeypatch):
    if not FOLDER:
        pytest.skip("JOSTLE_DATA does not name a folder of datasets")
    monkeypatch.setenv("JOSTLE_DATA", FOLDER)
    if any(locate(DATASETS.get(name), split, places()) is None for split in ("train", "test")):
        pytest.skip(f"JOSTLE_DATA does not hold {name}")
    count, shape, mean, deviation = OFFICIAL[name]
    train, test = (data.load(name, split, download=False) for split in ("train", "test"))
    assert train.inputs.shape[1:] == test.inputs.shape[1:] == shape
    assert len(train) == count or (len(train) < count and train.note)
    assert train.labels.bincount(minlength=10).min() > 0.05 * len(train)
    assert (train.inputs.min().item(), train.inputs.max().item()) == (-1.0, 1.0)
    pixels = train.inputs / 2 + 0.5
    assert abs(pixels.mean().item() - mean) < 0.003
    assert abs(pixels.std().item() - deviation) < 0.003
    some = test.subset(100)
    same = (some.inputs[:, None] == train.inputs[None, :100]).flatten(2).all(2)
    assert not same.any()


def test_the_first_labels_of_mnist(monkeypatch):
    if not FOLDER:
        pytest.skip("JOSTLE_DATA does not name a folder of datasets")
    monkeypatch.setenv("JOSTLE_DATA", FOLDER)
    if locate(DATASETS.get("mnist"), "train", places()) is None:
        pytest.skip("JOSTLE_DATA does not hold mnist")
    digits = data.load("mnist", limit=10, download=False)
    assert digits.labels.tolist() == [5, 0, 4, 1, 9, 2, 1, 3, 1, 4]
    assert digits.inputs.dtype == torch.float32
    assert digits.relabelled([0] * 5 + [1] * 5, "mnist-binary").labels.tolist() == [1, 0, 0, 0, 1, 0, 0, 0, 0, 0]
