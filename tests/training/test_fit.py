import pytest
import torch
from torch import nn

from jostle.base.errors import UsageError
from jostle.training import Epoch, evaluate, fit
from tests.training.toys import network, random_points, same_weights, separable

ADAM = {"optimizer": "adam", "lr": 0.01, "batch_size": 16, "max_epochs": 4}


@pytest.mark.parametrize("classes", [1, 2])
def test_learns_a_separable_task_and_says_why_it_stopped(classes):
    model = network(classes, dropout=0.0)
    history = fit(model, separable(), lr=0.02, batch_size=10, max_epochs=60, target_accuracy=0.98)
    assert history.stopped == "target accuracy"
    assert history.accuracies[-1] >= 0.98 > max(history.accuracies[:-1])
    assert 1 <= history.epochs < 60
    assert history.accuracies[-1] == evaluate(model, separable()).accuracy
    assert not model.training


def test_stops_at_max_epochs():
    history = fit(network(), random_points(), **ADAM, target_accuracy=1.0)
    assert (history.epochs, history.stopped) == (4, "max epochs")
    assert len(history.losses) == len(history.accuracies) == 5


def test_evaluations_every_so_often_change_nothing_but_what_is_reported():
    every, often, calls = network(), network(), []
    all_of_them = fit(every, random_points(), **(ADAM | {"max_epochs": 7}))
    history = fit(often, random_points(), **(ADAM | {"max_epochs": 7}), evaluate_every=3, on_epoch=calls.append)
    assert same_weights(every, often)
    assert history.evaluated == tuple(call.number for call in calls) == (0, 3, 6, 7)
    assert history.losses == tuple(all_of_them.losses[epoch] for epoch in (0, 3, 6, 7))
    assert history.accuracies == tuple(all_of_them.accuracies[epoch] for epoch in (0, 3, 6, 7))
    assert history.epochs == 7
    assert all_of_them.evaluated == tuple(range(8))


def test_the_target_is_looked_at_only_in_evaluations():
    settings = {"lr": 0.02, "batch_size": 10, "max_epochs": 60}
    whole = fit(network(2, dropout=0.0), separable(), **settings)
    expected = next(epoch for epoch in range(0, 60, 7) if whole.accuracies[epoch] >= 0.98)
    history = fit(network(2, dropout=0.0), separable(), **settings, target_accuracy=0.98, evaluate_every=7)
    assert (history.epochs, history.stopped) == (expected, "target accuracy")
    assert history.evaluated == tuple(range(0, expected + 1, 7))


def test_sgd_step_is_the_formula():
    dataset, model, start = random_points(), nn.Linear(5, 3).float(), nn.Linear(5, 3).float()
    start.load_state_dict(model.state_dict())
    fit(model, dataset, optimizer="sgd", lr=0.5, weight_decay=0.1, batch_size=60, max_epochs=1)
    nn.functional.cross_entropy(start(dataset.inputs), dataset.labels).backward()
    expected = start.weight - 0.5 * (start.weight.grad + 0.1 * start.weight)
    torch.testing.assert_close(model.weight, expected)


def test_every_epoch_sees_every_example_once_in_another_order():
    dataset, seen = random_points(), []
    model = network()
    model.register_forward_pre_hook(lambda module, args: seen.append(args[0].clone()) if module.training else None)
    fit(model, dataset, **ADAM)
    assert [len(batch) for batch in seen] == [16, 16, 16, 12] * 4
    epochs = [torch.cat(seen[4 * i : 4 * i + 4]) for i in range(4)]
    rows = [sorted(map(tuple, epoch.tolist())) for epoch in epochs]
    assert all(row == sorted(map(tuple, dataset.inputs.tolist())) for row in rows)
    assert len({tuple(epoch.flatten().tolist()) for epoch in epochs}) == 4


def test_calls_start_before_training_and_see_the_model_in_eval_mode():
    dataset, model, calls = random_points(), network(), []

    def look(epoch: Epoch) -> None:
        assert epoch.model is model
        assert not model.training
        result = evaluate(model, dataset)
        assert (epoch.loss, epoch.accuracy) == (result.loss, result.accuracy)
        calls.append(epoch)

    before = evaluate(model, dataset)
    history = fit(model, dataset, **ADAM, on_epoch=look)
    assert [call.number for call in calls] == [0, 1, 2, 3, 4]
    assert calls[0].loss == before.loss
    assert tuple(call.loss for call in calls) == history.losses
    assert tuple(call.accuracy for call in calls) == history.accuracies


def test_the_seed_alone_decides():
    """Not the global generator, nor what a callback does to it, to the mode of the model or to the gradients."""

    def meddle(epoch: Epoch) -> None:
        torch.manual_seed(epoch.number)
        epoch.model(random_points().inputs).sum().backward()
        epoch.model.train()

    plain, other_seed = network(), network()
    fit(plain, random_points(), **ADAM, seed=3)
    fit(other_seed, random_points(), **ADAM, seed=4)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(99)
        meddled = network()
        fit(meddled, random_points(), **ADAM, seed=3, on_epoch=meddle)
    assert same_weights(plain, meddled)
    assert not meddled.training
    assert not same_weights(plain, other_seed)


def test_the_seed_decides_the_order():
    first, second = network(dropout=0.0), network(dropout=0.0)
    fit(first, random_points(), **ADAM, seed=3)
    fit(second, random_points(), **ADAM, seed=4)
    assert not same_weights(first, second)


def test_the_global_generator_is_left_alone():
    before = torch.random.get_rng_state()
    fit(network(), random_points(), **ADAM)
    assert torch.equal(torch.random.get_rng_state(), before)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"max_epochs": 0}, "max_epochs=0 must be a whole number, at least 1"),
        ({"evaluate_every": 0}, "evaluate_every=0 must be a whole number, at least 1"),
        ({"target_accuracy": 99}, r"target_accuracy=99 must be a finite number above 0 and at most 1; 99 % is 0\.99"),
        ({"schedule": "stepp"}, "unknown schedule 'stepp'; did you mean step"),
        ({"schedule": 0.5}, "schedule=0.5 is not a schedule"),
        ({"schedule": "cosine:3"}, "max_epochs=4 is past the end of schedule='cosine:epochs=3,final=0,warmup=0'"),
        ({"lr": -1.0}, "lr=-1.0 must be a finite number above 0"),
        ({"device": "warp"}, "device='warp' cannot be used"),
    ],
)
def test_arguments_that_cannot_be(change, message):
    with pytest.raises(UsageError, match=message) as caught:
        fit(network(), random_points(), **(ADAM | change))
    assert "\n" not in str(caught.value)


def test_a_model_for_other_classes():
    with pytest.raises(UsageError, match="the data have 3 classes but the model has classes=2"):
        fit(network(classes=2), random_points(), **ADAM)
