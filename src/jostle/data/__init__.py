"""Labelled inputs by name: one file per dataset, and ``load`` to get one.

Here: finding, downloading, checking and reading files, and splitting them. Not here: what a token of an input is
(``jostle.tokens``). Left on the line: ``jostle.files`` and ``jostle.progress``; right: ``jostle.models``. To add a
dataset, put ``register`` on a function from a split to a ``Dataset``, as ``mnist_5000.py`` does, or, if it comes as
official files, imitate ``mnist.py``; then add its module to the list below.
"""

from collections.abc import Callable
from pathlib import Path

from jostle.data.dataset import SPLITS, Dataset
from jostle.data.downloads import download as download_files
from jostle.data.inventory import DatasetState, describe
from jostle.data.official import FileDataset, FoundFiles
from jostle.data.places import absent, cache_folder, locate, places
from jostle.data.selection import check_limit, check_seed, choose
from jostle.errors import FailureError, UsageError
from jostle.progress import Progress
from jostle.registry import Registry, unknown_name

__all__ = ["DATASETS", "Dataset", "FileDataset", "fetch", "load", "names", "register", "status"]

_MODULES = ["mnist_5000", "mnist", "fashion_mnist", "cifar_10", "svhn"]
DATASETS = Registry[Callable[[str], Dataset] | FileDataset](
    "dataset", modules=[f"jostle.data.{module}" for module in _MODULES]
)
names = DATASETS.names
register = DATASETS.register


def load(
    name: str,
    split: str = "train",
    limit: int | None = None,
    *,
    seed: int | None = None,
    balanced: bool = False,
    folder: str | Path | None = None,
    check: bool = True,
    download: bool = True,
    progress: Progress = True,
) -> Dataset:
    """The dataset called ``name``.

    Files are looked for in ``folder``, in the folder named by the environment variable ``JOSTLE_DATA`` and in the
    user's cache, each time in a folder of the dataset's own (``mnist``, ``fashion_mnist``, ``cifar10``, ``svhn``) and
    then directly; what is nowhere is downloaded to the cache. Pixels are scaled to [-1, 1].

    >>> digits = load("mnist-5000", limit=100)
    >>> len(digits), tuple(digits.inputs.shape), digits.classes
    (100, (100, 1, 28, 28), 10)

    Arguments:
        name: one of ``names()``, or ``images:DIR`` for a folder of images of your own, see ``image_folder``.
        split: ``train`` or ``test``.
        limit: keep so many examples: the first of the files, which are in a mixed order, if nothing else is said.
        seed: take them in a shuffled order; the same seed gives the same examples, a larger limit more of them.
        balanced: keep the same number of each class.
        folder: where to look for files first.
        check: compare files with the published checksums; False for data of your own in the same format.
        download: get files that are nowhere; False raises instead.
        progress: of a download: a bar on a terminal, plain lines elsewhere, nothing, or your own function.
    """
    if name.startswith("images:"):
        from jostle.data.image_folder import open_images  # here, because Pillow is needed for nothing else

        return open_images(name, split, limit, seed=seed, balanced=balanced).dataset()
    source = DATASETS.get(name)
    if split not in SPLITS:
        raise unknown_name("split", str(split), SPLITS)
    check_limit(limit)
    check_seed(seed)
    if not isinstance(source, FileDataset):
        dataset = source(split)
        return dataset.subset(limit, seed=seed, balanced=balanced)
    found = _found(source, split, folder, check, download, progress)
    examples = source.read(split, found)
    called = f"{split} examples of {name!r}"
    rows = choose(examples.labels, examples.classes, limit, seed=seed, balanced=balanced, called=called)
    return examples.dataset(name, split, rows)


def fetch(name: str, folder: str | Path | None = None, progress: Progress = True) -> tuple[Path | None, list[str]]:
    """Download the official files of a dataset; returns their folder and the names of those that were downloaded.

    Files that are there already, with the published checksum, are left alone.

    Arguments:
        name: one of ``names()``. A dataset that comes with a Python package has no folder; if the package is not
            installed, the error says which.
        folder: put them in a folder of their own in this one, instead of the cache.
        progress: as in ``load``.
    """
    source = DATASETS.get(name)
    if not isinstance(source, FileDataset):
        source("test")
        return None, []
    target = (cache_folder() if folder is None else Path(folder).expanduser()) / source.folders[0]
    return target, download_files(source, [file.name for file in source.files], target, progress)


def status(folder: str | Path | None = None) -> list[DatasetState]:
    """What is there of every dataset: where, which files, and whether they are as published."""
    return [describe(name, DATASETS.get(name), folder) for name in names()]


def _found(
    source: FileDataset, split: str, folder: str | Path | None, check: bool, download: bool, progress: Progress
) -> FoundFiles:
    """The files to read; downloaded if they are nowhere."""
    where = places(folder)
    found = locate(source, split, where, check)
    if found is not None:
        return found
    missing = absent(source, split, where)
    advice = f"put them in {where[0].path / source.folders[0]}, or run jostle data get {source.name} with a network"
    if not download:
        raise UsageError(f"{missing}; {advice}")
    target = cache_folder() / source.folders[0]
    try:
        download_files(source, source.wanted(split), target, progress)
    except FailureError as error:
        raise FailureError(f"{missing}; {error}; {advice}") from error
    return FoundFiles(source, target, frozenset(source.wanted(split)), check)
