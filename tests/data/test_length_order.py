import numpy as np
import pytest
import torch

from jostle.base.errors import UsageError
from jostle.data import length_order


def lengths_like_questions(count=4000, seed=0):
    """Lengths with a long tail, as of pairs of questions: mean 32, a few of 128."""
    drawn = np.random.default_rng(seed).lognormal(mean=3.35, sigma=0.45, size=count)
    return np.clip(drawn.round(), 8, 128).astype(np.int64)


@pytest.mark.parametrize(("count", "batch_size", "pool"), [(1, 4, 2), (10, 3, 2), (64, 8, 1), (1000, 32, 100)])
def test_every_example_is_in_one_batch_and_the_share_is_the_one_counted(count, batch_size, pool):
    lengths = lengths_like_questions(count)
    order = length_order(lengths, batch_size, seed=1, pool=pool)
    assert sorted(np.concatenate(order.batches)) == list(range(count))
    sizes = sorted(len(batch) for batch in order.batches)
    assert sizes[1:] == [batch_size] * (len(sizes) - 1)
    assert sizes[0] == (count - 1) % batch_size + 1
    padding = tokens = 0
    for batch in order.batches:
        longest = max(lengths[example] for example in batch)
        for example in batch:
            padding += int(longest - lengths[example])
            tokens += int(longest)
    assert order.padding == pytest.approx(padding / tokens, abs=1e-12)
    assert order.padding_of_all == pytest.approx(1 - lengths.mean() / lengths.max(), abs=1e-12)


@pytest.mark.parametrize("batch_size", [8, 16, 32, 64])
def test_at_most_a_twentieth_is_padding_on_lengths_like_those_of_questions(batch_size):
    order = length_order(lengths_like_questions(10_000), batch_size, seed=0)
    assert order.padding < 0.05
    assert order.padding_of_all > 0.7


def test_the_seed_decides():
    lengths = lengths_like_questions(500)
    first, same, other = (length_order(lengths, 16, seed) for seed in (0, 0, 1))
    assert all((a == b).all() for a, b in zip(first.batches, same.batches, strict=True))
    groups = [{frozenset(batch.tolist()) for batch in order.batches} for order in (first, other)]
    assert len(groups[0] & groups[1]) <= 2  # batches are made anew, not only their order


def test_the_order_is_the_same_for_ever():
    """Numbers of a study depend on it."""
    order = length_order([3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5], 3, seed=7, pool=2)
    assert [batch.tolist() for batch in order.batches] == [[1, 9, 2], [3, 6, 0], [4, 5], [8, 10, 7]]


def test_batches_come_in_random_order():
    """The rank correlation of place and length is that of chance: 0 within 4 standard errors, 1 / sqrt(batches)."""
    lengths = lengths_like_questions()
    batches = length_order(lengths, 8, seed=2).batches
    means = [lengths[batch].mean() for batch in batches]
    ranks = np.argsort(np.argsort(means))
    correlation = np.corrcoef(ranks, np.arange(len(batches)))[0, 1]
    assert abs(correlation) < 4 / np.sqrt(len(batches))


def test_tensors_and_lists_are_lengths():
    lengths = [5, 2, 9, 5, 1]
    wanted = [batch.tolist() for batch in length_order(lengths, 2, 0).batches]
    for other in (torch.tensor(lengths), np.array(lengths, dtype=np.int32)):
        assert [batch.tolist() for batch in length_order(other, 2, 0).batches] == wanted


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([3, 4], 0, 0), "batch_size=0 must be a whole number, at least 1"),
        (([3, 4], 2.5, 0), "batch_size=2.5 must be"),
        (([3, 4], True, 0), "batch_size=True must be"),
        (([3, 4], 2, -1), "seed=-1 must be a whole number, at least 0"),
        (([], 2, 0), "lengths has shape"),
        (([3, 0], 2, 0), "least 0; give one whole number of at least 1 for each example"),
        (([3.5, 1.0], 2, 0), "of float64"),
        (([[3, 1]], 2, 0), r"lengths has shape \(1, 2\)"),
    ],
)
def test_wrong_use_is_one_line(arguments, message):
    with pytest.raises(UsageError, match=message):
        length_order(*arguments)
    with pytest.raises(UsageError, match="pool=0"):
        length_order([1], 1, 0, pool=0)
