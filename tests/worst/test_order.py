"""mean <= max of draws <= largest found, for every map, input, position and radius; and the twins of the draws."""

from itertools import combinations

import numpy as np
import pytest
import torch

import jostle
from jostle.worst import worst_case
from jostle.worst.search import draw_counts, expected_maxima
from tests.worst.maps import Attention, Halfspace, RandomFeatures, small_network, words

MAPS = {
    "halfspace": Halfspace(4, 6),
    "random features": RandomFeatures(4, 6),
    "softmax": Attention(6),
    "relu": Attention(6, "relu"),
    "network": None,
    "steps": lambda x: x.flatten(1).round(),
}
RADII = [0.0, 0.3, 1.0, 3.87]


@pytest.mark.parametrize("name", MAPS)
@pytest.mark.parametrize("response", ["relative-change", "flip", "margin"])
@pytest.mark.filterwarnings("ignore::jostle.estimates.JostleWarning")
def test_the_order_holds_everywhere(name, response):
    model = MAPS[name] or small_network()
    inputs = words(3, 4, 6)
    for positions in ("each", "worst"):
        found = worst_case(
            model, inputs, tokens="rows", radius=RADII, response=response, positions=positions, steps=6, draws=6
        )
        slack = 1e-12 * np.abs(found.mean)
        assert np.array_equal(np.isfinite(found.values), np.ones_like(found.values))
        assert (found.mean <= found.max_of[-1] + slack).all()
        assert (found.max_of[0] <= found.mean + slack).all()
        assert (found.max_of[:-1] <= found.max_of[1:]).all()
        assert (found.max_of[-1] <= found.values).all()
        assert (found.values[:-1] <= found.values[1:]).all()
        assert not found.values[0].any()
        assert not found.changes[0].any()
        sizes = np.linalg.norm(found.changes, axis=3)
        assert (sizes <= np.asarray(RADII)[:, None, None] * 6**0.5 * (1 + 1e-6)).all()
        for radius in RADII:
            for over in ("mean", "max"):
                at = found.at(radius, over)
                assert at.mean.value <= at.max_of_draws.value + 1e-12
                assert at.max_of_draws.value <= at.largest.value


@pytest.mark.parametrize("response", ["flip", "margin", "relative-change"])
def test_the_mean_is_that_of_a_measurement_with_the_same_draws(response):
    model, inputs = small_network(), words(5, 4, 6)
    found = worst_case(model, inputs, tokens="rows", radius=1.5, response=response, steps=1, draws=7, seed=3)
    twin = jostle.measure(
        model, inputs, tokens="rows", perturbation=jostle.Sphere(1.5, relative=True), response=response,
        plan=jostle.Grid(7), seed=3,
    )  # fmt: skip
    assert found.at().mean.value == pytest.approx(twin.value, rel=1e-12)
    np.testing.assert_allclose(found.at().mean.per_input, twin.per_input, rtol=1e-9, atol=1e-12)


def test_the_largest_of_some_draws_is_the_mean_over_all_choices():
    values = np.random.default_rng(0).standard_normal((3, 6))
    values[1, 2], values[2] = np.nan, np.nan
    found = expected_maxima(values, [1, 2, 3, 6])
    for row in (0, 1):
        known = values[row][np.isfinite(values[row])]
        for place, count in enumerate((1, 2, 3, 6)):
            chosen = list(combinations(known, min(count, len(known))))
            assert found[place, row] == pytest.approx(np.mean([max(some) for some in chosen]))
    assert np.isnan(found[:, 2]).all()
    assert draw_counts(1) == [1]
    assert draw_counts(64) == [1, 2, 4, 8, 16, 32, 64]


def test_the_largest_of_a_million_draws():  # binomial numbers would take hours
    ordered, counts = np.arange(1.0, 10**6 + 1), draw_counts(10**6)
    found = expected_maxima(ordered[None], counts)[:, 0]
    assert found.tolist() == pytest.approx([k * (10**6 + 1) / (k + 1) for k in counts])  # known for 1, 2, ..., K


def test_batches_make_no_difference():
    model, inputs = small_network(), words(2, 4, 6)
    choices = {"tokens": "rows", "radius": [0.5, 1.0], "response": "margin", "steps": 10, "draws": 4}
    small, large = (worst_case(model, inputs, batch_size=size, **choices) for size in (7, 500))
    np.testing.assert_allclose(small.mean, large.mean, rtol=1e-9)
    # which trials of a token are compared at a quarter of the way depends on the batch, so only nearly
    np.testing.assert_allclose(small.values, large.values, rtol=0.02)


def test_a_search_of_a_part_finds_what_the_search_of_all_finds_there():
    model, inputs = small_network(), words(4, 4, 6)
    choices = {"tokens": "rows", "response": "margin", "steps": 12, "draws": 8}
    whole = worst_case(model, inputs, **choices)
    part = worst_case(model, inputs, positions=[2], **choices)
    np.testing.assert_allclose(part.values[0, :, 2], whole.values[0, :, 2], rtol=0.02)
    assert np.isnan(part.values[0][:, [0, 1, 3]]).all()
    worst = worst_case(model, inputs, positions="worst", candidates=2, **choices)
    np.testing.assert_allclose(worst.at().largest.value, whole.at(over="max").largest.value, rtol=0.02)
    assert worst.passes < whole.passes


def test_flips_end_a_search_early():
    model, inputs = Halfspace(4, 6, bias=0.0), torch.randn(20, 4, 6)
    choices = {"tokens": "rows", "radius": 2.0, "steps": 50, "draws": 4}
    flips = worst_case(model, inputs, **choices)
    # the margin of a halfspace ends early too, where the gradient points straight out of the ball
    assert flips.passes <= worst_case(model, inputs, response="margin", **choices).passes
    sure = worst_case(lambda x: x.sum(dim=(1, 2)) * 0 + x[:, 0, 0], inputs * 0 + 1.0, positions=[0], **choices)
    assert sure.value == 1.0
    assert sure.passes < 20 * (4 + 9 + 3 * 8 * 50) / 4
