"""Small files in the official formats, with random contents."""

import gzip
import hashlib
from dataclasses import replace

import numpy as np
from scipy.io import savemat

from jostle.data import DATASETS

TRAIN = ("train-images-idx3-ubyte.gz", "train-labels-idx1-ubyte.gz")
TEST = ("t10k-images-idx3-ubyte.gz", "t10k-labels-idx1-ubyte.gz")


def numbers(seed, *shape, high=256):
    return np.random.default_rng(seed).integers(0, high, shape, dtype=np.uint8)


def write_idx(path, array):
    """The array in idx format, written by the letter of the format rather than by our reader's constants."""
    header = b"\x00\x00\x08" + bytes([array.ndim]) + b"".join(size.to_bytes(4, "big") for size in array.shape)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(header + array.tobytes(), mtime=0))
    return path


def make_idx(folder, train=30, test=None, seed=0):
    """A dataset as MNIST's; returns {split: (images, labels)}."""
    made = {}
    for split, names, count in (("train", TRAIN, train), ("test", TEST, test)):
        if count is not None:
            images, labels = numbers(seed, count, 28, 28), numbers(seed + 1, count, high=10)
            write_idx(folder / names[0], images)
            write_idx(folder / names[1], labels)
            made[split] = images, labels
        seed += 2
    return made


def make_batches(folder, names, count=20, seed=0):
    """CIFAR-10 binary batches; returns {name: (images (count, 3, 32, 32), labels)}."""
    folder.mkdir(parents=True, exist_ok=True)
    made = {}
    for number, name in enumerate(names):
        images, labels = numbers(seed + number, count, 3, 32, 32), numbers(seed + number + 50, count, high=10)
        records = [bytes([label]) + image.tobytes() for image, label in zip(images, labels, strict=True)]
        (folder / name).write_bytes(b"".join(records))
        made[name] = images, labels
    return made


def make_matlab(path, count=20, seed=0):
    """A file as SVHN's; returns images (count, 3, 32, 32) and digits."""
    images, digits = numbers(seed, count, 3, 32, 32), np.arange(count, dtype=np.uint8) % 10
    x = np.empty((32, 32, 3, count), dtype=np.uint8)
    for example, channel, row, column in np.ndindex(images.shape):
        x[row, column, channel, example] = images[example, channel, row, column]
    path.parent.mkdir(parents=True, exist_ok=True)
    savemat(path, {"X": x, "y": np.where(digits == 0, 10, digits).astype(np.uint8)[:, None]}, do_compression=True)
    return images, digits


def make_official(monkeypatch, name, folder, **urls):
    """Let the files in ``folder`` be the official ones of the dataset ``name``."""
    source = DATASETS.get(name)

    def described(file):
        path = folder / file.name
        if not path.exists():
            return file
        contents = path.read_bytes()
        return replace(file, size=len(contents), sha256=hashlib.sha256(contents).hexdigest())

    monkeypatch.setattr(type(source), "files", tuple(map(described, source.files)))
    return source
