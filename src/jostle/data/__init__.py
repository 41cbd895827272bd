"""Labelled inputs by name: one file per dataset, and ``load`` to get one.

Here: finding, downloading, checking and reading files, splitting them, and turning texts into token ids. Not here: what
a token of an input is (``jostle.tokens``). Left on the line: ``jostle.base.files`` and ``jostle.base.progress``; right:
``jostle.models``. To add a dataset, put ``register`` on a function from a split to a ``Dataset``, as ``mnist_5000.py``
does, or, if it comes as official files, imitate ``mnist.py``; for texts put ``register_text`` on a function to a
``TextDataset``, as ``movie_reviews.py`` does, or imitate ``mrpc.py``; then add its module to the list below.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Literal, overload

from jostle.base.errors import FailureError, UsageError
from jostle.base.progress import Progress
from jostle.base.registry import Registry, unknown_name
from jostle.data.dataset import SPLITS, Dataset
from jostle.data.downloads import download as download_files
from jostle.data.inventory import DatasetState, describe
from jostle.data.official import FileDataset, FoundFiles, TextFileDataset
from jostle.data.places import absent, cache_folder, locate, places
from jostle.data.selection import check_limit, check_seed, choose
from jostle.data.text_dataset import TextDataset
from jostle.data.text_encoding import LengthOrder, encode, encode_mapping, length_order
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
    if kind not in KINDS:
        raise unknown_name("kind of dataset", str(kind), KINDS)
    images = DATASETS.names() if kind != "text" else []
    return images + (TEXT_DATASETS.names() if kind != "image" else [])


def source_of(name: str) -> Callable[[str], Dataset] | Callable[[str], TextDataset] | FileDataset:
    """What reads the dataset called ``name``, of images or of texts; an unknown name answers with near matches."""
    if name not in names("all"):
        raise unknown_name("dataset", name, names("all"))
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

    Files are looked for in ``folder``, in the folder named by the environment variable ``JOSTLE_DATA`` and in the
    user's cache, each time in a folder of the dataset's own (``mnist``, ``fashion_mnist``, ``cifar10``, ``svhn``) and
    then directly; what is nowhere is downloaded to the cache. Pixels are scaled to [-1, 1].

    >>> digits = load("mnist-5000", limit=100)
    >>> len(digits), tuple(digits.inputs.shape), digits.classes
    (100, (100, 1, 28, 28), 10)

    Arguments:
        name: one of ``names("all")``, or of your own ``images:DIR``, a folder of images, see ``image_folder``, or
            ``csv:FILE``, labelled texts, see ``text_csv``.
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
    if name.startswith("csv:"):
        from jostle.data.text_csv import open_csv

        check_limit(limit)
        return open_csv(name, split).subset(limit, seed=seed, balanced=balanced)
    source = source_of(name)
    if split not in SPLITS:
        raise unknown_name("split", str(split), SPLITS)
    check_limit(limit)
    check_seed(seed)
    if not isinstance(source, FileDataset):
        dataset = source(split)
        return dataset.subset(limit, seed=seed, balanced=balanced)
    if isinstance(source, TextFileDataset):
        texts = _texts(source, split, folder, check, download, progress)
        return texts.subset(limit, seed=seed, balanced=balanced)
    found = _found(source, split, folder, check, download, progress)
    examples = source.read(split, found)
    called = f"{split} examples of {name!r}"
    rows = choose(examples.labels, examples.classes, limit, seed=seed, balanced=balanced, called=called)
    return examples.dataset(name, split, rows)


def fetch(name: str, folder: str | Path | None = None, progress: Progress = True) -> tuple[Path | None, list[str]]:
    """Download the official files of a dataset; returns their folder and the names of those that were downloaded.

    Files that are there already, with the published checksum, are left alone.

    Arguments:
        name: one of ``names("all")``. A dataset that comes with a Python package has no folder; if the package is not
            installed, the error says which.
        folder: put them in a folder of their own in this one, instead of the cache.
        progress: as in ``load``.
    """
    source = source_of(name)
    if not isinstance(source, FileDataset):
        source("test")
        return None, []
    target = (cache_folder() if folder is None else Path(folder).expanduser()) / source.folders[0]
    needed = [file.name for file in source.files]
    if isinstance(source, TextFileDataset):
        needed = [name for name in needed if source.problem(target / name)]
        if needed and source.package is not None:
            source.read_package("test")
            return None, []
        if needed and not source.is_downloadable:
            raise UsageError(
                f"dataset {name!r} cannot be downloaded by jostle; put {', '.join(needed)} in {target}: {source.origin}"
            )
    return target, download_files(source, needed, target, progress)


def status(folder: str | Path | None = None, kind: str = "image") -> list[DatasetState]:
    """What is there of every dataset: where, which files, and whether they are as published.

    Arguments:
        folder: where to look first.
        kind: of which datasets, as in ``names``.
    """
    return [describe(name, source_of(name), folder) for name in names(kind)]


def _texts(
    source: TextFileDataset, split: str, folder: str | Path | None, check: bool, download: bool, progress: Progress
) -> TextDataset:
    """A whole split, from files or, where there are none, from a package that holds the same texts."""
    if source.package is not None and locate(source, split, places(folder), check) is None:
        return source.read_package(split)
    return source.read_texts(split, _found(source, split, folder, check, download, progress))


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
    if isinstance(source, TextFileDataset) and not source.is_downloadable:
        raise UsageError(f"{missing}; put them in {where[0].path / source.folders[0]}: {source.origin}")
    if not download:
        raise UsageError(f"{missing}; {advice}")
    target = cache_folder() / source.folders[0]
    try:
        download_files(source, source.wanted(split), target, progress)
    except FailureError as error:
        raise FailureError(f"{missing}; {error}; {advice}") from error
    return FoundFiles(source, target, frozenset(source.wanted(split)), check)
