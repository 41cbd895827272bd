"""Labelled inputs by name: one file per dataset, and ``load`` to get one.

Here: reading files and splitting them. Not here: what a token of an input is (``jostle.tokens``). Left on the line:
nothing; right: ``jostle.models``. To add a dataset, imitate ``mnist_5000.py``: a function from a split to a
``Dataset`` with ``register`` on it, and its module in the list below.
"""

from collections.abc import Callable

from jostle.data.dataset import SPLITS, Dataset
from jostle.errors import UsageError
from jostle.registry import Registry, unknown_name

__all__ = ["DATASETS", "Dataset", "load", "names", "register"]

DATASETS = Registry[Callable[[str], Dataset]]("dataset", modules=["jostle.data.mnist_5000"])
names = DATASETS.names
register = DATASETS.register


def load(name: str, split: str = "train", limit: int | None = None) -> Dataset:
    """The dataset called ``name``.

    Arguments:
        name: one of ``names()``.
        split: ``train`` or ``test``.
        limit: keep the first so many examples; the files are in a fixed shuffled order, so the first are a fair sample.

    >>> digits = load("mnist-5000", limit=100)
    >>> len(digits), tuple(digits.inputs.shape), digits.classes
    (100, (100, 1, 28, 28), 10)
    """
    loader = DATASETS.get(name)
    if split not in SPLITS:
        raise unknown_name("split", str(split), SPLITS)
    if limit is not None and (not isinstance(limit, int) or isinstance(limit, bool) or limit < 1):
        raise UsageError(f"limit must be a whole number of at least 1, got {limit!r}; leave it out to load everything")
    dataset = loader(split)
    return dataset if limit is None else dataset.subset(limit)
