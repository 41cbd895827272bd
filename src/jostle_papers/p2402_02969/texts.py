"""The words of both studies, made up or from reviews."""

import functools
from pathlib import Path

from torch import Tensor

from jostle import data
from jostle.data import TextDataset
from jostle_papers.p2402_02969.features import embedded_words, isotropic_words, linear_labels, shared_mean_words

COSINE = 0.3  # of two words with a shared mean
REVIEW_DIM = 384  # of MiniLM's word embeddings
REAL = (
    "Real words are rows of the word-embedding matrix of MiniLM (d = 384) for IMDB reviews that are long enough; the "
    "paper's code takes the output of BERT's embedding block (d = 768), with positions and LayerNorm, starts with "
    "[CLS] and pads short reviews."
)
NO_TEXT = (
    "The paper's text and the numbers of its figures were not at hand; definitions are those of its released code and "
    "of quotations, and its claims are read as statements on slopes and sizes."
)


def labelled_words(
    kind: str, count: int, *, num_tokens: int, dim: int, seed: int, folder: Path | None
) -> tuple[Tensor, Tensor]:
    """Inputs (count, n, d) and labels (count,) of -1 and 1.

    Arguments:
        kind: ``isotropic``, ``shared-mean`` or ``reviews``.
        count, num_tokens, dim, seed: of the inputs.
        folder: of the datasets.
    """
    if kind == "reviews":
        reviews = embedded_words(_reviews(folder), count, num_tokens=num_tokens, dim=dim, seed=seed)
        return reviews.inputs, 2.0 * reviews.labels.to(reviews.inputs) - 1
    made = isotropic_words if kind == "isotropic" else functools.partial(shared_mean_words, cosine=COSINE)
    words = made(count, num_tokens=num_tokens, dim=dim, seed=seed)
    return words, linear_labels(words, seed)


@functools.lru_cache(maxsize=1)  # one worker has many cells
def _reviews(folder: Path | None) -> TextDataset:
    return data.load("imdb", folder=folder, progress=False)
