"""The name of a model is a text, and anything else is refused in one line."""

import numpy as np
import pytest
import torch

import jostle
from jostle.base.errors import UsageError

X = torch.zeros(4, 3)
NOISE = {"tokens": "coordinates", "perturbation": "gaussian-noise:1"}


def first_two(x):
    return x[:, :2]


CALLS = {
    "measure": lambda name: jostle.measure(first_two, X, **NOISE, name=name),
    "sweep": lambda name: jostle.sweep(first_two, X, tokens="coordinates", stds=[1.0], name=name),
    "stability": lambda name: jostle.stability(first_two, X, rho=[0.5], name=name),
    "certify": lambda name: jostle.certify(first_two, X, std=0.5, draws=20, selection=5, name=name),
    "worst_case": lambda name: jostle.worst_case(first_two, X, tokens="coordinates", radius=1.0, name=name),
    "influence": lambda name: jostle.influence(first_two, [[1, 2]], perturbation=jostle.ReplaceBy(4), name=name),
    "depth": lambda name: jostle.depth(torch.nn.Sequential(torch.nn.Linear(3, 2)), X, site="0", name=name),
    "change_texts": lambda name: jostle.change_texts(lambda texts: [0] * len(texts), ["a"], change="case", name=name),
}


@pytest.mark.parametrize("name", [np.zeros(3), torch.zeros(2, 2), ["a"], 3, None, b"model"])
@pytest.mark.parametrize("call", CALLS)
def test_a_name_that_is_no_text_is_refused_in_one_line(call, name):
    with pytest.raises(UsageError, match=r"^name=.* must be a text$") as refused:
        CALLS[call](name)
    assert "\n" not in str(refused.value)
