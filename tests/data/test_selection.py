import numpy as np
import pytest

from jostle.base.errors import UsageError
from jostle.data.selection import choose, random_order

LABELS = np.array([0, 1, 2] * 20 + [0] * 40)


def test_without_seed_the_first_in_the_order_of_the_file():
    assert np.arange(100)[choose(LABELS, 3, 7)].tolist() == list(range(7))
    assert np.arange(100)[choose(LABELS, 3)].tolist() == list(range(100))


def test_a_seed_decides_and_a_larger_limit_only_adds():
    few, more, other = (choose(LABELS, 3, n, seed=seed).tolist() for n, seed in ((10, 4), (50, 4), (10, 5)))
    assert few == more[:10]
    assert few != other
    assert few != sorted(few)
    assert sorted(choose(LABELS, 3, seed=4).tolist()) == list(range(100))


def test_the_order_of_a_seed_never_changes():
    assert random_order(8, 0).tolist() == [3, 2, 1, 6, 0, 7, 4, 5]


@pytest.mark.parametrize("seed", [None, 3])
@pytest.mark.parametrize(("limit", "counts"), [(30, [10, 10, 10]), (31, [11, 10, 10]), (2, [1, 1, 0])])
def test_balanced(seed, limit, counts):
    rows = choose(LABELS, 3, limit, seed=seed, balanced=True)
    assert np.bincount(LABELS[rows], minlength=3).tolist() == counts
    assert len(set(rows.tolist())) == limit
    order = np.arange(100) if seed is None else random_order(100, seed)
    for label in range(3):  # the first of each class in the order of the seed
        mine = [row for row in rows.tolist() if LABELS[row] == label]
        assert mine == [row for row in order.tolist() if LABELS[row] == label][: len(mine)]


def test_too_few_of_a_class():
    with pytest.raises(UsageError, match=r"cannot take 21 examples of class 1 .* subset of 63: there are 20 among"):
        choose(LABELS, 3, 63, balanced=True)


def test_balanced_without_a_limit():
    with pytest.raises(UsageError, match="balanced=True needs a limit"):
        choose(LABELS, 3, balanced=True)


@pytest.mark.parametrize("seed", [-1, 1.5, True, "1"])
def test_bad_seed(seed):
    with pytest.raises(UsageError, match=f"seed={seed!r} must be a whole number, at least 0"):
        choose(LABELS, 3, 5, seed=seed)
