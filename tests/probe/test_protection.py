"""A model trained with a probe has the same weights, bit for bit, as one trained without."""

import contextlib
import random

import numpy as np
import pytest
import torch
from torch import nn

from jostle.probe import Probe
from jostle.probe.model import protect_training
from tests.probe.toys import CHOICES, everything, meddle, network, points, same, train

SPECIALS = {"plain": {}, "between": {"call": "between"}, "mixed": {"is_mixed": True}}


def probe_of(**options):
    return Probe(points(30, seed=9), **CHOICES, every=3, share=None, **options)


def mean_logit(model, inputs):
    """All digits of the outputs: a prediction would hide the rounding of bfloat16."""
    return model(inputs).mean()


@pytest.mark.parametrize(
    ("special", "measures"),
    [
        ("plain", {}),
        ("between", {}),
        ("mixed", {}),
        ("plain", {"meddle": meddle}),
        ("mixed", {"meddle": meddle}),
        ("between", ["sharpness", "logit-margin"]),
    ],
)
def test_training_with_a_probe_ends_bit_for_bit_as_without(special, measures):
    alone, watched = network(), network()
    expected = everything(alone, train(alone, **SPECIALS[special]))
    probe = probe_of(measures=measures)
    found = everything(watched, train(watched, probe, **SPECIALS[special]))
    assert probe.history["step"].tolist() == list(range(0, 30, 3))
    assert same(found, expected)


def test_the_loop_of_this_test_notices_what_a_probe_could_do():
    expected = everything(model := network(), train(model))
    inputs = points(30, seed=9).inputs
    for careless in (
        lambda model, step: torch.rand(1),
        lambda model, step: np.random.rand(),  # noqa: NPY002
        lambda model, step: random.random(),
        lambda model, step: model.eval(),
        lambda model, step: model(inputs),
        lambda model, step: torch.set_grad_enabled(False) if step == 29 else None,
        meddle_once,
    ):
        with torch.enable_grad():
            other = network()
            with contextlib.suppress(RuntimeError):  # no gradients at all
                assert not same(everything(other, train(other, careless)), expected)


def meddle_once(model, step):
    meddle(model, points(30).inputs)


def test_numbers_are_those_of_the_weights_whatever_the_loop_does_around():
    measures, model = {"mean": mean_logit}, network().train()
    expected = probe_of(measures=measures)(model, 0)
    for around in (torch.autocast("cpu", torch.bfloat16), torch.inference_mode(), torch.no_grad()):
        with around:
            assert probe_of(measures=measures)(model, 0) == expected


def test_watching_an_optimizer_changes_nothing_either():
    alone, watched = network(), network()
    expected = everything(alone, train(alone, steps=29))
    optimizer = torch.optim.Adam(watched.parameters(), lr=0.01)
    probe = probe_of()
    with probe.watching(watched, optimizer):
        train(watched, optimizer=optimizer, steps=29)
    assert same(everything(watched, optimizer), expected)
    assert probe.history["step"].tolist() == [*range(0, 29, 3), 29]  # the last one in any case
    assert not optimizer._optimizer_step_post_hooks


def test_making_a_probe_from_a_loader_draws_no_random_number():
    pairs = torch.utils.data.TensorDataset(points().inputs, points().labels)
    before = torch.get_rng_state()
    probe = Probe(torch.utils.data.DataLoader(pairs, batch_size=7, shuffle=True), **CHOICES)
    ragged = torch.utils.data.DataLoader(pairs, batch_size=7, shuffle=True, collate_fn=lambda items: items[0][0][None])
    Probe(ragged, **CHOICES)
    assert torch.equal(torch.get_rng_state(), before)
    assert probe._recorder.measurement.labels.tolist() == points().labels.tolist()


def test_everything_is_put_back_after_an_error_and_gradients_are_the_same_tensors():
    model = network()
    optimizer = train(model, steps=2)
    model[1].eval()  # one module in another mode than the rest
    before, gradients = everything(model, optimizer), [parameter.grad for parameter in model.parameters()]
    buffers = dict(model.named_buffers())
    copies = {"tensors": [tensor.clone() for tensor in before["tensors"]], "others": before["others"]}
    with contextlib.suppress(KeyError), protect_training(model, 0, guards_parameters=True):
        assert not any(module.training for module in model.modules())
        meddle(model, points().inputs)
        raise KeyError
    assert same(everything(model, optimizer), copies)
    assert all(one.grad is other for one, other in zip(model.parameters(), gradients, strict=True))
    assert all(buffer is buffers[name] for name, buffer in model.named_buffers())


def test_inside_random_numbers_are_functions_of_the_seed():
    def drawn(seed):
        with protect_training(network(), seed, guards_parameters=False):
            return torch.rand(1).item(), np.random.rand(), random.random()  # noqa: NPY002

    assert drawn(5) == drawn(5)
    assert all(one != other for one, other in zip(drawn(5), drawn(-6), strict=True))


class Lazy(nn.Module):
    """Makes its table of positions at the first pass, as many language models do, and once more for longer inputs."""

    def __init__(self):
        super().__init__()
        self.scale, self.head = nn.Parameter(torch.ones(3)), nn.Linear(3, 2)
        self.length = 0

    def forward(self, x):
        if x.shape[1] > self.length:
            self.length = x.shape[1]
            self.register_buffer("table", torch.linspace(0, 1, self.length)[:, None], persistent=False)
        x.mul_(2)  # in place: it may, in its own inputs
        return self.head((x + self.scale * self.table[: x.shape[1]]).mean(dim=1))


def test_what_a_model_keeps_of_a_pass_can_be_trained_with():
    model = Lazy()
    probe = Probe(torch.randn(20, 6, 3), tokens="rows", perturbation="gaussian-noise:std=1", share=None)
    before = [tensor.clone() for tensor in probe._recorder.measurement.source]
    for length in (4, 6, 5):
        model(torch.randn(2, length, 3)).sum().backward()
        probe.measure(model, length if length != 5 else 7)
    assert model.length == len(model.table) == 6
    assert all(torch.equal(one, other) for one, other in zip(before, probe._recorder.measurement.source, strict=True))
