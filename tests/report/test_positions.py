"""Where in the input: what a page says about positions is what the profile knows, and as sure as that is."""

from dataclasses import replace

import numpy as np
import pytest
import torch

import jostle
from jostle.figures import profile_figure, svg
from jostle.intervals import fixed
from jostle.report import render
from jostle.report.groups import blocks, choose_groups, difference_of, group, ranges
from jostle.report.measurement import measurement_page
from jostle.report.positions import _series, position_sections
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
    found = ranges(np.array(counts), 12)
    reached = max(place for place, count in enumerate(counts) if count) + 1
    first = min(place for place, count in enumerate(counts) if count)
    assert np.concatenate(found).tolist() == list(range(first, reached))
    assert len(found) <= 12 or len(found) == reached <= 12
    assert all(len(places) for places in found)


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
        found = group(m, np.asarray([place]))
        expected = m.profile.values[place], m.profile.low[place], m.profile.high[place], m.profile.counts[place]
        assert (found.value, found.low, found.high, found.trials) == pytest.approx(expected)


def test_flips_of_several_positions_are_counted_together():
    m = of_texts("grid:6")
    counts = m.profile.counts[2:9]
    flips = round(float(m.profile.values[2:9] @ counts))
    found = group(m, np.arange(2, 9))
    ends = [float(end) for end in fixed.clopper_pearson(flips, counts.sum(), 0.95)]
    assert [found.low, found.high] == pytest.approx(ends)
    assert found.high - found.low < (m.profile.high - m.profile.low)[2:9].mean()
    sampled = of_texts("until:half_width=0.1")
    together, alone = group(sampled, np.arange(2, 9)), (sampled.profile.high - sampled.profile.low)[2:9]
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
        found = group(with_profile(blank, values=values, counts=np.full(5, 20)), np.arange(5))
        misses += not found.low <= rates.mean() <= found.high
    assert misses <= repeats / 10 + 4 * np.sqrt(repeats * 0.09)


def test_few_trials_are_a_gap_and_not_a_bridge():
    values = np.array([0.1, 0.2, 0.9, 0.1])
    m = with_profile(measurement(values, (4,)), counts=np.array([50, 40, 3, 60]))
    series = _series("vit", [group(m, np.asarray([place])) for place in range(4)])
    assert np.asarray(series.y).tolist() == pytest.approx([0.1, 0.2, np.nan, 0.1], nan_ok=True)
    assert np.isnan([series.low[2], series.high[2]]).all()
    few = with_profile(m, counts=np.array([3, 0, 2, 3]))
    drawn = np.asarray(_series("vit", [group(few, np.asarray([place])) for place in range(4)]).y)
    assert np.isfinite(drawn).tolist() == [True, False, True, True]  # with few trials everywhere, all are shown


def test_the_figure_has_a_point_for_each_row_of_the_table():
    m = of_texts("grid:6")
    [section] = position_sections([m])
    chosen, _ = choose_groups([m], [ranges(m.profile.counts, most) for most in (12, 6, 4, 3, 2)])
    assert len(section.table.rows) == len(chosen)
    for row, places in zip(section.table.rows, chosen, strict=True):
        found = group(m, places)
        assert row[1].text == f"{found.value:.4f} [{found.low:.4f}, {found.high:.4f}]"
    assert "Few inputs are long" in section.text[0]
    assert "Few inputs are long" not in position_sections([measurement(np.full(5, 0.1), (5,))])[0].text[0]


def test_the_caption_of_a_heat_map_says_how_sure_its_numbers_are():
    m = of_images("grid:3")
    [section] = position_sections([m])
    [shown] = section.maps
    half = np.median(m.profile.high - m.profile.low) / 2
    assert f"about 90 trials each, typical interval ±{half:.2g} (95 % for the inputs given" in section.caption
    assert len(shown.hints) == 4
    value, low, high = (part[2] for part in (m.profile.values, m.profile.low, m.profile.high))
    assert shown.hints[2] == f"row 1, column 0: {value:.4f} [{low:.4f}, {high:.4f}], 90 trials"
    assert shown.hints[2] in render(measurement_page(m, inputs="x"))
    uneven = with_profile(m, counts=np.array([10, 100, 0, 50]))
    assert "10 to 100 trials each" in position_sections([uneven])[0].caption
    assert position_sections([uneven])[0].maps[0].hints[2] == "row 1, column 0: never jostled"
    assert "exact for the inputs given" in position_sections([of_images("grid:1", "replace-by:0")])[0].caption


def test_positions_that_form_no_grid_have_no_hints():
    m = measurement(np.full(6, 0.1), (3, 2, 1))
    assert position_sections([m])[0].figure_svg == svg(profile_figure(m))


def made_up_map(rates, trials, seed=0):
    """Flips of so many trials at each position of a square grid."""
    counts = np.full(rates.size, trials)
    values = np.random.default_rng(seed).binomial(counts, rates.reshape(-1)) / trials
    m = measurement(values, rates.shape)
    m = replace(m, settings=replace(m.settings, plan="grid:draws=1"))
    return with_profile(m, values=values, counts=counts)


def test_neighbours_are_put_together_where_chance_is_all_there_is_to_see():
    middle = np.full((8, 8), 0.02)
    middle[2:6, 2:6] = 0.3
    clear, rough, noise = (
        made_up_map(middle, 400), made_up_map(middle, 4), made_up_map(np.full((8, 8), 0.1), 20),
    )  # fmt: skip
    assert [len(position_sections([m])[0].maps[0].shares) for m in (clear, rough, noise)] == [64, 16, 4]
    assert "cannot be told apart" not in position_sections([clear])[0].maps[0].caption
    assert "A square is 2 x 2 positions" in position_sections([rough])[0].text[0]
    assert "cannot be told apart" in position_sections([noise])[0].maps[0].caption
    assert "Chance alone" in position_sections([noise])[0].maps[0].caption
    still = made_up_map(np.zeros((8, 8)), 20)
    assert position_sections([still])[0].maps[0].caption.endswith("No change was seen at any of them.")
    assert sum(int(hint.split("], ")[1].split()[0]) for hint in position_sections([rough])[0].maps[0].hints) == 256


def test_positions_that_are_alike_are_seldom_said_to_differ():
    """At most one in a hundred, and 4 standard errors."""
    cuts = blocks((6, 6))
    said = [any(choose_groups([made_up_map(np.full((6, 6), 0.2), 30, seed)], cuts)[1].values()) for seed in range(100)]
    assert sum(said) <= 1 + 4


def test_how_much_groups_differ_is_pearsons_statistic():
    from scipy.stats import chi2_contingency

    m = made_up_map(np.asarray([[0.1, 0.3], [0.2, 0.6]]), 50)
    groups = [group(m, places) for places in blocks((2, 2))[0]]
    flips = np.asarray([round(one.value * 50) for one in groups])
    expected = chi2_contingency(np.stack([flips, 50 - flips]), correction=False)
    assert difference_of(groups) == pytest.approx((expected.statistic / 3, expected.pvalue))


@pytest.mark.parametrize("shape", [(1, 1), (7, 7), (3, 8), (2, 2)])
def test_blocks_tile_the_grid(shape):
    for cut in blocks(shape):
        assert sorted(np.concatenate(cut).tolist()) == list(range(shape[0] * shape[1]))
    assert len(blocks(shape)[0]) == shape[0] * shape[1]


def test_an_exact_position_with_few_trials_is_shown():
    m = of_texts("grid:1", perturbation="sphere:0")  # a radius of 0 changes nothing, so every position is exact
    groups = [group(m, np.asarray([place])) for place in np.flatnonzero(m.profile.counts).tolist()]
    few = [replace(group, trials=2 if number else 50) for number, group in enumerate(groups)]
    assert np.isfinite(_series("m", few).y).all()
    wide = [replace(group, low=0.0, high=1.0) for group in few]
    assert np.isfinite(_series("m", wide).y).sum() == 1


def test_models_of_a_comparison_share_one_colour_scale():
    weak, strong = of_images("grid:2", "gaussian-noise:0.3"), of_images("grid:2", "gaussian-noise:3")
    [alone] = position_sections([weak])
    [together] = position_sections([replace(weak, name="a"), replace(strong, name="b")])
    assert [one.title for one in together.maps] == ["a", "b"]
    assert max(alone.maps[0].shares) == max(together.maps[1].shares) == 1.0
    assert max(together.maps[0].shares) < 1.0
    assert "one colour scale" in together.caption
