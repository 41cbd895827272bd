"""The synthetic data of paper 1: a few sparse tokens, many frequent ones, and the rest irrelevant.

Here: the vocabulary, labelled sequences, and the test out of distribution. Not here: the network (``network``) and
sensitivities (``predictors``, ``replacements``).
"""

from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from jostle.base import checks
from jostle.base.errors import UsageError
from jostle.base.randomness import Stream
from jostle.data import Dataset

GROUPS = ("sparse", "frequent", "irrelevant")


@dataclass(frozen=True)
class SparseFrequent:
    """Sequences whose label can be read from a rare token and from the majority of common ones.

    Vocabulary (Definition 4.2): one sparse token for each label, m frequent ones for each label, and irrelevant ones,
    M in all. A sequence with label y = -1 or 1 (Definition 4.3) holds n_s copies of the sparse token of y; n_f
    frequent tokens, floor((n_f + n_d) / 2) of them drawn from those of y and the others from those of -y; irrelevant
    tokens elsewhere; all at random places. Frequent and irrelevant tokens are drawn uniformly, with replacement.

    Source: paper 1 (2403.06925), Section 4.1 and appendix A.1. Tokens are whole numbers from 0: 0 and 1 are the sparse
    tokens of +1 and -1 (the paper's e_1 and e_2), 2, 4, .. 2m the frequent ones of +1, 3, 5, .. 2m + 1 those of -1, and
    2m + 2 .. M - 1 are irrelevant.

    Differs: the paper names neither M nor the places of tokens; M is an argument here, and places are uniform.

    >>> task = SparseFrequent(sparse=3, frequent=5, difference=1, kinds=16, vocabulary=59)
    >>> task.majority, task.lead, len(task.group("irrelevant"))
    (3, 1, 25)

    Arguments:
        sparse: n_s, copies of the sparse token.
        frequent: n_f, frequent tokens in a sequence.
        difference: n_d, the number by which the frequent tokens of the label outnumber the others, or one less if
            n_f + n_d is odd.
        kinds: m, different frequent tokens for each label.
        vocabulary: M, different tokens in all.
        num_tokens: T, the length of a sequence.
    """

    sparse: int
    frequent: int
    difference: int
    kinds: int
    vocabulary: int
    num_tokens: int = 50

    def __post_init__(self) -> None:
        checks.sizes(**vars(self))
        if self.num_irrelevant < 0:
            raise UsageError(
                f"sparse={self.sparse} and frequent={self.frequent} tokens do not fit into num_tokens={self.num_tokens}"
            )
        if not (self.difference <= self.frequent and self.lead > 0):
            raise UsageError(
                f"difference={self.difference} of frequent={self.frequent} tokens must leave the label a majority; "
                f"give a number up to {self.frequent}, and at least 2 where frequent is even"
            )
        if self.vocabulary < self.least_vocabulary:
            raise UsageError(
                f"vocabulary={self.vocabulary} is too small for 2 sparse and 2 x {self.kinds} frequent tokens"
                f"{' and an irrelevant one' if self.num_irrelevant else ''}; it needs at least {self.least_vocabulary}"
            )

    @property
    def majority(self) -> int:
        """Frequent tokens of the sequence's own label: floor((n_f + n_d) / 2)."""
        return (self.frequent + self.difference) // 2

    @property
    def lead(self) -> int:
        """The number by which they outnumber those of the other label."""
        return 2 * self.majority - self.frequent

    @property
    def num_irrelevant(self) -> int:
        """Irrelevant tokens in a sequence."""
        return self.num_tokens - self.sparse - self.frequent

    @property
    def least_vocabulary(self) -> int:
        """The smallest M with room for sparse and frequent tokens and, if a sequence has any, an irrelevant one."""
        return 2 * self.kinds + 2 + (self.num_irrelevant > 0)

    def group(self, name: str) -> Tensor:
        """The tokens of a group, ``sparse``, ``frequent`` or ``irrelevant``, (tokens,)."""
        first, last = {
            "sparse": (0, 2),
            "frequent": (2, 2 * self.kinds + 2),
            "irrelevant": (2 * self.kinds + 2, self.vocabulary),
        }[name]
        return torch.arange(first, last)

    def direction(self, name: str) -> Tensor:
        """The weight of each token in a read-out of a group, (vocabulary,): v_sp, v_freq or v_irrel.

        v_sp = e_1 - e_2; v_freq = the sum of the frequent e of +1 minus that of -1; v_irrel = the sum of the
        irrelevant e.
        """
        weights = torch.zeros(self.vocabulary)
        tokens = self.group(name)
        weights[tokens] = 1.0 if name == "irrelevant" else 1.0 - 2.0 * (tokens % 2)
        return weights

    def sample(self, count: int, *, seed: int, split: str = "train") -> Dataset:
        """``count`` sequences with their labels, 0 for y = -1 and 1 for y = 1.

        A sequence depends on its index, the seed and the split only, so the first sequences of a larger sample are the
        same.

        Arguments:
            count: number of sequences.
            seed: of all random numbers.
            split: samples of other splits are independent.

        >>> task = SparseFrequent(sparse=1, frequent=3, difference=1, kinds=2, vocabulary=7, num_tokens=6)
        >>> few = task.sample(2, seed=0)
        >>> few.inputs.tolist(), few.labels.tolist()
        ([[4, 6, 2, 0, 6, 5], [6, 5, 6, 0, 4, 4]], [1, 1])
        """
        checks.sizes(count=count)
        length = self.num_tokens
        index, zeros = np.arange(count), np.zeros(count)
        numbers = Stream(seed, f"sparse-frequent/{split}").uniforms(index, zeros, zeros, size=2 * length + 1)
        own = (numbers[:, :1] < 0.5).astype(np.int64)  # 0 for the label +1, 1 for -1, as in the parity of tokens
        kind = (numbers[:, 1 : length + 1] * self.kinds).astype(np.int64)
        spare = (numbers[:, 1 : length + 1] * (self.vocabulary - 2 * self.kinds - 2)).astype(np.int64)
        start, middle, end = self.sparse, self.sparse + self.majority, self.sparse + self.frequent
        tokens = 2 * self.kinds + 2 + spare  # (count, num_tokens)
        tokens[:, :start] = own
        tokens[:, start:middle] = 2 + 2 * kind[:, start:middle] + own
        tokens[:, middle:end] = 2 + 2 * kind[:, middle:end] + (1 - own)
        places = np.argsort(numbers[:, length + 1 :], axis=1)
        inputs = torch.from_numpy(np.take_along_axis(tokens, places, axis=1))
        return Dataset("sparse-frequent", inputs, torch.from_numpy(1 - own[:, 0]), classes=2, split=split)


def swap_sparse(dataset: Dataset) -> Dataset:
    """The test out of distribution: the same sequences and labels with e_1 and e_2 exchanged.

    A predictor that counts sparse tokens is then always wrong, and one that counts frequent tokens is as right as
    before. Paper 1, Section 4.1.

    >>> swap_sparse(Dataset("few", torch.tensor([[0, 3, 1, 2]]), torch.tensor([1]), classes=2)).inputs.tolist()
    [[1, 3, 0, 2]]
    """
    inputs = dataset.inputs
    swapped = torch.where(inputs < 2, 1 - inputs, inputs)
    return replace(dataset, inputs=swapped, note="sparse tokens exchanged")
