import json
import math

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import jostle
from jostle.base.errors import FailureError, UsageError
from jostle.data import Dataset
from jostle.landscape import sharpness
from jostle.landscape.weights import WeightNoise
from tests.landscape.toys import images, linear, zoo

X = torch.tensor([[1.0, 2.0, -1.0], [0.5, 0.0, 3.0], [-2.0, 1.0, 1.0], [0.1, 0.2, 0.2]], dtype=torch.float64)


def near(mean, exact):
    """Within 4 standard errors over the draws."""
    error = mean.per_draw.std(ddof=1) / math.sqrt(len(mean.per_draw))
    assert error > 0
    return abs(mean.value - exact) <= 4 * error


@pytest.mark.parametrize("bias", [None, [0.5]])
def test_a_linear_model_has_its_closed_form(bias):
    sizes = X.square().sum(dim=1) + (bias is not None)
    exact = float(0.1 * math.sqrt(2 / math.pi) * sizes.sqrt().mean())
    found = sharpness(linear([[1.0, -1.0, 2.0]], bias), X, std=0.1, draws=2000)
    assert near(found.output, exact)


def test_predictions_of_a_linear_model_have_their_closed_form():
    model = linear([[1.0, -1.0, 0.2]])
    margins = (X @ model.weight[0]).detach() / (0.5 * X.norm(dim=1))
    exact = float((0.5 * torch.erfc(margins.abs() / math.sqrt(2))).mean())
    assert 0.05 < exact < 0.45
    assert near(sharpness(model, X, std=0.5, draws=2000).prediction, exact)


def test_every_draw_is_what_its_noise_says():
    model = linear([[1.0, -1.0, 2.0]], [0.3])
    found = sharpness(model, X, std=0.1, draws=7, seed=5)
    noise = WeightNoise(dict(model.named_parameters()), "gaussian", 0.1, 5)
    extended = np.hstack([X.numpy(), np.ones((4, 1))])  # the weight comes before the bias
    by_hand = [np.abs(extended @ noise.steps([draw])[0]).mean() for draw in range(7)]
    assert np.allclose(found.output.per_draw, by_hand, rtol=1e-12)
    assert found.output.value == pytest.approx(np.mean(by_hand))
    before = X @ model.weight[0].detach() + 0.3
    after = before[:, None] + torch.from_numpy(extended @ noise.steps(range(7)).T)
    flips = (torch.sign(after) != torch.sign(before)[:, None]).double().mean(dim=0)
    assert found.prediction.per_draw.tolist() == flips.tolist()


def test_logits_are_averaged_or_added_up():
    model = linear([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [1.0, 1.0, 1.0]])
    mean, total = (sharpness(model, X, std=0.1, reduction=name) for name in ("mean", "sum"))
    assert np.allclose(4 * mean.output.per_draw, total.output.per_draw)
    assert (mean.prediction.per_draw == total.prediction.per_draw).all()


@pytest.mark.parametrize("at_once", [None, 1, 3])
@pytest.mark.parametrize("name", jostle.models.names())
def test_no_noise_changes_nothing(name, at_once):
    model = zoo(name).train()
    found = sharpness(model, images(), std=0.0, draws=5, batch_size=4, draws_at_once=at_once)
    for mean in (found.output, found.prediction):
        assert (mean.value, mean.low, mean.high) == (0.0, 0.0, 0.0)
        assert mean.per_draw.tolist() == [0.0] * 5
    assert model.training


@pytest.mark.parametrize("name", jostle.models.names())
def test_small_noise_changes_something(name):
    assert sharpness(zoo(name), images(), std=0.01, draws=2).output.value > 0


class TestReleased:
    def test_dropout_and_batch_statistics_change_outputs_without_noise(self):
        for name in ("vit-small", "resnet-18"):
            found = sharpness(zoo(name), images(), std=0.0, protocol="released")
            assert found.output.value > 0.01
            assert found.output.high > found.output.value  # not exact: nothing says how much dropout varies
        plain = sharpness(zoo("mlp-mixer"), images(), std=0.0, protocol="released")
        assert plain.output.value == 0

    def test_its_settings(self):
        found = sharpness(zoo("mlp"), images(), protocol="released")
        assert (found.std, found.reduction, found.protocol) == (0.05, "sum", "released")
        assert (sharpness(zoo("mlp"), images()).std, sharpness(zoo("mlp"), images()).reduction) == (0.005, "mean")

    def test_it_is_the_released_loop(self):
        """A copy of the weights plus noise in a network in train mode, against the network in eval mode."""
        torch.manual_seed(3)
        model = nn.Sequential(nn.Linear(3, 5), nn.BatchNorm1d(5), nn.ReLU(), nn.Linear(5, 4)).eval()
        found = sharpness(model, X, protocol="released", batch_size=2, draws=3, seed=2)
        noise = WeightNoise(dict(model.named_parameters()), "gaussian", 0.05, 2)
        for draw in range(3):
            copy = nn.Sequential(nn.Linear(3, 5), nn.BatchNorm1d(5), nn.ReLU(), nn.Linear(5, 4))
            for fresh, moved in zip(copy.parameters(), noise.moved(draw).values(), strict=True):
                fresh.data.copy_(moved)
            with torch.no_grad():
                pairs = [(model(part), copy(part)) for part in (X[:2], X[2:])]
            changes = sum(float((a - b).abs().sum()) for a, b in pairs) / 4
            flips = sum(int((a.argmax(1) != b.argmax(1)).sum()) for a, b in pairs) / 4
            assert found.output.per_draw[draw] == pytest.approx(changes, rel=1e-12)
            assert found.prediction.per_draw[draw] == flips

    def test_running_statistics_of_a_fresh_network_do_not_matter(self):
        model = zoo("resnet-18")
        first = sharpness(model, images(), protocol="released")
        before = torch.get_rng_state()
        again = sharpness(model, images(), protocol="released")
        assert (first.output.per_draw == again.output.per_draw).all()
        assert torch.equal(torch.get_rng_state(), before)
        moved = sharpness(zoo("vit-small"), images(), std=0.0, protocol="released", seed=1)
        other = sharpness(zoo("vit-small"), images(), std=0.0, protocol="released", seed=2)
        assert (moved.output.per_draw != other.output.per_draw).all()

    def test_draws_cannot_be_put_together(self):
        with pytest.raises(UsageError, match="draws_at_once=2 is not possible in train mode"):
            sharpness(zoo("mlp"), images(), protocol="released", draws_at_once=2)


class TestDraws:
    def test_batches_and_order_do_not_matter(self):
        model, x = zoo("resnet-18"), images(7)
        whole = sharpness(model, x, std=0.05)
        for other in (sharpness(model, x, std=0.05, batch_size=3), sharpness(model, x.flip(0), std=0.05)):
            assert np.allclose(whole.output.per_draw, other.output.per_draw, rtol=1e-9)
            assert (whole.prediction.per_draw == other.prediction.per_draw).all()

    def test_more_draws_begin_with_the_same(self):
        model = zoo("mlp")
        few, many = (sharpness(model, images(), draws=draws, draws_at_once=1) for draws in (3, 9))
        assert (few.output.per_draw == many.output.per_draw[:3]).all()
        assert len(set(many.output.per_draw)) == 9

    def test_seeds_differ(self):
        model = zoo("mlp")
        first, second = (sharpness(model, images(), seed=seed).output.per_draw for seed in (0, 1))
        assert (first != second).all()


def test_inputs_of_all_kinds():
    model, labels = zoo("mlp"), torch.zeros(6, dtype=torch.int64)
    expected = sharpness(model, images()).output.per_draw

    class Named(nn.Module):
        def __init__(self):
            super().__init__()
            self.model = model

        def forward(self, pixels, extra):
            return {"logits": self.model(pixels) + 0 * extra[:, None]}

    loader = DataLoader(TensorDataset(images(), labels), batch_size=2, shuffle=True)
    for kind in (Dataset("points", images(), labels, classes=3), loader, images().numpy()):
        assert np.allclose(sharpness(model, kind).output.per_draw, expected)
    mapping = {"extra": torch.zeros(6, dtype=torch.int64), "pixels": images()}
    assert np.allclose(sharpness(Named(), mapping).output.per_draw, expected)


def test_text_and_json():
    found = sharpness(zoo("mlp"), images(), draws=3)
    assert "output" in str(found)
    assert "Student's t over 3 draws, asymptotic" in str(found)
    record = json.loads(json.dumps(found.to_dict()))
    assert record["output"]["value"] == found.output.value
    assert record["num_parameters"] == sum(p.numel() for p in zoo("mlp").parameters())
    assert record["passes"] == 6 * 4


def test_progress():
    states = []
    sharpness(zoo("mlp"), images(), draws=3, draws_at_once=1, progress=states.append)
    assert [state.passes for state in states] == [12, 18, 24]
    assert states[-1].share == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"std": -0.1}, "std=-0.1 must be a finite number, at least 0"),
        ({"std": math.nan}, "std=nan must be"),
        ({"std": "0.1"}, "std='0.1' must be"),
        ({"draws": 1}, "draws=1 must be a whole number from 2 to"),
        ({"draws": 2.5}, "draws=2.5 must be a whole number"),
        ({"inputs": torch.empty(0, 3)}, "inputs are empty"),
        ({"inputs": torch.full((2, 3), torch.nan)}, "2 of 2 inputs hold NaN"),
        ({"inputs": torch.ones(4)}, r"inputs of shape \(4,\) have no axis of their own"),
        ({"inputs": 7}, "inputs of type int cannot be read"),
        ({"model": nn.ReLU()}, "model has no floating-point parameters"),
        ({"model": torch.relu}, "expected a torch.nn.Module"),
        ({"protocol": "relased"}, "unknown protocol 'relased'; did you mean released"),
        ({"reduction": "max"}, "unknown reduction 'max'; did you mean mean"),
        ({"level": 1.0}, "level=1.0 must be a finite number above 0"),
        ({"seed": 0.5}, "seed=0.5 must be a whole number"),
        ({"batch_size": 0}, "batch_size=0 must be a whole number, at least 1"),
        ({"draws_at_once": 0}, "draws_at_once=0 must be"),
        (
            {"model": nn.Sequential(nn.Linear(3, 4), nn.Unflatten(1, (2, 2))).double()},
            r"outputs have shape \(4, 2, 2\)",
        ),
    ],
)
def test_wrong_use_is_one_clear_line(arguments, message):
    given = {"model": linear([[1.0, 2.0, 3.0]]), "inputs": X, **arguments}
    with pytest.raises(UsageError, match=message) as caught:
        sharpness(**given)
    assert "\n" not in str(caught.value)


def test_models_that_fail_are_one_clear_line():
    with pytest.raises(FailureError, match="model raised RuntimeError on a batch of input"):
        sharpness(nn.Linear(4, 1), X)
    with pytest.raises(FailureError, match="4 of 4 inputs with NaN or infinity before its weights are moved"):
        sharpness(linear([[math.inf, 1.0, 1.0]]), X)

    class Root(nn.Linear):
        def forward(self, x):
            return super().forward(x).sqrt()

    brittle = Root(3, 1, bias=False)
    brittle.weight.data.fill_(1e-6)
    with pytest.raises(FailureError, match="move the weights less"):
        sharpness(brittle, torch.eye(3), std=1.0)
