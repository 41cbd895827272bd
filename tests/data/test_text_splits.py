import numpy as np

from jostle.data.text_dataset import balanced_split, first_of_each, share_split


def test_repeats_are_found():
    assert first_of_each([("b",), ("a",), ("b",), ("b", "b"), ("a",)]).tolist() == [0, 1, 3]


def test_the_balanced_split_is_a_partition_with_as_many_of_each_class():
    labels = np.array([0] * 30 + [1] * 20)
    train, test = (balanced_split(labels, split, 8, seed=3) for split in ("train", "test"))
    assert sorted([*train, *test]) == list(range(50))
    assert np.bincount(labels[test]).tolist() == [8, 8]
    assert np.bincount(labels[train]).tolist() == [22, 12]
    assert (balanced_split(labels, "test", 8, seed=3) == test).all()
    assert set(balanced_split(labels, "test", 8, seed=4)) != set(test)


def test_both_parts_are_in_mixed_order_though_the_file_is_sorted():
    """Of the first 100 rows half are of each class, within 4 standard errors."""
    labels = np.repeat([0, 1], 1000)
    for split in ("train", "test"):
        for seed in range(5):
            first = labels[balanced_split(labels, split, 300, seed)[:100]]
            assert abs(first.mean() - 0.5) < 4 * 0.05


def test_a_share_is_held_out_and_repeats_stay_together():
    texts = [(str(row % 40),) for row in range(100)]
    train, test = (share_split(texts, split, 0.25, seed=0) for split in ("train", "test"))
    assert sorted([*train, *test]) == list(range(100))
    assert len({texts[row] for row in test}) == 10
    assert not {texts[row] for row in test} & {texts[row] for row in train}
    assert train.tolist() == sorted(train)
