import dataclasses

import pytest
import torch

from jostle.data import Dataset
from jostle.errors import UsageError


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
