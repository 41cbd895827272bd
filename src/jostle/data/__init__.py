"""Labelled inputs by name: one file for each dataset, and ``load`` to get one.

Files are found, downloaded, checked and read here, split into training and test, and texts become token ids.
``jostle.tokens`` defines what a token is. To add a dataset, put ``register`` on a function from a split to a
``Dataset``, as ``mnist_5000.py`` does, or, if it comes as official files, imitate ``mnist.py``; for texts put
``register_text`` on a function to a ``TextDataset``, as ``movie_reviews.py`` does, or imitate ``mrpc.py``. Then add its
name and module to the table below.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Literal, overload

from jostle.base import checks
from jostle.base.errors import FailureError, UsageError
from jostle.base.progress import Progress
from jostle.base.registry import Registry, unknown_name
from jostle.data.dataset import SPLITS, Dataset
from jostle.data.downloads import download as download_files
from jostle.data.inventory import DatasetState, describe
from jostle.data.length_order import LengthOrder, length_order
from jostle.data.official import FileDataset, FoundFiles, TextFileDataset
from jostle.data.places import cache_folder, locate, missing_message, places
from jostle.data.selection import check_limit, check_seed, choose
from jostle.data.text_dataset import TextDataset
from jostle.data.text_encoding import encode, encode_mapping
from jostle.data.text_tokenizer import TextTokenizer, load_tokenizer, train_tokenizer

__all__ = [
    "DATASETS",
    "TEXT_DATASETS",
    "Dataset",
    "FileDataset",
    "LengthOrder",
    "TextDataset",
    "TextFileDataset",
    "TextTokenizer",
    "encode",
    "encode_mapping",
    "fetch",
    "length_order",
    "load",
    "load_tokenizer",
    "names",
    "register",
    "register_text",
    "source_of",
    "status",
    "train_tokenizer",
]

DATASETS = Registry[Callable[[str], Dataset] | FileDataset](
    "dataset",
    homes={
        "cifar-10": "jostle.data.cifar_10",
        "drawn-digits": "jostle.data.drawn_digits",
        "fashion-mnist": "jostle.data.fashion_mnist",
        "mnist": "jostle.data.mnist",
        "mnist-5000": "jostle.data.mnist_5000",
        "svhn": "jostle.data.svhn",
    },
    group="jostle.data",
)
register = DATASETS.register

TEXT_DATASETS = Registry[Callable[[str], TextDataset] | TextFileDataset](
    "dataset of texts",
    homes={
        "imdb": "jostle.data.imdb",
        "movie-reviews": "jostle.data.movie_reviews",
        "mrpc": "jostle.data.mrpc",
        "qqp": "jostle.data.qqp",
    },
    group="jostle.text_data",
)
register_text = TEXT_DATASETS.register
TextName = Literal["imdb", "movie-reviews", "mrpc", "qqp"]  # for type checkers, which cannot ask the registry
KINDS = ("image", "text", "all")


def names(kind: str = "image") -> list[str]:
    """The names of datasets, sorted.

    >>> names("text")
    ['imdb', 'movie-reviews', 'mrpc', 'qqp']

    Arguments:
        kind: ``image``, ``text`` or ``all``.
    """
    checks.choice("kind of dataset", kind, KINDS)
    images = DATASETS.names() if kind != "text" else []
    return images + (TEXT_DATASETS.names() if kind != "image" else [])


def source_of(name: str) -> Callable[[str], Dataset] | Callable[[str], TextDataset] | FileDataset:
    """The function or object that reads the dataset ``name``, of images or of texts."""
    checks.choice("dataset", name, names("all"))
    return DATASETS.get(name) if name in DATASETS.names() else TEXT_DATASETS.get(name)


@overload
def load(  # type: ignore[overload-overlap]
    name: TextName,
    split: str = "train",
    limit: int | None = None,
    *,
    seed: int | None = None,
    balanced: bool = False,
    folder: str | Path | None = None,
    check: bool = True,
    download: bool = True,
    progress: Progress = True,
) -> TextDataset: ...


@overload
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
) -> Dataset: ...


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
) -> Dataset | TextDataset:
    """The dataset called ``name``: a ``Dataset`` of images, or a ``TextDataset``.

    Files are searched in ``folder``, in the folder that the environment variable ``JOSTLE_DATA`` names and in the
    user's cache; in each of them first in the dataset's own folder (``mnist``, ``fashion_mnist``, ``cifar10``,
    ``svhn``), then directly. Files that are nowhere are downloaded to the cache. Pixels are scaled to [-1, 1].

    >>> digits = load("mnist-5000", limit=100)
    >>> len(digits), tuple(digits.inputs.shape), digits.classes
    (100, (100, 1, 28, 28), 10)

    Arguments:
        name: one of ``names("all")``, or data of your own: ``images:DIR``, a folder of images (``image_folder.py``), or
            ``csv:FILE``, labelled texts (``text_csv.py``).
        split: ``train`` or ``test``.
        limit: the number of examples to keep. Without ``seed`` and ``balanced`` they are the first of the files.
        seed: shuffle the examples first; the same seed gives the same examples, a larger limit adds to them.
        balanced: keep the same number of each class.
        folder: the folder to search first.
        check: compare files with the published checksums; False for data of your own in the same format.
        download: download files that are nowhere; False raises instead.
        progress: of a download: a bar on a terminal, plain lines elsewhere, nothing, or your own function.
    """
    if not isinstance(name, str):
        raise unknown_name("dataset", name, names("all"))
    if name.startswith("images:"):
        from jostle.data.image_folder import open_images  # here, because Pillow is needed for nothing else

        return open_images(name, split, limit, seed=seed, balanced=balanced).dataset()
    if name.startswith("csv:"):
        from jostle.data.text_csv import open_csv

        check_limit(limit)
        return open_csv(name, split).subset(limit, seed=seed, balanced=balanced)
    source = source_of(name)
    checks.choice("split", split, SPLITS)
    check_limit(limit)
    check_seed(seed)
    if not isinstance(source, FileDataset):
        dataset = source(split)
        return dataset.subset(limit, seed=seed, balanced=balanced)
    if isinstance(source, TextFileDataset):
        texts = _read_texts(source, split, folder, check, download, progress)
        return texts.subset(limit, seed=seed, balanced=balanced)
    found = _find_files(source, split, folder, check, download, progress)
    examples = source.read(split, found)
    called = f"{split} examples of {name!r}"
    rows = choose(examples.labels, examples.classes, limit, seed=seed, balanced=balanced, called=called)
    return examples.dataset(name, split, rows)


def fetch(name: str, folder: str | Path | None = None, progress: Progress = True) -> tuple[Path | None, list[str]]:
    """Download the official files of a dataset; returns their folder and the names of the files downloaded.

    Files that are already there with the published checksum are left alone.

    Arguments:
        name: one of ``names("all")``. A dataset that comes with a Python package has no folder; if the package is not
            installed, the error says which.
        folder: put them in a folder of their own inside this one, instead of the cache.
        progress: as in ``load``.
    """
    source = source_of(name)
    if not isinstance(source, FileDataset):
        source("test")
        return None, []
    target = (cache_folder() if folder is None else Path(folder).expanduser()) / source.folders[0]
    needed = [file.name for file in source.files if source.problem(target / file.name)]
    if needed and isinstance(source, TextFileDataset) and source.package is not None:
        source.read_package("test")
        return None, []
    if needed and not source.is_downloadable:
        raise UsageError(
            f"dataset {name!r} cannot be downloaded by jostle; put {', '.join(needed)} in {target}: {source.origin}"
        )
    return target, download_files(source, needed, target, progress)


def status(folder: str | Path | None = None, kind: str = "image") -> list[DatasetState]:
    """The state of every dataset: its folder, its files, and whether they are as published.

    Arguments:
        folder: the folder to search first.
        kind: of which datasets, as in ``names``.
    """
    return [describe(name, source_of(name), folder) for name in names(kind)]


def _read_texts(
    source: TextFileDataset, split: str, folder: str | Path | None, check: bool, download: bool, progress: Progress
) -> TextDataset:
    """A whole split, from files, or from a package with the same texts if no place has the files."""
    if source.package is not None and locate(source, split, places(folder), check) is None:
        return source.read_package(split)
    return source.read_texts(split, _find_files(source, split, folder, check, download, progress))


def _find_files(
    source: FileDataset, split: str, folder: str | Path | None, check: bool, download: bool, progress: Progress
) -> FoundFiles:
    """The files of a split; downloaded if no place has them."""
    where = places(folder)
    found = locate(source, split, where, check)
    if found is not None:
        return found
    missing = missing_message(source, split, where)
    advice = f"put them in {where[0].path / source.folders[0]}, or run jostle data get {source.name} with a network"
    if not source.is_downloadable:
        raise UsageError(f"{missing}; put them in {where[0].path / source.folders[0]}: {source.origin}")
    if not download:
        raise UsageError(f"{missing}; {advice}")
    target = cache_folder() / source.folders[0]
    try:
        download_files(source, source.names_of(split), target, progress)
    except FailureError as error:
        raise FailureError(f"{missing}; {error}; {advice}") from error
    return FoundFiles(source, target, frozenset(source.names_of(split)), check)
