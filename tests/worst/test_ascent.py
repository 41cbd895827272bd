"""The best that was found is never given up."""

import numpy as np
import pytest
import torch

from jostle.base.randomness import Stream
from jostle.responses import Flip, Margin
from jostle.sampling.plans import Batching
from jostle.tokens import Inputs, Rows
from jostle.worst import worst_case
from jostle.worst.ascent import BestChanges
from jostle.worst.objective import Objective
from jostle.worst.spots import GradientFunction, Spots
from tests.worst.maps import Halfspace, words


def spots(response):
    """Two tokens of one input."""
    held = Inputs(words(1, 2, 3), Rows())
    function, rows = GradientFunction(Halfspace(2, 3), held), np.arange(2)
    choices = Objective(response), Batching(held, 8), np.zeros(2, dtype=np.int64), rows, Stream(0, "noise")
    with function.evaluating():
        return Spots(function, *choices, is_relative=True)


def test_larger_responses_replace_smaller_ones_and_nothing_else_does():
    best = BestChanges(spots(Margin()))
    rows, deltas = np.array([0, 0, 1, 0]), torch.arange(12.0).reshape(4, 3)
    for values, expected in (
        ([1.0, 3.0, 2.0, 2.0], [3.0, 2.0]),  # the largest of several of one spot
        ([0.5, 2.9, 5.0, np.nan], [3.0, 5.0]),  # smaller ones and NaN change nothing
        ([np.inf, 0.0, 0.0, 0.0], [3.0, 5.0]),
    ):
        finite = best.take(rows, deltas + sum(expected), np.array(values), np.array(values), torch.zeros(4))
        assert finite.tolist() == np.isfinite(values).tolist()
        assert best.values.tolist() == expected
    assert best.deltas.tolist() == [(deltas[1] + 5).tolist(), (deltas[2] + 8).tolist()]


def test_of_equal_flips_the_higher_one_is_kept():
    best = BestChanges(spots(Flip()))
    clean = best.heights.copy()
    rows, outputs = np.zeros(2, dtype=np.int64), torch.tensor([1.0, -1.0])
    best.take(rows, torch.ones(2, 3), np.zeros(2), clean[0] - np.array([1.0, 2.0]), outputs)
    assert np.array_equal(best.heights, clean)  # no change at all was higher
    best.take(rows, torch.ones(2, 3), np.ones(2), np.array([0.5, 0.1]), outputs)
    assert (best.values[0], best.heights[0], best.predictions[0]) == (1.0, 0.5, 1)


@pytest.mark.filterwarnings("ignore::jostle.estimates.JostleWarning")
def test_what_a_small_ball_held_counts_in_a_larger_one():
    """A ridge at distance 0.3 around the token, flat everywhere else: from farther out nothing leads back to it."""
    token = words(1, 1, 6)

    def model(x):
        return (1 - 10 * ((x - token).norm(dim=2) - 0.3).abs()).relu()

    found = worst_case(
        model, token, tokens="rows", radius=[0.3, 3.0], response="absolute-change", relative=False, steps=5, draws=4
    )
    np.testing.assert_allclose(found.values[:, 0, 0], 1.0, rtol=1e-6)
    assert found.max_of[-1, 1, 0, 0] == 0
    assert np.linalg.norm(found.changes[1, 0, 0]) == pytest.approx(0.3)
