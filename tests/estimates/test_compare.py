import dataclasses

import numpy as np
import pytest
import torch
from torch import nn

import jostle
from jostle.base.errors import UsageError

INPUTS = torch.randn(80, 6, generator=torch.Generator().manual_seed(3), dtype=torch.float64)


def linear(seed, classes=3):
    torch.manual_seed(seed)
    return nn.Linear(6, classes, dtype=torch.float64).eval()


MODELS = {"a": linear(0), "b": linear(1), "c": linear(2)}
CHOICES = {"tokens": "coordinates", "perturbation": "gaussian-noise:1.5"}


@pytest.mark.parametrize("plan", [jostle.Grid(3), jostle.Until(half_width=0.04)])
@pytest.mark.parametrize("response", ["flip", "logit-change"])
def test_models_see_the_same_inputs_and_noise_as_alone(plan, response):
    together = jostle.compare(MODELS, INPUTS, plan=plan, response=response, **CHOICES)
    for name, model in MODELS.items():
        alone = jostle.measure(model, INPUTS, plan=plan, response=response, **CHOICES)
        if isinstance(plan, jostle.Grid):
            assert together[name].value == pytest.approx(alone.value, abs=1e-12)
            assert together[name].per_input == pytest.approx(alone.per_input, abs=1e-12)
        else:
            assert together[name].trials >= alone.trials  # it goes on until the last model is precise enough


@pytest.mark.parametrize("plan", [jostle.Grid(3), jostle.Until(half_width=0.04)])
@pytest.mark.parametrize("response", ["flip", "logit-change"])
@pytest.mark.parametrize("target", ["dataset", "population"])
def test_differences_are_paired_signed_and_inside_their_intervals(plan, response, target):
    c = jostle.compare(MODELS, INPUTS, plan=plan, response=response, target=target, **CHOICES)
    for first in MODELS:
        for second in MODELS:
            if first == second:
                continue
            d = c.difference(first, second)
            assert d.value == pytest.approx(c[first].value - c[second].value, abs=1e-12)
            assert d.low <= d.value <= d.high
            assert d.interval.target == target
            assert (d.low, d.high) == (-c.difference(second, first).high, -c.difference(second, first).low)


def test_a_model_does_not_differ_from_itself():
    c = jostle.compare({"one": MODELS["a"], "two": MODELS["a"]}, INPUTS, plan=jostle.Grid(5), **CHOICES)
    d = c.difference("one", "two")
    assert d.value == 0
    assert d.low <= 0 <= d.high
    assert d.verdict == "no significant difference between one and two"
    until = jostle.compare(
        {"one": MODELS["a"], "two": MODELS["a"]}, INPUTS, plan=jostle.Until(half_width=0.05), **CHOICES
    )
    assert until.difference("one", "two").high < 0.05


def test_pairing_is_sharper_than_two_measurements():
    close = nn.Linear(6, 3).eval()
    with torch.no_grad():
        close.weight.copy_(MODELS["a"].weight + 0.02 * torch.randn(3, 6))
        close.bias.copy_(MODELS["a"].bias)
    inputs = torch.randn(1500, 6)
    c = jostle.compare({"a": MODELS["a"], "close": close}, inputs, plan=jostle.Grid(5), target="population", **CHOICES)
    d = c.difference("a", "close")
    unpaired = np.hypot(c["a"].population.half_width, c["close"].population.half_width)
    assert d.interval.half_width < unpaired / 2


def test_a_comparison_is_read_back_whole(tmp_path):
    c = jostle.compare(MODELS, INPUTS, plan=jostle.Grid(2), **CHOICES)
    c.save(tmp_path / "c.json")
    loaded = jostle.load(tmp_path / "c.json")
    assert loaded.to_dict() == c.to_dict()
    assert str(loaded) == str(c)
    assert loaded.difference("b", "a").value == c.difference("b", "a").value


@pytest.mark.parametrize("seconds", [0.0496, 0.04951, 0.2498])
def test_a_time_prints_the_same_after_it_was_rounded_in_a_file(tmp_path, seconds):
    m = jostle.measure(MODELS["a"], INPUTS, plan=jostle.Grid(1), **CHOICES)
    m = dataclasses.replace(m, seconds=seconds)
    m.save(tmp_path / "m.json")
    assert str(jostle.load(tmp_path / "m.json")) == str(m)


def test_unknown_models_answer_with_near_matches():
    c = jostle.compare({"vit": MODELS["a"], "cnn": MODELS["b"]}, INPUTS, plan=jostle.Grid(1), **CHOICES)
    with pytest.raises(UsageError, match="did you mean vit"):
        c["vti"]
    with pytest.raises(UsageError, match="did you mean cnn"):
        c.difference("vit", "cn")
    assert c.names == ["vit", "cnn"]
    assert len(c) == 2


@pytest.mark.parametrize("models", [{}, [MODELS["a"]], None])
def test_models_must_be_named(models):
    with pytest.raises(UsageError, match="models must be a mapping"):
        jostle.compare(models, INPUTS, **CHOICES)


def test_interruption_keeps_every_model():
    calls = 0

    def slow(x):
        nonlocal calls
        calls += len(x)
        if calls > 900:
            raise KeyboardInterrupt
        return MODELS["a"](x)

    with pytest.raises(jostle.Interrupted) as caught:
        jostle.compare({"slow": slow, "b": MODELS["b"]}, INPUTS, plan=jostle.Until(half_width=1e-4), **CHOICES)
    c = caught.value.result
    assert c["slow"].trials == c["b"].trials > 0
    assert c.stopped == "interrupted"
