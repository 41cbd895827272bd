import json
import math

import numpy as np
import pytest
import torch
from torch import nn

from jostle.base.errors import UsageError
from jostle.boolean import networks
from jostle.data import Dataset
from jostle.landscape import POSITIONS, average_direction_sharpness
from jostle.landscape.weights import WeightNoise
from tests.landscape.toys import Square, images, linear, zoo

X = torch.tensor([[1.0, 2.0, -1.0], [0.5, 0.0, 3.0], [-2.0, 1.0, 1.0], [0.1, 0.2, 0.2]], dtype=torch.float64)
RHO = 0.7


def near(mean, exact):
    error = mean.per_draw.std(ddof=1) / math.sqrt(len(mean.per_draw))
    return abs(mean.value - exact) <= 4 * error


def test_a_linear_model_has_its_closed_form():
    """E (Delta (x, 1))^2 = rho^2 (|x|^2 + 1) / parameters on the sphere."""
    model = linear([[1.0, -1.0, 2.0]], [0.4])
    exact = float(RHO**2 * (X.square().sum(dim=1) + 1).mean() / 4)
    found = average_direction_sharpness(model, X, rho=RHO, directions=2000)
    assert near(found.function, exact)
    noise = WeightNoise(dict(model.named_parameters()), "sphere", RHO, 0)
    extended = np.hstack([X.numpy(), np.ones((4, 1))])
    by_hand = np.square(extended @ noise.steps(range(2000)).T).mean(axis=0)
    assert np.allclose(found.function.per_draw, by_hand, rtol=1e-9)
    assert (found.value, found.low, found.high) == (found.function.value, found.function.low, found.function.high)
    assert found.loss is None
    assert found.clean_loss is None


def test_a_quadratic_model_has_its_closed_form():
    """|theta + Delta|^2 - |theta|^2 = 2 theta Delta + rho^2, so E of its square is 4 rho^2 |theta|^2 / m + rho^4."""
    model, x = Square([1.0, -2.0, 0.5]), torch.tensor([[1.0], [2.0]])
    exact = (4 * RHO**2 * 5.25 / 3 + RHO**4) * 2.5
    assert near(average_direction_sharpness(model, x, rho=RHO, directions=2000).function, exact)


def test_released_is_the_increase_of_the_loss():
    """A linear model that fits its labels: std^2 mean |x|^2, with one step for each weight."""
    model = linear([[1.0, -1.0, 2.0]])
    labels = model(X)[:, 0].detach()
    found = average_direction_sharpness(model, X, labels, protocol="released", directions=2000)
    exact = 0.02**2 * float(X.square().sum(dim=1).mean())
    assert near(found.estimate, exact)
    assert found.estimate is found.loss
    assert np.allclose(found.loss.per_draw, found.function.per_draw)  # since the labels are fitted
    assert found.clean_loss == 0
    assert found.rho == pytest.approx(0.02 * math.sqrt(3))


def test_the_increase_of_the_loss_is_another_thing_where_labels_are_not_fitted():
    model, labels = linear([[1.0, -1.0, 2.0]]), torch.tensor([3.0, -1.0, 0.0, 2.0])
    found = average_direction_sharpness(model, X, labels, protocol="released", std=0.1, directions=5, batch_size=3)
    of_module = average_direction_sharpness(
        model, X, labels[:, None], nn.MSELoss(), protocol="released", std=0.1, directions=5, batch_size=3
    )
    noise, before = WeightNoise(dict(model.named_parameters()), "gaussian", 0.1, 0), model(X)[:, 0].detach()
    for draw in range(5):
        after = X @ noise.moved(draw)["weight"][0]
        increase = (after - labels).square().mean() - (before - labels).square().mean()
        assert found.function.per_draw[draw] == pytest.approx(float((after - before).square().mean()))
        assert found.loss.per_draw[draw] == pytest.approx(float(increase))
        assert of_module.loss.per_draw[draw] == pytest.approx(float(increase))
    assert not np.allclose(found.loss.per_draw, found.function.per_draw, rtol=0.1)
    assert found.clean_loss == pytest.approx(float((before - labels).square().mean()))


class Rescaled(nn.Module):
    """2 T - 1: the same function with labels -1 and 1 instead of 0 and 1."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, x):
        return 2 * self.model(x) - 1


def test_labels_of_0_and_1_have_a_factor_of_4():
    model, bits = linear([[1.0, -1.0, 2.0]], [0.4]), torch.tensor([0.0, 1.0, 1.0, 0.0])
    for options in ({"rho": RHO}, {"protocol": "released", "std": 0.1}):
        of_bits = average_direction_sharpness(model, X, bits, label_values=(0, 1), **options)
        of_signs = average_direction_sharpness(Rescaled(model), X, 2 * bits - 1, **options)
        raw = average_direction_sharpness(model, X, bits, **options)
        assert (of_bits.factor, of_signs.factor) == (4, 1)
        for name in ("function", "loss"):
            exact = getattr(of_signs, name).per_draw
            assert np.allclose(getattr(of_bits, name).per_draw, exact, rtol=1e-9)
            assert np.allclose(4 * getattr(raw, name).per_draw, exact, rtol=1e-9)
        assert of_bits.clean_loss == pytest.approx(of_signs.clean_loss)


def test_positional_encodings_stay_unless_asked():
    model = networks.create("transformer", n=4, dim=8)
    bits = torch.randint(2, (6, 4)) * 2.0 - 1.0
    found = average_direction_sharpness(model, bits, rho=0.5, directions=3)
    assert found.skipped == ["positions"]
    count = sum(parameter.numel() for parameter in model.parameters())
    assert found.num_parameters == count - model.positions.numel()
    everything = average_direction_sharpness(model, bits, rho=0.5, directions=3, skip=())
    assert everything.skipped == []
    assert everything.num_parameters == count
    assert POSITIONS[0] == "*position*"
    assert str(found).endswith(f"\n  {model.positions.numel()} parameters skipped: positions")
    assert "skipped" not in str(everything)


def test_a_text_says_how_many_parameters_were_skipped_and_names_some():
    class Named(nn.Module):
        def __init__(self):
            super().__init__()
            self.position_wise_feed_forward = nn.Sequential(nn.Linear(3, 40), nn.Linear(40, 30))
            self.head = nn.Linear(30, 1)

        def forward(self, x):
            return self.head(self.position_wise_feed_forward(x))

    found = average_direction_sharpness(Named(), X, rho=0.5, directions=2)
    assert (found.num_parameters, found.num_skipped, len(found.skipped)) == (31, 1390, 4)
    names = ", ".join(f"position_wise_feed_forward.{name}" for name in ("0.weight", "0.bias", "1.weight"))
    assert str(found).splitlines()[-1] == f"  1,390 parameters skipped: {names} and 1 more"
    assert found.to_dict()["num_skipped"] == 1390


def test_no_step_is_no_change():
    found = average_direction_sharpness(zoo("resnet-18"), images(), torch.zeros(6), "cross-entropy", rho=0.0)
    assert (found.value, found.low, found.high) == (0, 0, 0)
    assert (found.loss.value, found.loss.high) == (0, 0)


def test_losses_and_labels():
    model, classes = zoo("mlp"), torch.tensor([0, 1, 2, 0, 1, 2])
    dataset = Dataset("points", images(), classes, classes=3)
    named = average_direction_sharpness(model, dataset, loss="cross-entropy", rho=0.5, directions=3, batch_size=4)
    of_module = average_direction_sharpness(model, images(), classes, nn.CrossEntropyLoss(), rho=0.5, directions=3)
    assert np.allclose(named.loss.per_draw, of_module.loss.per_draw)
    with torch.no_grad():
        assert named.clean_loss == pytest.approx(float(nn.functional.cross_entropy(model(images()), classes)))
    record = json.loads(json.dumps(named.to_dict()))
    assert record["loss"]["value"] == named.loss.value
    assert record["value"] == named.value
    assert "3 directions of length 0.5" in str(named)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "protocol='paper' needs rho=, the length of a step"),
        ({"rho": 1.0, "std": 0.1}, "protocol='paper' needs rho="),
        ({"rho": -1.0}, "rho=-1.0 must be a finite number, at least 0"),
        ({"rho": 1.0, "protocol": "released"}, "moves each weight by std="),
        ({"protocol": "released"}, "give labels, or a dataset that has them"),
        ({"rho": 1.0, "directions": 1}, "directions=1 must be a whole number from 2 to"),
        ({"rho": 1.0, "labels": torch.zeros(3)}, r"labels have shape \(3,\); expected one for each of 4 inputs"),
        ({"rho": 1.0, "labels": "cat"}, "labels of type str must be a tensor"),
        ({"rho": 1.0, "labels": torch.zeros(4), "loss": "msee"}, "unknown loss 'msee'; did you mean mse"),
        ({"rho": 1.0, "labels": torch.zeros(4), "loss": 3}, "loss=3 must be one of mse, cross-entropy or a function"),
        ({"rho": 1.0, "labels": torch.zeros(4), "loss": nn.MSELoss(reduction="sum")}, "loss has reduction='sum'"),
        ({"rho": 1.0, "labels": torch.zeros(4, 2)}, "loss='mse' compares 1 outputs with 2 labels per input"),
        ({"rho": 1.0, "labels": torch.zeros(4), "loss": lambda a, b: a}, r"loss answers with \(4, 1\)"),
        ({"rho": 1.0, "label_values": (1, 1)}, r"label_values=\(1, 1\) must be two different numbers"),
        ({"rho": 1.0, "label_values": (0, 1), "loss": "cross-entropy"}, "rescales squared errors only"),
        ({"rho": 1.0, "skip": "weight"}, r"skip='weight' must be a list of patterns"),
        ({"rho": 1.0, "skip": ["*"]}, "matches every parameter"),
    ],
)
def test_wrong_use_is_one_clear_line(arguments, message):
    given = {"model": linear([[1.0, 2.0, 3.0]]), "inputs": X, **arguments}
    with pytest.raises(UsageError, match=message) as caught:
        average_direction_sharpness(**given)
    assert "\n" not in str(caught.value)
