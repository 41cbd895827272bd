import math

import pytest
import torch
from torch import nn

from jostle.base.errors import UsageError
from jostle.boolean import networks
from jostle.landscape import POSITIONS, parameter_norm
from tests.landscape.toys import linear


def test_all_parameters_together():
    assert parameter_norm(linear([[3.0, 0.0], [0.0, 4.0]], [0.0, 12.0])) == 13
    model = networks.create("transformer", n=4, dim=8)
    flat = torch.cat([parameter.detach().flatten() for parameter in model.parameters()])
    assert parameter_norm(model) == pytest.approx(float(flat.norm()), rel=1e-12)
    rest = float(flat.square().sum() - model.positions.detach().square().sum())
    assert parameter_norm(model, skip=POSITIONS) == pytest.approx(math.sqrt(rest), rel=1e-12)


def test_tied_weights_count_once_and_buffers_do_not():
    model = nn.Sequential(linear([[3.0]]), linear([[3.0]]), nn.BatchNorm1d(1, affine=False))
    assert parameter_norm(model) == pytest.approx(math.sqrt(18))
    model[1].weight = model[0].weight
    assert parameter_norm(model) == 3


def test_half_precision_is_added_up_in_double():
    model = nn.Linear(1000, 100, bias=False).half()
    model.weight.data.fill_(10.0)
    assert parameter_norm(model) == pytest.approx(math.sqrt(1e7), rel=1e-12)


def test_wrong_use_is_one_clear_line():
    with pytest.raises(UsageError, match="model has no floating-point parameters"):
        parameter_norm(nn.ReLU())
