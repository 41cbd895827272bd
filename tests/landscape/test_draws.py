"""Draws one after the other and draws at once are the same numbers; the rule says which is done."""

import numpy as np
import pytest
import torch
from torch import nn

import jostle
from jostle.base.errors import FailureError, UsageError
from jostle.base.randomness import Stream
from jostle.landscape import average_direction_sharpness, sharpness
from jostle.landscape.network import Network
from jostle.landscape.weights import WeightNoise, chosen_parameters, gaussians, preserve, uniforms
from tests.landscape.toys import images, zoo


class Recurrent(nn.Module):
    """torch's LSTM cannot be evaluated for several weights at once."""

    def __init__(self):
        super().__init__()
        self.lstm, self.head = nn.LSTM(8, 4, batch_first=True), nn.Linear(4, 2)

    def forward(self, x):
        return self.head(self.lstm(x[:, 0])[0][:, -1])


@pytest.mark.parametrize("name", jostle.models.names())
def test_at_once_is_one_by_one(name):
    model = zoo(name)
    loop, mapped = (sharpness(model, images(), std=0.02, draws=5, draws_at_once=k) for k in (1, 3))
    assert np.allclose(loop.output.per_draw, mapped.output.per_draw, rtol=1e-9)
    assert (loop.prediction.per_draw == mapped.prediction.per_draw).all()
    loop, mapped = (
        average_direction_sharpness(model, images(), rho=0.5, directions=4, draws_at_once=k) for k in (1, 4)
    )
    assert np.allclose(loop.function.per_draw, mapped.function.per_draw, rtol=1e-9)


def groups(model, x, draws, std=0.1, batch_size=128):
    network = Network(model, x, batch_size=batch_size)
    with preserve(model):
        return network.groups(WeightNoise(network.parameters, "gaussian", std, 0), draws, None)


def test_small_networks_are_evaluated_at_once():
    small = nn.Linear(8, 2)
    assert groups(small, torch.zeros(10, 8), 3) == [[0], [1], [2]]
    assert groups(small, torch.zeros(10, 8), 4) == [[0, 1, 2, 3]]
    assert [len(group) for group in groups(small, torch.zeros(10, 8), 33)] == [17, 16]
    assert [len(group) for group in groups(small, torch.zeros(10, 8), 4, std=0.0)] == [1] * 4
    large = nn.Linear(1023, 32)  # 2^15 parameters: 32 inputs are just not too many
    assert len(groups(large, torch.zeros(32, 1023), 4)) == 1
    assert len(groups(large, torch.zeros(33, 1023), 4)) == 4
    assert len(groups(large, torch.zeros(33, 1023), 4, batch_size=32)) == 1


def test_networks_that_cannot_be_mapped_are_looped_over():
    model = Recurrent()
    assert len(groups(model, images(), 4)) == 4
    found = sharpness(model, images(), std=0.1)
    assert found.output.value > 0
    with pytest.raises(FailureError, match="draws_at_once=1 evaluates one draw after the other"):
        sharpness(model, images(), draws_at_once=2)


def test_attention_layers_of_torch_are_mapped_without_a_warning():
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    model = nn.Sequential(nn.Flatten(1, 2), nn.TransformerEncoder(layer, 2, enable_nested_tensor=False))
    model.append(nn.Flatten()).append(nn.Linear(64, 2))
    loop, mapped = (sharpness(model, images(), std=0.02, draws_at_once=k) for k in (1, 5))
    assert np.allclose(loop.output.per_draw, mapped.output.per_draw, rtol=1e-9)


def test_tied_weights_are_one_parameter():
    model = nn.Sequential(nn.Linear(3, 3, bias=False), nn.Linear(3, 3, bias=False))
    model[1].weight = model[0].weight
    noise = WeightNoise(chosen_parameters(model), "gaussian", 0.1, 0)
    assert noise.count == 9
    x, moved = torch.randn(4, 3), noise.moved(0)["0.weight"]
    weight = model[0].weight.detach()
    expected = (x @ moved.T @ moved.T - x @ weight.T @ weight.T).abs().mean()
    for at_once in (1, 2):
        found = sharpness(model, x, std=0.1, draws=2, draws_at_once=at_once)
        assert found.output.per_draw[0] == pytest.approx(float(expected))


class TestNoise:
    def test_gaussian_and_sphere(self):
        parameters = {"a": torch.zeros(60, 50), "b": torch.zeros(2000)}
        steps = WeightNoise(parameters, "gaussian", 0.5, seed=1).steps([0])[0]  # (5000,)
        assert abs(steps.mean()) < 4 * 0.5 / np.sqrt(5000)
        assert abs(steps.std() - 0.5) < 4 * 0.5 / np.sqrt(2 * 5000)
        sphere = WeightNoise(parameters, "sphere", 2.5, seed=1)
        assert np.linalg.norm(sphere.steps([0])) == pytest.approx(2.5, rel=1e-14)
        moved = sphere.moved(3)
        assert np.allclose(np.concatenate([moved["a"].flatten(), moved["b"]]), sphere.steps([3])[0], rtol=1e-14)
        assert np.linalg.norm(np.diff(sphere.steps([0, 1]), axis=0)) > 1

    def test_layout_and_type_are_kept(self):
        weight = torch.randn(4, 3, 2, 2, dtype=torch.float32).to(memory_format=torch.channels_last)
        moved = WeightNoise({"a": weight}, "gaussian", 0.1, 0).moved(0)["a"]
        assert moved.stride() == weight.stride()
        assert moved.dtype == torch.float32
        assert not torch.equal(moved, weight)

    @pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32])
    @pytest.mark.parametrize("at_once", [None, 1, 3])
    def test_steps_that_the_type_of_the_weights_rounds_are_refused(self, dtype, at_once):
        model, x = nn.Linear(20, 10, dtype=dtype), torch.randn(4, 20).to(dtype)
        spacing = 0.2 * torch.finfo(dtype).eps  # of the largest weights
        length = spacing * 210**0.5 / 4
        message = rf"={{}} is too small for weights in {dtype}, which round a step of length .* or a larger {{}}$"
        with pytest.raises(UsageError, match=message.format(r"\S+", "rho")) as caught:
            average_direction_sharpness(model, x, rho=length, directions=4, draws_at_once=at_once)
        assert "\n" not in str(caught.value)
        with pytest.raises(UsageError, match=message.format(r"\S+", "std")):
            sharpness(model, x, std=spacing / 4, draws=4, draws_at_once=at_once)
        assert average_direction_sharpness(model, x, rho=100 * length, directions=4, draws_at_once=at_once).value > 0
        assert average_direction_sharpness(model, x, rho=0.0, directions=4, draws_at_once=at_once).value == 0
        in_double = average_direction_sharpness(model.double(), x.double(), rho=length, directions=4)
        assert in_double.value > 0

    def test_steps_that_are_too_long_are_not_called_too_small(self):
        model, x = nn.Linear(20, 10, dtype=torch.float16), torch.randn(4, 20).half()
        with pytest.raises(FailureError, match="move the weights less"):
            sharpness(model, x, std=1e6, draws=2)

    def test_numbers_are_addressed(self):
        stream = Stream(0, "tests")
        several = uniforms(stream, [5, 2], 9000)  # (2, 9000)
        assert (several[1, :5000] == uniforms(stream, [2], 5000)[0]).all()
        assert len(np.unique(several)) == 18000
        assert (gaussians(stream, [0], 10) != gaussians(stream, [1], 10)).all()
