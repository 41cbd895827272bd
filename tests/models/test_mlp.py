import math

import pytest
import torch

from jostle import models
from jostle.base.errors import UsageError


def test_paper_size():
    model = models.create("mlp")
    shapes = [tuple(weight.shape) for weight in model.parameters()]
    assert shapes == [(512, 784), (512,), (128, 512), (128,), (10, 128)]


@pytest.mark.parametrize(
    ("activation", "expected"),
    [
        ("leaky-relu", lambda x: x if x > 0 else 0.01 * x),
        ("relu", lambda x: max(x, 0.0)),
        ("sigmoid", lambda x: 1 / (1 + math.exp(-x))),
    ],
)
def test_forward_by_loops(activation, expected):
    model = models.create("mlp", image_size=2, hidden=(3,), classes=2, activation=activation, seed=0).double()
    pixels = [0.5, -1.0, 2.0, -0.25]
    first, last = model.layers[0], model.classifier
    hidden = [
        expected(sum(w * x for w, x in zip(row, pixels, strict=True)) + bias)
        for row, bias in zip(first.weight.tolist(), first.bias.tolist(), strict=True)
    ]
    logits = [sum(w * h for w, h in zip(row, hidden, strict=True)) for row in last.weight.tolist()]
    output = model(torch.tensor(pixels, dtype=torch.float64).reshape(1, 1, 2, 2))
    torch.testing.assert_close(output, torch.tensor([logits], dtype=torch.float64))


def test_hidden_may_be_a_list():
    shapes = [tuple(weight.shape) for weight in models.create("mlp", hidden=[7], classes=1).parameters()]
    assert shapes == [(7, 784), (7,), (1, 7)]


def test_unknown_activation():
    with pytest.raises(UsageError, match="unknown activation 'leaky_relu'; did you mean leaky-relu"):
        models.create("mlp", activation="leaky_relu")
