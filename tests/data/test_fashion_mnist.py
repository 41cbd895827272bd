import pytest

from jostle import data
from jostle.base.errors import UsageError
from jostle.data import fashion_mnist
from tests.data.made_up import TEST, make_idx


def load(folder, split, **options):
    return data.load("fashion-mnist", split, folder=folder, check=False, download=False, **options)


@pytest.fixture(autouse=True)
def _few(monkeypatch):
    monkeypatch.setattr(fashion_mnist, "HELD_OUT", 10)


@pytest.mark.parametrize("layout", ["fashion_mnist", "fashion-mnist", "."])
def test_the_official_split_where_all_files_are_there(tmp_path, layout):
    made = make_idx(tmp_path / layout, train=30, test=12)
    for split in ("train", "test"):
        dataset = load(tmp_path, split)
        assert dataset.labels.tolist() == made[split][1].tolist()
        assert dataset.note == ""


@pytest.mark.parametrize("also", [None, 0, 1])
def test_the_last_training_images_are_held_out_where_test_images_or_labels_are_absent(tmp_path, also):
    folder = tmp_path / "fashion_mnist"
    pixels, labels = make_idx(folder, train=30, test=None if also is None else 12)["train"]
    if also is not None:
        (folder / TEST[also]).unlink()
    train, test = load(tmp_path, "train"), load(tmp_path, "test")
    assert train.labels.tolist() == labels[:20].tolist()
    assert test.labels.tolist() == labels[20:].tolist()
    assert ((test.inputs + 1) * 127.5).round().flatten().tolist() == pixels[20:].flatten().tolist()
    assert (
        train.note
        == test.note
        == ("no official test images: the last 10 training images are the test split, the first 20 the training split")
    )
    assert load(tmp_path, "test", limit=3).note == test.note


def test_nothing_left_to_train_on(tmp_path):
    make_idx(tmp_path, train=10)
    with pytest.raises(UsageError, match=r"holds 10 images; without t10k-images.* the last 10 are held out"):
        load(tmp_path, "train")


def test_test_files_alone_are_enough_for_the_test_split(tmp_path):
    labels = make_idx(tmp_path, train=None, test=12)["test"][1]
    assert load(tmp_path, "test").labels.tolist() == labels.tolist()
    with pytest.raises(UsageError, match=r"\(train\) needs train-images-idx3-ubyte\.gz, train-labels-idx1-ubyte\.gz"):
        load(tmp_path, "train")
