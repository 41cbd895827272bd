"""The hooks of Lightning and of the Trainer of transformers, called as these call them.

Neither runs here: Lightning is not among the packages for development, and the Trainer needs accelerate. For Lightning
a stand-in calls the hooks in the order that its documentation gives; for transformers its own ``CallbackHandler`` does.
"""

import sys
import types
from types import SimpleNamespace

import pytest
import torch
from torch import nn

from jostle.base.errors import UsageError
from jostle.estimates import JostleWarning
from jostle.probe import Probe
from tests.probe.toys import CHOICES, network, points


def probe_of(**options):
    return Probe(points(30), **CHOICES, every=2, share=None, **options)


class Callback:
    """What Lightning's base class is for us: every hook, doing nothing."""

    def setup(self, trainer, pl_module, stage): ...
    def on_fit_start(self, trainer, pl_module): ...
    def on_train_start(self, trainer, pl_module): ...
    def on_train_epoch_start(self, trainer, pl_module): ...
    def on_train_batch_start(self, trainer, pl_module, batch, batch_idx): ...
    def on_train_batch_end(self, trainer, pl_module, outputs, batch, batch_idx): ...
    def on_train_epoch_end(self, trainer, pl_module): ...
    def on_train_end(self, trainer, pl_module): ...
    def on_fit_end(self, trainer, pl_module): ...
    def teardown(self, trainer, pl_module, stage): ...


def fit_like_lightning(module, callback, *, epochs=2, batches=5, accumulate=1):
    """The hooks in their documented order; ``global_step`` counts steps of the optimizer."""
    trainer = SimpleNamespace(global_step=0)
    optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
    callback.setup(trainer, module, "fit")
    callback.on_fit_start(trainer, module)
    callback.on_train_start(trainer, module)
    for _ in range(epochs):
        callback.on_train_epoch_start(trainer, module)
        for batch_idx in range(batches):
            callback.on_train_batch_start(trainer, module, None, batch_idx)
            module(points().inputs).square().mean().backward()
            if (batch_idx + 1) % accumulate == 0:
                optimizer.step()
                optimizer.zero_grad()
                trainer.global_step += 1
            callback.on_train_batch_end(trainer, module, None, None, batch_idx)
        callback.on_train_epoch_end(trainer, module)
    callback.on_train_end(trainer, module)
    callback.on_fit_end(trainer, module)
    callback.teardown(trainer, module, "fit")


@pytest.fixture(params=["lightning.pytorch", "pytorch_lightning"])
def lightning(request, monkeypatch):
    """Either of the two packages, as a stand-in."""
    for name in ("lightning", "lightning.pytorch", "pytorch_lightning"):
        monkeypatch.setitem(sys.modules, name, None)
    package = types.ModuleType(request.param)
    package.Callback = Callback
    if "." in request.param:
        monkeypatch.setitem(sys.modules, "lightning", types.ModuleType("lightning"))
    monkeypatch.setitem(sys.modules, request.param, package)


@pytest.mark.parametrize(("accumulate", "steps"), [(1, [0, 2, 4, 6, 8, 10]), (5, [0, 2])])
def test_lightning_measures_before_during_and_after(lightning, accumulate, steps):
    probe, module = probe_of(), network()
    callback = probe.lightning()
    assert isinstance(callback, Callback)
    fit_like_lightning(module, callback, accumulate=accumulate)
    assert probe.history["step"].tolist() == steps
    assert len(set(probe.history["weight_norm"])) == len(steps)


def test_lightning_measures_the_part_it_is_told_to(lightning):
    class Wrapped(nn.Module):
        def __init__(self):
            super().__init__()
            self.net = network()

        def forward(self, x):
            return {"something": self.net(x)}["something"]

    probe, seen = probe_of(), []
    fit_like_lightning(Wrapped(), probe.lightning(model=lambda module: seen.append(module) or module.net), epochs=1)
    assert probe.history["step"].tolist() == [0, 2, 4, 5]  # the last one is measured in any case
    assert isinstance(seen[0], Wrapped)


def test_steps_that_were_skipped_are_said_at_the_end(lightning):
    probe = Probe(points(30), **CHOICES, every=1, share=1e-6)
    with pytest.warns(JostleWarning, match=r"the probe skipped \d+ steps? to stay within .*; give Probe\(share=None\)"):
        fit_like_lightning(network(), probe.lightning())


def test_without_lightning_there_is_one_line(monkeypatch):
    for name in ("lightning", "lightning.pytorch", "pytorch_lightning"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(UsageError, match="needs Lightning: pip install lightning; or call probe"):
        probe_of().lightning()


def test_without_transformers_there_is_one_line(monkeypatch):
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(UsageError, match=r'needs transformers: pip install "jostle\[hf\]" accelerate'):
        probe_of().trainer_callback()


def test_the_handler_of_transformers_calls_it():
    from transformers import TrainerCallback
    from transformers.trainer_callback import CallbackHandler, TrainerControl, TrainerState

    probe, model, state, control = probe_of(), network(), TrainerState(), TrainerControl()
    callback = probe.trainer_callback()
    assert isinstance(callback, TrainerCallback)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    handler = CallbackHandler([callback], model, None, optimizer, None)
    assert handler.on_train_begin(None, state, control) is control
    for _ in range(5):
        handler.on_step_begin(None, state, control)
        model(points().inputs).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
        state.global_step += 1
        handler.on_step_end(None, state, control)
    handler.on_train_end(None, state, control)
    assert probe.history["step"].tolist() == [0, 2, 4, 5]
    assert len(set(probe.history["weight_norm"])) == 4


@pytest.mark.parametrize("hook", ["setup", "on_fit_start", "on_exception", "on_init_end", "on_step_end"])
def test_a_probe_given_as_a_callback_says_what_to_give(hook):
    probe = probe_of()
    with pytest.raises(AttributeError, match=r"give callbacks=\[probe\.lightning\(\)\] or .*trainer_callback\(\)"):
        getattr(probe, hook)
    assert not hasattr(probe, "other")
    assert not hasattr(probe, hook)  # whoever asks whether it is one learns that it is not
