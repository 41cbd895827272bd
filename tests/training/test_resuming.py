"""A run that was interrupted, in any way at any place, ends as one that was not."""

import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from torch import nn

from jostle.base.errors import UsageError
from jostle.data import Dataset
from jostle.models import create
from jostle.training import Epoch, fit, load_weights
from jostle.training.checkpoints import load, restore
from jostle.training.recipe import Recipe
from jostle.training.schedules import Constant
from tests.training.toys import network, random_points, same_weights

ADAM = {"optimizer": "adam", "lr": 0.01, "batch_size": 16, "max_epochs": 4}
SGD = {"optimizer": "sgd", "lr": 0.1, "momentum": 0.9, "batch_size": 16, "max_epochs": 4}
SCHEDULED = ADAM | {"schedule": "step:every=2,factor=0.3,warmup=1", "clip": 0.5}


class Interrupt(Exception):
    pass


@pytest.mark.parametrize("settings", [ADAM, SGD, SCHEDULED], ids=["adam", "sgd with momentum", "schedule and clipping"])
@pytest.mark.parametrize("interrupted_at", [0, 2, 4])
def test_resumes_bit_for_bit_and_repeats_the_last_call(tmp_path, settings, interrupted_at):
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


@pytest.mark.parametrize("settings", [ADAM, SGD], ids=["adam", "sgd with momentum"])
def test_convolutions_resume_bit_for_bit_and_as_they_lay_in_memory(tmp_path, settings):
    sizes = {"image_size": 8, "channels": 1, "classes": 3, "width": 4}
    images = Dataset("random", torch.randn(40, 1, 8, 8), torch.arange(40) % 3, split="train", classes=3)
    whole, resumed = (create("resnet-18", seed=seed, **sizes) for seed in (0, 5))
    fit(whole, images, **settings)
    fit(create("resnet-18", seed=0, **sizes), images, **(settings | {"max_epochs": 2}), checkpoint=tmp_path / "c")
    fit(resumed, images, **settings, checkpoint=tmp_path / "c")
    assert same_weights(whole, resumed)

    recipe = Recipe(settings["optimizer"], 0.1, Constant(), settings.get("momentum", 0.0), 0.0, None, 16, "float32", 0)
    optimizer = recipe.build_optimizer(resumed)
    restore(load(tmp_path / "c"), resumed, optimizer, torch.amp.GradScaler(enabled=False), "c")
    for parameter, state in optimizer.state.items():
        for value in state.values():
            assert value.shape != parameter.shape or value.stride() == parameter.stride()


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
    [(SCHEDULED, 11, -1, 2), (SGD, -1, 3, 3)],
    ids=["adam in the middle of a schedule, within epoch 3", "sgd with momentum, in the call after epoch 3"],
)
def test_a_killed_run_resumes_bit_for_bit(tmp_path, settings, batch, epoch, last_checkpoint):
    path = tmp_path / "c.safetensors"
    root = str(Path(__file__).parents[2])
    code = textwrap.dedent(CHILD).format(root=root, settings=settings, path=str(path), batch=batch, epoch=epoch)
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout.readline() == "now\n"
        child.send_signal(signal.SIGKILL)
    assert child.returncode == -signal.SIGKILL
    assert load(path).epochs == last_checkpoint
    whole, resumed, calls = network(), network(), []
    expected = fit(whole, random_points(), **settings)
    assert fit(resumed, random_points(), **settings, checkpoint=path, on_epoch=calls.append) == expected
    assert same_weights(whole, resumed)
    assert [call.number for call in calls] == list(range(last_checkpoint, 5))


def interrupted_in(epoch, settings, path):
    """Train until a batch in the middle of ``epoch`` and fail there."""
    model, batches = network(), []

    def count(module, args):
        if module.training:
            batches.append(1)
            if len(batches) == 4 * (epoch - 1) + 3:  # 60 examples make 4 batches of up to 16
                raise Interrupt

    model.register_forward_pre_hook(count)
    with pytest.raises(Interrupt):
        fit(model, random_points(), **settings, checkpoint=path)


@pytest.mark.parametrize("epoch", [1, 2, 3, 4, 5, 6, 7])
def test_resumes_between_two_evaluations(tmp_path, epoch):
    settings, whole, resumed, calls = ADAM | {"max_epochs": 7, "evaluate_every": 3}, network(), network(seed=5), []
    expected = fit(whole, random_points(), **settings)
    interrupted_in(epoch, settings, tmp_path / "c")
    assert load(tmp_path / "c").epochs == epoch - 1
    assert fit(resumed, random_points(), **settings, checkpoint=tmp_path / "c", on_epoch=calls.append) == expected
    assert same_weights(whole, resumed)
    assert [call.number for call in calls] == [number for number in (0, 3, 6, 7) if number >= epoch - 1]


def test_a_run_that_ended_between_two_evaluations_goes_on_as_if_it_had_not(tmp_path):
    """It was evaluated after epoch 4, its last; the longer run has no evaluation there."""
    short, longer = ADAM | {"evaluate_every": 3}, ADAM | {"evaluate_every": 3, "max_epochs": 7}
    whole, resumed = network(), network()
    expected = fit(whole, random_points(), **longer)
    assert fit(resumed, random_points(), **short, checkpoint=tmp_path / "c").evaluated == (0, 3, 4)
    assert fit(resumed, random_points(), **longer, checkpoint=tmp_path / "c") == expected
    assert same_weights(whole, resumed)


def test_a_shorter_run_is_evaluated_where_it_ends(tmp_path):
    settings = ADAM | {"max_epochs": 7, "evaluate_every": 3}
    whole, resumed = network(), network()
    expected = fit(whole, random_points(), **(settings | {"max_epochs": 5}))
    interrupted_in(6, settings, tmp_path / "c")
    again = fit(resumed, random_points(), **(settings | {"max_epochs": 5}), checkpoint=tmp_path / "c")
    assert again == expected
    assert again.evaluated == (0, 3, 5)
    assert same_weights(whole, resumed)


def test_bfloat16_resumes_bit_for_bit(tmp_path):
    settings, whole, resumed = SCHEDULED | {"precision": "bfloat16"}, network(), network(seed=5)
    expected = fit(whole, random_points(), **settings)
    interrupted_in(3, settings, tmp_path / "c")
    assert fit(resumed, random_points(), **settings, checkpoint=tmp_path / "c") == expected
    assert same_weights(whole, resumed)


def test_a_checkpoint_of_an_older_version(tmp_path):
    metadata = {"format": "jostle-training-1", "training": '{"record": [], "settings": {}}'}
    save_file(network().state_dict(), tmp_path / "c", metadata=metadata)
    with pytest.raises(UsageError, match=r"has format 'jostle-training-1', .*; delete it to start again$"):
        fit(network(), random_points(), **ADAM, checkpoint=tmp_path / "c")
    model = network(seed=5)
    load_weights(model, tmp_path / "c")  # The weights can still be had.
    assert same_weights(model, network())


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
        ({"schedule": "step:2"}, "schedule was constant:warmup=0, is step:every=2,factor=0.5,warmup=0"),
        ({"clip": 1.0}, r"clip was None, is 1\.0"),
        ({"precision": "bfloat16"}, "precision was float32, is bfloat16"),
        ({"evaluate_every": 2}, "evaluate_every was 1, is 2"),
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
    with pytest.raises(UsageError, match="c is not a safetensors file"):
        fit(network(), random_points(), **ADAM, checkpoint=tmp_path / "c")


def test_an_impossible_place_is_refused_before_training(tmp_path):
    calls = []
    with pytest.raises(UsageError, match="is a directory"):
        fit(network(), random_points(), **ADAM, checkpoint=tmp_path, on_epoch=calls.append)
    assert calls == []
