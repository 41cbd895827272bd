import os
import signal

import pytest
import torch
from torch import nn

from jostle.base.errors import FailureError, UsageError
from jostle.base.interrupts import listening
from jostle.data import Dataset
from jostle.training import Constant, evaluate, fit, loop
from jostle.training.checkpoints import load
from jostle.training.loop import Loop
from jostle.training.randomness import order, own_randomness
from jostle.training.recipe import Recipe
from tests.training.toys import network, random_points, same_weights

CPU = torch.device("cpu")
ADAM = {"lr": 0.01, "batch_size": 16, "max_epochs": 4}


def plain_loop(model, dataset, rates, clip):
    """What training is, written out; torch's own loop over the parameters."""
    optimizer = torch.optim.Adam(model.parameters(), foreach=False)
    inputs = dataset.inputs.to(next(model.parameters()).dtype)
    for epoch, lr in enumerate(rates, start=1):
        optimizer.param_groups[0]["lr"] = lr
        model.train()
        with own_randomness("dropout", 3, epoch, CPU):
            for rows in order(len(dataset), 3, epoch).split(16):
                optimizer.zero_grad()
                nn.functional.cross_entropy(model(inputs[rows]), dataset.labels[rows]).backward()
                if clip is not None:
                    norm = torch.cat([weights.grad.flatten() for weights in model.parameters()]).norm()
                    for weights in model.parameters():
                        weights.grad *= min(1.0, clip / (norm.item() + 1e-6))
                optimizer.step()


def test_weights_are_those_of_a_plain_loop_bit_for_bit():
    mine, plain = network(), network()
    fit(mine, random_points(), **ADAM, seed=3, schedule="step:every=2,factor=0.5,warmup=1")
    plain_loop(plain, random_points(), [0.005, 0.01, 0.01, 0.005], None)
    assert same_weights(mine, plain)


def test_clipping_is_by_the_norm_of_the_whole_gradient():
    mine, plain, unclipped = (nn.Sequential(nn.Linear(5, 8), nn.Tanh(), nn.Linear(8, 3)) for _ in range(3))
    plain.load_state_dict(mine.state_dict())
    unclipped.load_state_dict(mine.state_dict())
    fit(mine, random_points(), **ADAM, seed=3, clip=0.2)
    fit(unclipped, random_points(), **ADAM, seed=3)
    plain_loop(plain, random_points(), [0.01] * 4, 0.2)
    differences = [(mine.state_dict()[name] - value).abs().max().item() for name, value in plain.state_dict().items()]
    assert max(differences) < 1e-12
    assert not same_weights(mine, unclipped)


def test_a_clipped_sgd_step_has_the_length_asked_for():
    model = nn.Linear(5, 3)
    start = torch.cat([weights.detach().flatten().clone() for weights in model.parameters()])
    fit(model, random_points(), optimizer="sgd", lr=2.0, clip=0.01, batch_size=60, max_epochs=1)
    end = torch.cat([weights.detach().flatten() for weights in model.parameters()])
    assert (end - start).norm().item() == pytest.approx(2.0 * 0.01, rel=1e-3)


class Fragile(nn.Linear):
    """Breaks when a weight is large; counts its passes in training."""

    passes = 0

    def forward(self, x):
        self.passes += self.training
        return super().forward(x) * (float("nan") if self.weight.abs().max() > 10 else 1.0)


def test_divergence_is_reported_and_keeps_the_last_good_checkpoint(tmp_path):
    settings = {"optimizer": "sgd", "lr": 1e4, "max_epochs": 3}
    message = r"training diverged: the loss is nan after epoch 1; lower lr=10000\.0 or set clip=1\.0$"
    with pytest.raises(FailureError, match=message):
        fit(Fragile(5, 3).float(), random_points(), **settings, checkpoint=tmp_path / "c")
    assert load(tmp_path / "c").epochs == 0


def test_divergence_is_noticed_within_the_epoch():
    """600 steps an epoch; the second has a loss of nan."""
    model, dataset = Fragile(5, 3).float(), random_points(600)
    with pytest.raises(FailureError, match="the loss is nan by step 200 of epoch 1; lower lr"):
        fit(model, dataset, optimizer="sgd", lr=1e4, batch_size=1, max_epochs=3, evaluate_every=3)
    assert model.passes == loop.STEPS_BETWEEN_LOOKS == 200


def test_divergence_without_an_evaluation_is_noticed_at_the_end_of_the_epoch(tmp_path):
    model = Fragile(5, 3).float()
    settings = {"optimizer": "sgd", "lr": 1e4, "batch_size": 20, "max_epochs": 9, "evaluate_every": 9}
    with pytest.raises(FailureError, match="the loss is nan in epoch 1; lower lr"):
        fit(model, random_points(), **settings, checkpoint=tmp_path / "c")
    assert model.passes == 3
    assert load(tmp_path / "c").epochs == 0


def test_weights_broken_by_the_last_step_are_not_saved(tmp_path):
    settings = {"optimizer": "sgd", "lr": 1e38, "batch_size": 60, "max_epochs": 9, "evaluate_every": 9, "clip": 1e38}
    large = Dataset("large", random_points().inputs * 1e3, random_points().labels, classes=3)
    with pytest.raises(FailureError, match=r"a weight is not finite after epoch 1; lower lr=1e\+38$"):
        fit(nn.Linear(5, 3).float(), large, **settings, checkpoint=tmp_path / "c")
    assert load(tmp_path / "c").epochs == 0


def test_a_loss_that_is_infinite_before_training_is_no_divergence():
    inputs = random_points().inputs.clone()
    inputs[3, 2] = float("nan")
    broken = Dataset("broken", inputs, random_points().labels, classes=3)
    with pytest.raises(
        UsageError, match="the loss is nan before training; look for nan or inf in the inputs of 'broken'"
    ):
        fit(network(), broken, **ADAM)


def test_the_model_is_in_eval_mode_after_a_failure():
    model = Fragile(5, 3).float()
    with pytest.raises(FailureError):
        fit(model, random_points(), optimizer="sgd", lr=1e4, max_epochs=1, batch_size=20)
    assert not model.training


@pytest.mark.parametrize(
    ("examples", "batch_size", "advice"),
    [(61, 20, "try batch_size=21"), (5, 1, "try batch_size=3"), (1, 100, "give at least 2 examples")],
)
def test_a_batch_of_one_is_refused_before_training_where_it_cannot_be(examples, batch_size, advice):
    calls = []
    message = (
        rf"batch_size={batch_size} leaves a batch of 1 of the {examples} examples, too few for BatchNorm .*{advice}$"
    )
    with pytest.raises(UsageError, match=message) as caught:
        fit(network(), random_points(examples), lr=0.01, batch_size=batch_size, max_epochs=1, on_epoch=calls.append)
    assert calls == []
    assert "\n" not in str(caught.value)


def test_a_batch_of_one_is_fine_elsewhere():
    fit(nn.Linear(5, 3).float(), random_points(21), lr=0.01, batch_size=20, max_epochs=1)
    images = Dataset("images", torch.randn(3, 1, 4, 4), torch.tensor([0, 1, 1]), classes=2)
    convolution = nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.Flatten(), nn.Linear(8, 2))
    before = convolution[1].num_batches_tracked.item()
    fit(convolution, images, lr=0.01, batch_size=2, max_epochs=1)
    assert convolution[1].num_batches_tracked.item() == before + 2  # Trying it out left no trace.


def test_an_epoch_depends_on_nothing_that_came_before_but_the_state():
    """The same epoch twice from the same weights and no optimiser state, in another order of calls."""
    recipe = Recipe("sgd", 0.1, Constant(), 0.0, 0.0, None, 16, "float32", 0)
    first, second = network(), network()
    Loop(first, random_points(), recipe, CPU).train(3, lambda examples: None)
    looked = Loop(second, random_points(), recipe, CPU)
    looked.evaluate(2)
    torch.rand(5)
    looked.train(3, lambda examples: None)
    assert same_weights(first, second)


def test_a_model_may_keep_what_it_made_in_an_evaluation():
    class Remembers(nn.Linear):
        table = None

        def forward(self, x):
            if self.table is None:
                self.table = torch.linspace(1, 2, 3, dtype=x.dtype) * 1.0
            return super().forward(x) * self.table

    fit(Remembers(5, 3).float(), random_points(), **ADAM)


def press_in_call(model, call):
    """Have Ctrl-C come while ``model`` answers for the ``call``-th time; returns its answers so far."""
    begun, ended = [], []

    def press(*_):
        begun.append(1)
        if len(begun) == call:
            os.kill(os.getpid(), signal.SIGINT)
            for _ in range(1000):  # Python looks for signals between two steps
                pass

    model.register_forward_pre_hook(press)
    model.register_forward_hook(lambda *_: ended.append(1))
    return ended


def test_ctrl_c_waits_for_the_end_of_a_step():
    model, steps = network(), []
    recipe = Recipe("sgd", 0.1, Constant(), 0.0, 0.0, None, 16, "float32", 0)
    made = Loop(model, random_points(), recipe, CPU)
    made.optimizer.register_step_post_hook(lambda *_: steps.append(1))
    passes = press_in_call(model, call=2)
    with listening(), pytest.raises(KeyboardInterrupt):
        made.train(1, lambda _: None)
    assert (len(passes), len(steps)) == (2, 2)
    assert not model.training


def test_ctrl_c_waits_for_the_end_of_a_batch_of_an_evaluation():
    model = network()
    passes = press_in_call(model, call=2)
    with listening(), pytest.raises(KeyboardInterrupt):
        evaluate(model, random_points(), batch_size=8)
    assert len(passes) == 2
