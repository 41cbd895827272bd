import numpy as np
import pytest
import torch
from torch import nn

from jostle.base.errors import FailureError, UsageError
from jostle.landscape import average_direction_sharpness, curvature, layernorm_blowup, parameter_norm, sharpness
from jostle.landscape.network import read_inputs

MEASURES = {
    "sharpness": lambda inputs: sharpness(nn.Linear(3, 2), inputs),
    "average_direction_sharpness": lambda inputs: average_direction_sharpness(nn.Linear(3, 2), inputs, rho=0.1),
    "layernorm_blowup": lambda inputs: layernorm_blowup(nn.LayerNorm(3), inputs),
    "curvature": lambda inputs: curvature(nn.Linear(3, 2), inputs, torch.zeros(4, dtype=torch.int64)),
}
WRONG = {
    "text": ("mnist", r"inputs='mnist' is a text: give a tensor or a dataset, such as jostle.data.load"),
    "number": (torch.tensor(1.0), r"inputs of shape \(\) have no axis of their own"),
    "numbers": (torch.ones(4), r"inputs of shape \(4,\) have no axis of their own; give \(inputs, 1\)"),
    "none": (torch.ones(0, 3), "inputs are empty"),
    "sparse": (torch.eye(4, 3).to_sparse(), "inputs are sparse; give dense tensors"),
    "sparse entry": ({"x": torch.eye(4, 3).to_sparse()}, "inputs are sparse; give dense tensors"),
    "nan": (torch.full((4, 3), torch.nan), "4 of 4 inputs hold NaN or infinity"),
    "nothing": (None, "inputs of type NoneType cannot be read"),
    "a mapping of lists": ({"x": [1.0]}, r"inputs of shape \(1,\) have no axis of their own"),
}


@pytest.mark.parametrize("inputs", WRONG)
@pytest.mark.parametrize("measure", MEASURES)
def test_inputs_that_cannot_be_read_are_one_clear_line(measure, inputs):
    given, message = WRONG[inputs]
    with pytest.raises(UsageError, match=message) as caught:
        MEASURES[measure](given)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("measure", ["sharpness", "average_direction_sharpness", "curvature"])
@pytest.mark.parametrize("kind", [torch.uint8, torch.float32, torch.bfloat16])
def test_inputs_of_another_type_than_the_weights_are_one_clear_line(measure, kind):
    with pytest.raises(FailureError, match=f"the inputs are {kind}, the model is torch.float64: convert") as caught:
        MEASURES[measure](torch.ones(4, 3).to(kind))
    assert "\n" not in str(caught.value)


def test_lists_and_arrays_of_inputs_are_read():
    rows = torch.eye(4, 3)
    for given in (list(rows), rows.numpy(), [(row, 0) for row in rows], {"x": rows}):
        assert np.array_equal(next(iter(read_inputs(given).batch(np.arange(4)).values())), rows)


@pytest.mark.parametrize("skip", ["b*", None, 3, [3]])
def test_patterns_must_be_a_list_of_texts(skip):
    with pytest.raises(UsageError, match=r"skip=.* must be a list of patterns of parameter names, for example \['"):
        parameter_norm(nn.Linear(2, 1), skip=skip)
