import pytest
import torch
from torch import nn

from jostle.base.errors import UsageError
from jostle.training import evaluate, fit, precision
from tests.training.toys import network, random_points, same_weights, separable

ADAM = {"lr": 0.02, "batch_size": 10, "max_epochs": 3}
CPU = torch.device("cpu")


@pytest.mark.parametrize(
    ("name", "model", "message"),
    [
        ("float16", network(), "precision='float16' needs a cuda device, not cpu; use precision='bfloat16'"),
        ("bfloat16", network().double(), r"needs float32 weights, the model has float64; call model.float\(\)"),
        ("half", network(), "unknown precision 'half'; known: bfloat16, float16, float32"),
    ],
)
def test_what_cannot_be(name, model, message):
    with pytest.raises(UsageError, match=message):
        fit(model, random_points(), **ADAM, precision=name)


def test_float32_is_whatever_the_weights_are():
    seen = []
    model = network().double()
    model[-1].register_forward_hook(lambda module, args, output: seen.append(output.dtype))
    fit(model, random_points(), **ADAM)
    assert set(seen) == {torch.float64}


def test_steps_are_in_bfloat16_and_evaluations_are_not():
    model, seen = network(), set()
    model[-1].register_forward_hook(lambda module, args, output: seen.add((module.training, output.dtype)))
    history = fit(model, random_points(), **ADAM, precision="bfloat16")
    assert seen == {(True, torch.bfloat16), (False, torch.float32)}
    assert {weights.dtype for weights in model.parameters()} == {torch.float32}
    assert history.losses[-1] == evaluate(model, random_points()).loss


def test_bfloat16_is_close_but_not_the_same():
    single, half = network(dropout=0.0), network(dropout=0.0)
    exact = fit(single, random_points(), **ADAM)
    rounded = fit(half, random_points(), **ADAM, precision="bfloat16")
    assert not same_weights(single, half)
    assert rounded.losses == pytest.approx(exact.losses, rel=0.02)


def test_a_bfloat16_step_by_hand():
    """Inputs and weights rounded to 8 bits, the product too, the loss in single precision, the step on full weights."""
    dataset = random_points()
    model, start = nn.Linear(5, 3, bias=False).float(), nn.Linear(5, 3, bias=False).float()
    start.load_state_dict(model.state_dict())
    fit(model, dataset, optimizer="sgd", lr=0.5, batch_size=60, max_epochs=1, precision="bfloat16")
    rounded = start.weight.to(torch.bfloat16)
    logits = dataset.inputs.to(torch.bfloat16) @ rounded.T
    nn.functional.cross_entropy(logits.float(), dataset.labels).backward()
    torch.testing.assert_close(model.weight, start.weight - 0.5 * start.weight.grad, rtol=0, atol=2e-3)


@pytest.mark.parametrize("classes", [1, 2])
def test_bfloat16_learns(classes):
    model = network(classes, dropout=0.0)
    history = fit(model, separable(), lr=0.02, batch_size=10, max_epochs=60, target_accuracy=0.98, precision="bfloat16")
    assert history.stopped == "target accuracy"


@pytest.fixture
def _float16_anywhere(monkeypatch):
    """float16 on the CPU, which is too slow to offer but has the same scaler as cuda."""
    monkeypatch.setattr("jostle.training.loop.check_precision", lambda *_: None)


@pytest.mark.usefixtures("_float16_anywhere")
@pytest.mark.parametrize("clip", [None, 0.5])
def test_float16_scales_its_gradients_back(clip):
    settings = {"optimizer": "sgd", "lr": 0.3, "batch_size": 10, "max_epochs": 3, "clip": clip}  # Adam sees no scale
    exact, scaled = network(dropout=0.0), network(dropout=0.0)
    first = fit(exact, random_points(), **settings)
    second = fit(scaled, random_points(), **settings, precision="float16")
    assert second.losses == pytest.approx(first.losses, rel=0.01)
    assert first.losses[-1] < 0.95 * first.losses[0]


@pytest.mark.usefixtures("_float16_anywhere")
def test_float16_resumes_bit_for_bit_with_the_scale_it_had(tmp_path, monkeypatch):
    def small_steps(name, device):
        return torch.amp.GradScaler(device.type, init_scale=2.0**4, growth_interval=5)  # so that the scale grows

    monkeypatch.setattr("jostle.training.loop.gradient_scaler", small_steps)
    whole, resumed = network(), network()
    expected = fit(whole, random_points(), **ADAM, precision="float16")
    fit(resumed, random_points(), **(ADAM | {"max_epochs": 2}), precision="float16", checkpoint=tmp_path / "c")
    assert fit(resumed, random_points(), **ADAM, precision="float16", checkpoint=tmp_path / "c") == expected
    assert same_weights(whole, resumed)


def test_only_float16_has_a_scaler():
    assert not precision.gradient_scaler("bfloat16", CPU).is_enabled()
    assert precision.gradient_scaler("float16", CPU).is_enabled()
