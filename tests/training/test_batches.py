import pytest
import torch
from torch import nn

from jostle.data import Dataset
from jostle.errors import UsageError
from jostle.training.batches import Batches
from tests.training.toys import random_points


def test_rows_and_slices_are_the_dataset_s():
    dataset = random_points()
    batches, rows = Batches(nn.Linear(5, 3).float(), dataset), torch.tensor([7, 0, 59])
    inputs, labels = batches.take(rows)
    assert torch.equal(inputs, dataset.inputs[rows])
    assert torch.equal(labels, dataset.labels[rows])
    inputs, labels = batches.slice(50, 70)
    assert torch.equal(inputs, dataset.inputs[50:])
    assert torch.equal(labels, dataset.labels[50:])
    assert len(batches) == 60


def test_the_type_of_the_weights_but_token_ids_stay_whole():
    inputs, _ = Batches(nn.Linear(5, 3).double(), random_points()).take(torch.tensor([0]))
    assert inputs.dtype == torch.float64
    ids = Dataset("ids", torch.tensor([[0, 3], [1, 2]]), torch.tensor([0, 1], dtype=torch.int32), classes=2)
    inputs, labels = Batches(nn.Embedding(4, 6), ids).take(torch.tensor([1]))
    assert (inputs.dtype, labels.dtype) == (torch.int64, torch.int64)


def test_a_model_without_weights():
    with pytest.raises(UsageError, match="Flatten has no parameters: there is nothing to train"):
        Batches(nn.Flatten(), random_points())
