import dataclasses

import pytest
import torch

from jostle.base.errors import UsageError
from jostle.data import Dataset


def three_points() -> Dataset:
    return Dataset("points", torch.tensor([[-1.0], [1.0], [2.0]]), torch.tensor([0, 1, 1]), classes=2, split="test")


def test_subset_keeps_the_first_examples_and_every_name():
    points = three_points()
    subset = points.subset(2)
    assert len(points) == 3
    assert len(subset) == 2
    assert subset.inputs.tolist() == [[-1.0], [1.0]]
    assert subset.labels.tolist() == [0, 1]
    assert (subset.name, subset.classes, subset.split) == ("points", 2, "test")


@pytest.mark.parametrize("n", [0, -1, 4])
def test_subset_of_an_impossible_size(n):
    with pytest.raises(UsageError, match=f"cannot take {n} of the 3 test examples of 'points'"):
        three_points().subset(n)


def test_is_frozen():
    with pytest.raises(dataclasses.FrozenInstanceError):
        three_points().name = "other"


@pytest.mark.parametrize(
    "labels",
    [torch.tensor([0, 1]), torch.tensor([0.0, 1.0, 1.0]), torch.tensor([[0], [1], [1]])],
    ids=["too few", "floating point", "two axes"],
)
def test_labels_that_are_no_labels(labels):
    with pytest.raises(UsageError, match="one whole-number label for each input"):
        Dataset("points", torch.zeros(3, 1), labels, classes=2)


@pytest.mark.parametrize("labels", [[0, 2], [-1, 0]])
def test_labels_out_of_range(labels):
    with pytest.raises(UsageError, match="must lie in 0 to 1"):
        Dataset("points", torch.zeros(2, 1), torch.tensor(labels), classes=2)


def test_no_examples():
    with pytest.raises(UsageError, match="holds no examples"):
        Dataset("points", torch.zeros(0, 1), torch.zeros(0, dtype=torch.int64), classes=2)


def test_subset_without_choice_shares_memory():
    points = three_points()
    assert points.subset(2).inputs.data_ptr() == points.inputs.data_ptr()


def test_subset_by_seed_and_class_keeps_inputs_and_labels_together():
    values = torch.arange(40)
    many = Dataset("many", values[:, None].double(), values % 4, classes=4, note="made up")
    subset = many.subset(20, seed=1, balanced=True)
    assert subset.labels.bincount().tolist() == [5] * 4
    assert (subset.inputs[:, 0] % 4).tolist() == subset.labels.tolist()
    assert subset.inputs[:, 0].tolist() != sorted(subset.inputs[:, 0].tolist())
    assert subset.note == "made up"


def test_relabelled_merges_classes_and_keeps_the_rest():
    digits = Dataset("digits", torch.arange(10.0)[:, None], torch.arange(10), classes=10, split="test", note="n")
    binary = digits.relabelled([0] * 5 + [1] * 5, "digits-binary")
    assert binary.labels.tolist() == [0] * 5 + [1] * 5
    assert (binary.name, binary.classes, binary.split, binary.note) == ("digits-binary", 2, "test", "n")
    assert binary.labels.dtype == torch.int64
    assert binary.inputs is digits.inputs


@pytest.mark.parametrize("new", [[0, 1, 1], [0], [0, -1], [0, 0.5], [0, "1"]])
def test_relabelled_with_other_than_one_number_a_class(new):
    with pytest.raises(UsageError, match="for each of the 2 classes of 'points'"):
        three_points().relabelled(new, "other")
