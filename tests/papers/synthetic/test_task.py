"""Sequences of sparse, frequent and irrelevant tokens: what is in them, and where."""

import numpy as np
import pytest
import torch

from jostle.base.errors import UsageError
from jostle_papers.p2403_06925.synthetic import GROUPS, SparseFrequent, swap_sparse

TASKS = [
    SparseFrequent(3, 5, 1, 16, 59),
    SparseFrequent(1, 17, 7, 20, 69),
    SparseFrequent(1, 32, 7, 33, 69),  # n_f + n_d is odd
    SparseFrequent(2, 4, 3, 1, 4, num_tokens=6),  # no irrelevant token
]


@pytest.mark.parametrize("task", TASKS)
def test_every_sequence_has_the_counts_of_the_definition(task):
    sample = task.sample(300, seed=1)
    half = (task.frequent + task.difference) // 2
    for tokens, label in zip(sample.inputs.tolist(), sample.labels.tolist(), strict=True):
        paper = [token + 1 for token in tokens]  # numbered from 1, as printed
        plus = sum(3 <= token <= 2 * task.kinds + 1 and token % 2 == 1 for token in paper)
        minus = sum(4 <= token <= 2 * task.kinds + 2 and token % 2 == 0 for token in paper)
        sparse = (paper.count(1), paper.count(2))
        own, other = (plus, minus) if label == 1 else (minus, plus)
        assert (own, other) == (half, task.frequent - half)
        assert sparse == ((task.sparse, 0) if label == 1 else (0, task.sparse))
        assert sum(2 * task.kinds + 3 <= token <= task.vocabulary for token in paper) == task.num_irrelevant
        assert len(tokens) == task.num_tokens
    assert (task.majority, task.lead) == (half, 2 * half - task.frequent)


def is_uniform(counts, categories):
    """Whether no count is further than 4 standard errors from its share, for about a hundred categories at once 5."""
    counts = np.asarray(counts)
    share, total = 1 / categories, counts.sum()
    assert len(counts) == categories
    return np.abs(counts / total - share).max() < 5 * np.sqrt(share * (1 - share) / total)


def test_labels_kinds_and_places_are_uniform():
    task = SparseFrequent(1, 17, 7, 20, 69)
    sample = task.sample(4000, seed=2)
    assert is_uniform(np.bincount(sample.labels), 2)
    assert is_uniform((sample.inputs < 2).sum(dim=0), 50)  # the place of the sparse token
    assert is_uniform(((sample.inputs >= 2) & (sample.inputs < 42)).sum(dim=0), 50)
    counts = np.bincount(sample.inputs.reshape(-1), minlength=69)
    assert is_uniform(counts[2:42:2] + counts[3:43:2], 20)
    assert is_uniform(counts[42:], 27)
    places = sample.inputs.argmin(dim=1).double()  # of the sparse token; not tied to the label either
    ones, zeros = places[sample.labels == 1], places[sample.labels == 0]
    error = (ones.var() / len(ones) + zeros.var() / len(zeros)).sqrt()
    assert abs(ones.mean() - zeros.mean()) < 4 * error


def test_the_uniform_check_can_fail():
    assert is_uniform([100, 100], 2)
    assert not is_uniform([150, 50], 2)


def test_a_sequence_depends_on_its_index_seed_and_split_only():
    task = TASKS[0]
    many, few = task.sample(20, seed=3), task.sample(5, seed=3)
    assert torch.equal(many.inputs[:5], few.inputs)
    assert torch.equal(many.labels[:5], few.labels)
    assert not torch.equal(task.sample(5, seed=4).inputs, few.inputs)
    assert not torch.equal(task.sample(5, seed=3, split="test").inputs, few.inputs)
    assert task.sample(5, seed=3, split="test").split == "test"


def test_groups_share_the_vocabulary_out_and_directions_are_orthogonal():
    task = TASKS[0]
    assert torch.equal(torch.cat([task.group(name) for name in GROUPS]), torch.arange(59))
    directions = torch.stack([task.direction(name) for name in GROUPS])
    assert torch.equal(directions @ directions.T, torch.diag(torch.tensor([2.0, 32.0, 25.0])))
    assert directions[0, :2].tolist() == [1, -1]
    assert directions[1, 2:6].tolist() == [1, -1, 1, -1]


def test_swapping_exchanges_the_sparse_tokens_and_nothing_else():
    sample = TASKS[0].sample(50, seed=0, split="test")
    swapped = swap_sparse(sample)
    assert torch.equal(swapped.labels, sample.labels)
    changed = swapped.inputs != sample.inputs
    assert torch.equal(changed, sample.inputs < 2)
    assert torch.equal(swapped.inputs[changed], 1 - sample.inputs[changed])
    assert torch.equal(swap_sparse(swapped).inputs, sample.inputs)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"sparse": 0}, "sparse=0 must be a whole number, at least 1"),
        ({"frequent": 48}, "do not fit into num_tokens=50"),
        ({"difference": 6}, "difference=6 of frequent=5 tokens must leave the label a majority"),
        ({"frequent": 4}, "difference=1 of frequent=4 tokens must leave the label a majority"),
        ({"vocabulary": 34}, "vocabulary=34 is too small .* and an irrelevant one; it needs at least 35"),
        ({"sparse": 1, "frequent": 32, "difference": 7, "kinds": 36, "vocabulary": 69}, "it needs at least 75"),
    ],
)
def test_what_cannot_be_is_refused(given, message):
    usual = {"sparse": 3, "frequent": 5, "difference": 1, "kinds": 16, "vocabulary": 59}
    with pytest.raises(UsageError, match=message):
        SparseFrequent(**(usual | given))
    with pytest.raises(UsageError, match=r"count=.* must be a whole number"):
        TASKS[0].sample(0, seed=0)
