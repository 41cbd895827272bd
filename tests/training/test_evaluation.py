import pytest
import torch
from torch import nn

from jostle.base.errors import UsageError
from jostle.data import Dataset
from jostle.training import evaluate
from tests.training.toys import network, random_points


def test_against_the_definition():
    model, dataset = network(), random_points()
    result = evaluate(model, dataset)
    logits = model.eval()(dataset.inputs).log_softmax(dim=1)
    picked = [-logits[i, label].item() for i, label in enumerate(dataset.labels.tolist())]
    hits = [logits[i].argmax().item() == label for i, label in enumerate(dataset.labels.tolist())]
    assert result.loss == pytest.approx(sum(picked) / 60, rel=1e-5)
    assert result.accuracy == sum(hits) / 60


@pytest.mark.parametrize("batch_size", [1, 7, 60, 1000])
def test_batches_do_not_matter(batch_size):
    model, dataset = network(), random_points()
    whole, split = evaluate(model, dataset), evaluate(model, dataset, batch_size=batch_size)
    assert split.loss == pytest.approx(whole.loss, rel=1e-5)
    assert split.accuracy == whole.accuracy


@pytest.mark.parametrize("training", [True, False])
def test_mode_is_put_back_and_nothing_is_learned(training):
    model = network().train(training)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    evaluate(model, random_points())
    assert model.training is training
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())


def test_a_double_precision_model_takes_single_precision_data():
    single = evaluate(network(), random_points())
    double = evaluate(network().double(), random_points())
    assert double.loss == pytest.approx(single.loss, rel=1e-5)
    assert double.accuracy == single.accuracy


def test_token_ids_stay_whole_numbers():
    model = nn.Sequential(nn.Embedding(4, 6), nn.Flatten(), nn.Linear(12, 2))
    evaluate(model, Dataset("ids", torch.tensor([[0, 3], [1, 2]]), torch.tensor([0, 1]), classes=2))


def test_too_few_logits():
    with pytest.raises(UsageError, match="3 classes but the model has classes=2"):
        evaluate(network(classes=2), random_points())
