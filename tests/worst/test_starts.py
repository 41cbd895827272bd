"""Where an ascent begins: directions that a model offers, and those that are given."""

import numpy as np
import pytest
import torch
from torch import nn

from jostle.tokens import Inputs, Patches, Rows
from jostle.worst import worst_case
from jostle.worst.spots import GradientFunction
from jostle.worst.starts import directions_of_model
from tests.worst.maps import words

FEW = {"tokens": "rows", "response": "absolute-change", "starts": 3, "steps": 2, "draws": 2, "relative": False}


class Needle(nn.Module):
    """Flat but for a narrow peak in one direction, which no gradient near the token shows."""

    def __init__(self, dim):
        super().__init__()
        self.direction = torch.nn.functional.normalize(torch.arange(1.0, dim + 1.0), dim=0)

    def forward(self, x):
        along = (x[:, 0] - words(1, 3, 20)[0, 0]) @ self.direction
        return (100 * (along - 0.99)).relu()[:, None]


class Telling(Needle):
    """The same, and it says where the peak is."""

    asked: list[tuple[tuple[int, ...], int]] = []  # noqa: RUF012

    def starting_directions(self, tokens, position):
        self.asked.append((tuple(tokens.shape), position))
        return 7 * self.direction[None]  # of any length


@pytest.mark.filterwarnings("ignore::jostle.estimates.JostleWarning")
def test_the_search_starts_in_the_directions_that_a_model_offers():
    inputs = words(1, 3, 20)
    found = {kind: worst_case(kind(20), inputs, positions=[0], **FEW).value for kind in (Needle, Telling)}
    assert found[Needle] == 0
    assert found[Telling] == pytest.approx(1.0)  # 100 (1 - 0.99)
    assert set(Telling.asked) == {((3, 20), 0)}
    given = worst_case(
        Needle(20), inputs, positions=[0], directions=lambda i, _: Needle(20).direction.expand(len(i), 1, 20), **FEW
    )
    assert given.value == pytest.approx(found[Telling])


def test_directions_are_offered_for_rows_only():
    inputs = words(2, 3, 20)
    offered = directions_of_model(GradientFunction(Telling(20), Inputs(inputs, Rows())))
    assert offered(np.array([0, 1]), np.array([0, 2])).shape == (2, 1, 20)
    assert directions_of_model(GradientFunction(Telling(20), Inputs(inputs[:, None, :2], Patches(2)))) is None
    assert directions_of_model(GradientFunction(Needle(20), Inputs(inputs, Rows()))) is None
    assert directions_of_model(GradientFunction(lambda x: x, Inputs(inputs, Rows()))) is None
