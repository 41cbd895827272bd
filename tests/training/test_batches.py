import pytest
import torch
from torch import nn

from jostle.base.errors import UsageError
from jostle.data import Dataset
from jostle.training import evaluate
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


def texts() -> Dataset:
    lengths = torch.arange(60) % 17 + 1
    ids = torch.randint(1, 9, (60, 20), generator=torch.Generator().manual_seed(0)) * (
        torch.arange(20) < lengths[:, None]
    )
    return Dataset("texts", ids, torch.arange(60) % 2, classes=2)


class Reader(nn.Module):
    pad = 0

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(9, 2, padding_idx=0)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return self.words(ids).sum(dim=1)


def test_texts_of_about_the_same_length_share_a_batch_and_every_text_is_in_one():
    batches, lengths = Batches(Reader(), texts()), (texts().inputs != 0).sum(dim=1)
    rows = batches.shuffle(5, seed=3, epoch=1)
    assert torch.cat(rows).sort().values.tolist() == list(range(60))
    assert sum(int(lengths[row].max() - lengths[row].min()) for row in rows) <= 17
    assert not torch.equal(torch.cat(rows), torch.cat(batches.shuffle(5, seed=3, epoch=2)))
    assert torch.equal(torch.cat(rows), torch.cat(batches.shuffle(5, seed=3, epoch=1)))
    seen = [inputs for inputs, _ in batches.all(5)]
    assert [int((inputs != 0).sum(dim=1).max()) for inputs in seen] == sorted(lengths.tolist())[4::5]


def test_all_of_a_dataset_that_is_not_of_texts_comes_in_its_order():
    dataset = random_points()
    found = list(Batches(nn.Linear(5, 3), dataset).all(25))
    assert [len(labels) for _, labels in found] == [25, 25, 10]
    assert torch.equal(torch.cat([labels for _, labels in found]), dataset.labels)
    assert torch.equal(torch.cat([inputs for inputs, _ in found]), dataset.inputs)


def test_the_order_of_texts_does_not_change_what_evaluation_finds():
    model, dataset = Reader(), texts()
    logits = model(dataset.inputs).detach()
    found = evaluate(model, dataset, batch_size=7)
    assert found.loss == pytest.approx(float(nn.functional.cross_entropy(logits, dataset.labels)), rel=1e-12)
    assert found.accuracy == float((logits.argmax(dim=1) == dataset.labels).double().mean())
