import numpy as np
import pytest

from jostle import data
from jostle.base.errors import UsageError
from tests.data.made_up import make_batches

BATCHES = [f"data_batch_{number}.bin" for number in range(1, 6)]


def load(folder, split="train", **options):
    return data.load("cifar-10", split, folder=folder, check=False, download=False, **options)


def pixels(dataset):
    return ((dataset.inputs + 1) * 127.5).round().numpy().astype(np.uint8)


@pytest.mark.parametrize("layout", ["cifar10", "cifar-10-batches-bin", "."])
def test_batches_in_order_and_planes_as_channels(tmp_path, layout):
    made = make_batches(tmp_path / layout, [*BATCHES, "test_batch.bin"])
    train, test = load(tmp_path), load(tmp_path, "test")
    assert train.inputs.shape == (100, 3, 32, 32)
    assert np.array_equal(pixels(train), np.concatenate([made[name][0] for name in BATCHES]))
    assert train.labels.tolist() == np.concatenate([made[name][1] for name in BATCHES]).tolist()
    assert np.array_equal(pixels(test), made["test_batch.bin"][0])
    assert train.note == test.note == ""


def test_absent_batches_are_said(tmp_path):
    made = make_batches(tmp_path / "cifar10", ["data_batch_2.bin", "data_batch_4.bin"])
    train = load(tmp_path)
    assert train.labels.tolist() == [*made["data_batch_2.bin"][1], *made["data_batch_4.bin"][1]]
    assert train.note == (
        "40 training images of 2 of 5 batches; absent: data_batch_1.bin, data_batch_3.bin, data_batch_5.bin"
    )


def test_one_batch_at_least(tmp_path):
    make_batches(tmp_path / "cifar10", ["test_batch.bin"])
    with pytest.raises(UsageError, match=r"\(train\) needs data_batch_1\.bin, .*data_batch_5\.bin, not found in"):
        load(tmp_path)
    make_batches(tmp_path / "other" / "cifar10", BATCHES[:1])
    with pytest.raises(UsageError, match=r"\(test\) needs test_batch\.bin, not found in"):
        load(tmp_path / "other", "test")


@pytest.mark.parametrize("size", [0, 3072, 3074, 2 * 3073 - 1])
def test_a_batch_of_a_wrong_size(tmp_path, size):
    path = tmp_path / "test_batch.bin"
    path.write_bytes(bytes(size))
    with pytest.raises(
        UsageError, match=f"^{path} has {size:,} bytes; a CIFAR-10 binary batch has a multiple of 3,073"
    ):
        load(tmp_path, "test")


def test_a_label_that_is_none(tmp_path):
    path = tmp_path / "test_batch.bin"
    path.write_bytes(bytes(3073) + bytes([10]) + bytes(3072))
    with pytest.raises(UsageError, match=f"^{path} has a label 10; expected labels from 0 to 9"):
        load(tmp_path, "test")
