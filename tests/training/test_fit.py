import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
import torch
from torch import nn

from jostle.errors import FailureError, UsageError
from jostle.training import Epoch, evaluate, fit
from jostle.training.checkpoints import load
from tests.training.toys import network, random_points, same_weights, separable

ADAM = {"optimizer": "adam", "lr": 0.01, "batch_size": 16, "max_epochs": 4}
SGD = {"optimizer": "sgd", "lr": 0.1, "momentum": 0.9, "batch_size": 16, "max_epochs": 4}


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


@pytest.mark.parametrize("settings", [ADAM, SGD], ids=["adam", "sgd with momentum"])
@pytest.mark.parametrize("interrupted_at", [0, 2, 4])
def test_resumes_bit_for_bit_and_repeats_the_last_call(tmp_path, settings, interrupted_at):
    class Interrupt(Exception):
        pass

    def interrupt(epoch: Epoch) -> None:
        if epoch.number == interrupted_at:
            raise Interrupt

    whole, calls = network(), []
    expected = fit(whole, random_points(), **settings)
    with pytest.raises(Interrupt):
        fit(network(), random_points(), **settings, checkpoint=tmp_path / "c", on_epoch=interrupt)
    resumed = network(seed=5)  # The weights come from the checkpoint.
    history = fit(resumed, random_points(), **settings, checkpoint=tmp_path / "c", on_epoch=calls.append)
    assert same_weights(whole, resumed)
    assert history == expected
    assert [call.number for call in calls] == list(range(interrupted_at, 5))
    assert calls[0].loss == expected.losses[interrupted_at]


CHILD = """
import sys, time, torch
sys.path.insert(0, {root!r})
torch.set_num_threads(1)
from tests.training.toys import network, random_points
from jostle.training import fit

model, batches = network(), 0

def stall():
    print("now", flush=True)
    time.sleep(60)

def on_batch(module, args):
    global batches
    batches += module.training
    if module.training and batches == {batch}:
        stall()

model.register_forward_pre_hook(on_batch)
fit(model, random_points(), **{settings!r}, checkpoint={path!r},
    on_epoch=lambda epoch: stall() if epoch.number == {epoch} else None)
"""


@pytest.mark.parametrize(
    ("settings", "batch", "epoch", "last_checkpoint"),
    [(ADAM, 11, -1, 2), (SGD, -1, 3, 3)],
    ids=["adam, within epoch 3", "sgd with momentum, in the call after epoch 3"],
)
def test_a_killed_run_resumes_bit_for_bit(tmp_path, settings, batch, epoch, last_checkpoint):
    path = tmp_path / "c.safetensors"
    root = str(Path(__file__).parents[2])
    code = textwrap.dedent(CHILD).format(root=root, settings=settings, path=str(path), batch=batch, epoch=epoch)
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout.readline() == "now\n"
        child.send_signal(signal.SIGKILL)
    assert child.returncode == -signal.SIGKILL
    assert len(load(path).record) == last_checkpoint + 1
    whole, resumed, calls = network(), network(), []
    expected = fit(whole, random_points(), **settings)
    assert fit(resumed, random_points(), **settings, checkpoint=path, on_epoch=calls.append) == expected
    assert same_weights(whole, resumed)
    assert [call.number for call in calls] == list(range(last_checkpoint, 5))


def test_a_finished_run_can_be_continued(tmp_path):
    longer = ADAM | {"max_epochs": 6}
    whole, resumed = network(), network()
    expected = fit(whole, random_points(), **longer)
    fit(resumed, random_points(), **ADAM, checkpoint=tmp_path / "c")
    assert fit(resumed, random_points(), **longer, checkpoint=tmp_path / "c") == expected
    assert same_weights(whole, resumed)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"lr": 0.02}, r"lr was 0\.01, is 0\.02; use those settings or another file$"),
        ({"seed": 1}, "seed was 0, is 1"),
        ({"batch_size": 8}, "batch_size was 16, is 8"),
        ({"optimizer": "adamw"}, "optimizer was adam, is adamw"),
        ({"model": nn.Linear(5, 3).float()}, "model was Sequential, is Linear"),
        ({"model": network(dropout=0.5)}, "model architecture was"),
        ({"dataset": random_points(50)}, "dataset length was 60, is 50"),
        ({"dataset": random_points(name="other")}, "dataset was toy, is other"),
        ({"max_epochs": 3}, "has 4 epochs already, more than max_epochs=3"),
        ({"target_accuracy": 0.01}, r"target_accuracy=0\.01 was reached at epoch 0"),
    ],
)
def test_a_checkpoint_of_another_run(tmp_path, change, message):
    fit(network(), random_points(), **ADAM, checkpoint=tmp_path / "c")
    written = (tmp_path / "c").read_bytes()
    arguments = {"model": network(), "dataset": random_points(), **ADAM, **change}
    with pytest.raises(UsageError, match=message):
        fit(arguments.pop("model"), arguments.pop("dataset"), **arguments, checkpoint=tmp_path / "c")
    assert (tmp_path / "c").read_bytes() == written


def test_a_broken_checkpoint(tmp_path):
    (tmp_path / "c").write_bytes(b"garbage")
    with pytest.raises(UsageError, match="c is not a whole safetensors file"):
        fit(network(), random_points(), **ADAM, checkpoint=tmp_path / "c")


def test_an_impossible_place_is_refused_before_training(tmp_path):
    calls = []
    with pytest.raises(UsageError, match="is a directory"):
        fit(network(), random_points(), **ADAM, checkpoint=tmp_path, on_epoch=calls.append)
    assert calls == []


def test_divergence_is_reported_and_keeps_the_last_good_checkpoint(tmp_path):
    class Fragile(nn.Linear):
        def forward(self, x):
            return super().forward(x) * (float("nan") if self.weight.abs().max() > 10 else 1.0)

    settings = {"optimizer": "sgd", "lr": 1e4, "max_epochs": 3}
    with pytest.raises(FailureError, match=r"training diverged: the loss is nan after epoch 1; lower lr=10000\.0"):
        fit(Fragile(5, 3).float(), random_points(), **settings, checkpoint=tmp_path / "c")
    assert len(load(tmp_path / "c").record) == 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"max_epochs": 0}, "max_epochs must be a whole number of at least 1, got 0"),
        ({"target_accuracy": 99}, r"target_accuracy must lie in \(0, 1\], got 99; 99 % is 0\.99"),
        ({"target_accuracy": 0.0}, "target_accuracy must lie in"),
        ({"lr": -1.0}, "lr must be a positive number"),
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
