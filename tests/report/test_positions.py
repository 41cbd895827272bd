"""Where in the input: what a page says about positions is what the profile knows, and as sure as that is."""

from dataclasses import replace

import numpy as np
import pytest
import torch

import jostle
from jostle.figures import profile_figure, svg
from jostle.intervals import fixed
from jostle.report import render
from jostle.report.measurement import measurement_page
from jostle.report.positions import _group, _ranges, _series, position_sections
from tests.figures.made_up import measurement
from tests.tokens.made_up_texts import Bag, padded, sentences

TEXTS = padded(sentences([3, 9, 4, 14, 5, 7, 40]))
IMAGES = torch.randn(30, 1, 8, 8, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


def of_texts(plan, **choices):
    choices = {"tokens": jostle.Embeddings(), "perturbation": jostle.GaussianNoise(3.0)} | choices
    return jostle.measure(Bag(), TEXTS, plan=plan, **choices)


def of_images(plan, perturbation="gaussian-noise:1"):
    return jostle.measure(
        lambda x: x.flatten(1)[:, :20], IMAGES, tokens="patches:4", perturbation=perturbation, plan=plan
    )


def with_profile(m, **changes):
    return replace(m, profile=replace(m.profile, **changes))


@pytest.mark.parametrize("counts", [[5], [3] * 12, [100, 100, *[1] * 60, 0, 0], [1] * 100, [0, 7, *[0] * 20, 1]])
def test_ranges_of_positions_are_all_positions_in_order(counts):
    ranges = _ranges(np.array(counts))
    reached = max(place for place, count in enumerate(counts) if count) + 1
    first = min(place for place, count in enumerate(counts) if count)
    assert [place for start, stop in ranges for place in range(start, stop)] == list(range(first, reached))
    assert len(ranges) <= 12 or len(ranges) == reached <= 12
    assert all(start < stop for start, stop in ranges)


@pytest.mark.parametrize(
    ("plan", "choices"),
    [
        ("until:half_width=0.1", {}),
        ("grid:6", {}),
        ("grid:6", {"target": "population"}),
        ("grid:6", {"response": "margin"}),
        ("grid:1", {"perturbation": "sphere:0"}),
    ],
)
def test_one_position_alone_has_the_interval_of_the_profile(plan, choices):
    m = of_texts(plan, **choices)
    for place in np.flatnonzero(m.profile.counts > 1).tolist():
        group = _group(m, place, place + 1)
        expected = m.profile.values[place], m.profile.low[place], m.profile.high[place], m.profile.counts[place]
        assert (group.value, group.low, group.high, group.trials) == pytest.approx(expected)


def test_flips_of_several_positions_are_counted_together():
    m = of_texts("grid:6")
    counts = m.profile.counts[2:9]
    flips = round(float(m.profile.values[2:9] @ counts))
    group = _group(m, 2, 9)
    ends = [float(end) for end in fixed.clopper_pearson(flips, counts.sum(), 0.95)]
    assert [group.low, group.high] == pytest.approx(ends)
    assert group.high - group.low < (m.profile.high - m.profile.low)[2:9].mean()
    sampled = of_texts("until:half_width=0.1")
    together, alone = _group(sampled, 2, 9), (sampled.profile.high - sampled.profile.low)[2:9]
    assert together.low < together.value < together.high
    assert together.high - together.low < np.nanmean(alone)


@pytest.mark.parametrize(("plan", "repeats"), [("grid:draws=1", 300), ("until:half_width=0.05,max_passes=1000000", 60)])
def test_the_interval_of_several_positions_covers(plan, repeats):
    """Misses of a 90 % interval, at most a tenth and 4 standard errors; counts of 20 trials at each of 5 positions."""
    rates, random = np.array([0.02, 0.1, 0.3, 0.5, 0.2]), np.random.default_rng(0)
    blank = measurement(np.zeros(5), (5,))
    blank = replace(blank, settings=replace(blank.settings, plan=plan))
    misses = 0
    for _ in range(repeats):
        values = random.binomial(20, rates) / 20
        group = _group(with_profile(blank, values=values, counts=np.full(5, 20)), 0, 5)
        misses += not group.low <= rates.mean() <= group.high
    assert misses <= repeats / 10 + 4 * np.sqrt(repeats * 0.09)


def test_few_trials_are_a_gap_and_not_a_bridge():
    values = np.array([0.1, 0.2, 0.9, 0.1])
    m = with_profile(measurement(values, (4,)), counts=np.array([50, 40, 3, 60]))
    series = _series("vit", [_group(m, place, place + 1) for place in range(4)])
    assert np.asarray(series.y).tolist() == pytest.approx([0.1, 0.2, np.nan, 0.1], nan_ok=True)
    assert np.isnan([series.low[2], series.high[2]]).all()
    few = with_profile(m, counts=np.array([3, 0, 2, 3]))
    drawn = np.asarray(_series("vit", [_group(few, place, place + 1) for place in range(4)]).y)
    assert np.isfinite(drawn).tolist() == [True, False, True, True]  # with few trials everywhere, all are shown


def test_the_figure_has_a_point_for_each_row_of_the_table():
    m = of_texts("grid:6")
    [section] = position_sections([m])
    ranges = _ranges(m.profile.counts)
    assert len(section.table.rows) == len(ranges) == 12
    for row, (start, stop) in zip(section.table.rows, ranges, strict=True):
        group = _group(m, start, stop)
        assert row[1].text == f"{group.value:.4f} [{group.low:.4f}, {group.high:.4f}]"
    assert "Few inputs are long" in section.text[0]
    assert "Few inputs are long" not in position_sections([measurement(np.full(5, 0.1), (5,))])[0].text[0]


def test_the_caption_of_a_heat_map_says_how_sure_its_numbers_are():
    m = of_images("grid:3")
    [section] = position_sections([m])
    half = np.median(m.profile.high - m.profile.low) / 2
    assert f"about 90 trials each, typical interval ±{half:.2g} (95 % for the inputs given" in section.caption
    assert section.figure_svg.count("<title>") == 4
    assert "<title>row 1, column 0: " in render(measurement_page(m, inputs="x"))
    uneven = with_profile(m, counts=np.array([10, 100, 0, 50]))
    assert "10 to 100 trials each" in position_sections([uneven])[0].caption
    assert "exact for the inputs given" in position_sections([of_images("grid:1", "replace-by:0")])[0].caption


def test_positions_that_form_no_grid_have_no_hints():
    m = measurement(np.full(6, 0.1), (3, 2, 1))
    assert position_sections([m])[0].figure_svg == svg(profile_figure(m))


def test_an_exact_position_with_few_trials_is_shown():
    m = of_texts("grid:1", perturbation="sphere:0")  # a radius of 0 changes nothing, so every position is exact
    groups = [_group(m, place, place + 1) for place in np.flatnonzero(m.profile.counts).tolist()]
    few = [replace(group, trials=2 if number else 50) for number, group in enumerate(groups)]
    assert np.isfinite(_series("m", few).y).all()
    wide = [replace(group, low=0.0, high=1.0) for group in few]
    assert np.isfinite(_series("m", wide).y).sum() == 1


def test_models_of_a_comparison_share_one_colour_scale():
    weak, strong = of_images("grid:2", "gaussian-noise:0.3"), of_images("grid:2", "gaussian-noise:3")
    alone = position_sections([weak])[0].figure_svg
    together = position_sections([replace(weak, name="a"), replace(strong, name="b")])
    assert alone != together[0].figure_svg
    assert all("one colour scale" in section.caption for section in together)
