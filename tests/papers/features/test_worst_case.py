"""Random feature maps: their own search by exact one-word updates is the twin of the general one."""

import numpy as np
import pytest

from jostle.tokens import Inputs, Patches, Rows
from jostle.worst import worst_case
from jostle.worst.spots import GradientFunction
from jostle.worst.starts import directions_of_model
from jostle_papers.p2402_02969 import features
from tests.worst.maps import words

SIZES = {"num_tokens": 12, "dim": 32}


@pytest.mark.parametrize("name", ["rf", "raf", "raf-relu"])
@pytest.mark.parametrize("radius", [0.3, 1.0])
def test_both_searches_find_the_same(name, radius):
    phi, inputs = features.create(name, **SIZES), words(2, 12, 32, cosine=0.3)
    found = worst_case(
        phi.eval(),
        inputs,
        tokens="rows",
        radius=radius,
        response="relative-change",
        positions=[1],
        starts=40,
        draws=128,
    )
    for row in (0, 1):
        twin = features.word_sensitivity(phi, inputs[row], radius=radius, positions=[1], starts=12, steps=150)
        # both are lower bounds, and random features have many tops of nearly the same height
        assert found.values[0, row, 1] == pytest.approx(twin.value, rel=0.03)


def test_maps_offer_directions_to_start_in():
    phi, inputs = features.create("raf", **SIZES).eval(), words(3, 12, 32)
    directions = directions_of_model(GradientFunction(phi, Inputs(inputs, Rows())))
    given = directions(np.array([0, 2]), np.array([1, 5]))
    assert given.shape[::2] == (2, 32)
    assert given.shape[1] > 1
    assert directions_of_model(GradientFunction(phi, Inputs(inputs[:, None], Patches(4)))) is None
    assert directions_of_model(GradientFunction(lambda x: x, Inputs(inputs, Rows()))) is None
