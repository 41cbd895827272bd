"""What a result says, writes and reads."""

import json

import numpy as np
import pytest
import torch

import jostle
from jostle.base.errors import UsageError
from jostle.worst import WorstCase, worst_case
from jostle.worst.result import mean_over_inputs
from jostle.worst.search import search
from tests.worst.maps import small_network, words

FEW = {"tokens": "rows", "starts": 3, "steps": 4, "draws": 5}


@pytest.fixture(scope="module")
def flips():
    return worst_case(small_network().double(), words(6, 4, 6) * 1.0, radius=[0.2, 0.6, 1.5], name="net", **FEW)


def test_saved_and_loaded_it_is_the_same(flips, tmp_path):
    flips.save(tmp_path / "worst.json")
    again = WorstCase.load(tmp_path / "worst.json")
    for name in ("values", "changes", "mean", "max_of", "margins", "predictions", "clean_predictions"):
        assert np.array_equal(getattr(again, name), getattr(flips, name), equal_nan=True), name
    assert again.settings == flips.settings
    assert (again.value, again.low, again.high) == (flips.value, flips.low, flips.high)
    assert str(again) == str(flips)
    assert json.loads((tmp_path / "worst.json").read_text())["kind"] == "jostle/worst-case"


def test_positions_that_were_not_searched_and_other_responses_survive_a_file(tmp_path):
    found = worst_case(small_network(), words(2, 4, 6), response="margin", positions=[1], **FEW)
    found.save(tmp_path / "worst.json")
    again = WorstCase.load(tmp_path / "worst.json")
    assert np.array_equal(again.values, found.values, equal_nan=True)
    assert again.margins is None
    assert again.predictions is None


def test_jostle_load_knows_a_worst_case_from_a_measurement(flips, tmp_path):
    flips.save(tmp_path / "worst.json")
    again = jostle.load(tmp_path / "worst.json")
    assert isinstance(again, WorstCase)
    assert str(again) == str(flips)
    inputs = torch.randn(4, 3, generator=torch.Generator().manual_seed(0))
    measured = jostle.measure(
        lambda x: x.sum(dim=1), inputs, tokens="coordinates", perturbation="sign-flip", plan="grid:1"
    )
    measured.save(tmp_path / "measured.json")
    back = jostle.load(tmp_path / "measured.json")
    assert isinstance(back, jostle.Measurement)
    assert back.value == measured.value


def test_jostle_load_has_one_line_for_what_it_cannot_read(flips, tmp_path):
    flips.save(tmp_path / "worst.json")
    text = (tmp_path / "worst.json").read_text()
    broken = {
        "cut": (text[: len(text) // 2], "is not whole JSON"),
        "other": (text.replace("jostle/worst-case", "jostle/best-case"), "not a jostle result"),
        "newer": (text.replace('"version": 1', '"version": 2'), "has version 2; this jostle reads 1"),
        "edited": (text.replace('"values": {', '"value_s": {'), "lacks or garbles 'values'; was it edited"),
    }
    for name, (content, message) in broken.items():
        (tmp_path / f"{name}.json").write_text(content)
        with pytest.raises(UsageError, match=message) as error:
            jostle.load(tmp_path / f"{name}.json")
        assert "\n" not in str(error.value)
    with pytest.raises(UsageError, match="missing"):
        jostle.load(tmp_path / "missing.json")


@pytest.mark.parametrize(
    "text",
    ["{", "[]", "{}", '{"kind": "jostle/measurement", "version": 1}', '{"kind": "jostle/worst-case", "version": 1}'],
)
def test_a_broken_file_is_one_clear_line(tmp_path, text):
    (tmp_path / "worst.json").write_text(text)
    with pytest.raises(UsageError, match="is not a whole worst case") as error:
        WorstCase.load(tmp_path / "worst.json")
    assert "\n" not in str(error.value)


def test_the_text_has_a_row_for_each_radius_and_says_what_it_is(flips):
    lines = str(flips).splitlines()
    assert lines[0].startswith("net: share of tokens flippable within a radius")
    assert "lower bounds" in lines[0]
    for radius, line in zip(flips.radii, lines[2:5], strict=True):
        at = flips.at(radius)
        numbers = line.replace("[", " ").replace("]", " ").replace(",", " ").split()
        shown = [at.mean.value, at.max_of_draws.value, at.largest.value, at.largest.low, at.largest.high]
        np.testing.assert_allclose([float(number) for number in numbers], [radius, *shown], rtol=1e-3)
    assert f"{flips.passes:,} passes" in str(flips)


def test_means_over_positions_and_the_worst_position(flips):
    values = flips.values[-1]
    assert flips.value == pytest.approx(values.mean())
    assert flips.at(over="max").largest.value == pytest.approx(values.max(axis=1).mean())
    worst = flips.worst_positions()
    assert (values[np.arange(6), worst] == values.max(axis=1)).all()
    assert flips.low <= flips.value <= flips.high
    with pytest.raises(UsageError, match="over='median'"):
        flips.at(over="median")
    with pytest.raises(UsageError, match=r"radius=0.5 was not searched; there are 0.2, 0.6, 1.5"):
        flips.at(0.5)


def test_the_smallest_radius_that_flips(flips):
    smallest = flips.smallest_radius()
    for level, radius in enumerate(flips.radii):
        assert np.array_equal(smallest <= radius, flips.values[level] > 0)
    found = worst_case(small_network(), words(2, 4, 6), response="margin", **FEW)
    with pytest.raises(UsageError, match="about flips"):
        found.smallest_radius()


def test_margins_say_how_far_a_flip_was(flips):
    assert ((flips.margins <= 0) >= (flips.values > 0)).all()
    assert (flips.margins[flips.values == 0] >= 0).all()


def test_an_interval_of_one_input_knows_little():
    real = mean_over_inputs(np.array([2.0]), 0.95, is_share=False)
    assert (real.value, real.low, real.high) == (2.0, 0.0, np.inf)
    share = mean_over_inputs(np.array([1.0, np.nan]), 0.95, is_share=True)
    assert (share.value, round(share.low, 3), share.high) == (1.0, 0.025, 1.0)


@pytest.mark.slow
@pytest.mark.parametrize("is_share", [True, False])
def test_intervals_cover(is_share):
    """Shares of 4 tokens with a mean of 0.3, or exponential numbers, of 40 inputs; 95 %, less 4 standard errors."""
    generator, rounds, covered = np.random.default_rng(0), 600, 0
    for _ in range(rounds):
        sample = generator.binomial(4, 0.3, 40) / 4 if is_share else generator.exponential(1.0, 40)
        found = mean_over_inputs(sample, 0.95, is_share=is_share)
        covered += (0.3 if is_share else 1.0) in found.interval
    assert covered / rounds >= (0.95 if is_share else 0.92) - 4 * (0.05 * 0.95 / rounds) ** 0.5


def test_progress_is_told_and_ends_at_one():
    seen = []
    worst_case(small_network(), words(2, 4, 6), radius=[0.5, 1.0], progress=seen.append, **FEW)
    shares = [state.share for state in seen]
    assert shares == sorted(shares)
    assert shares[-1] == 1.0
    assert seen[-1].passes > seen[0].passes


def test_passes_count_a_backward_pass_as_two():
    calls = {"forward": 0, "backward": 0}

    def model(x):
        calls["forward"] += len(x)
        if x.requires_grad:
            x.register_hook(lambda gradient: calls.__setitem__("backward", calls["backward"] + len(gradient)))
        return (x**2).sum(dim=2).flatten(1)

    found = worst_case(model, words(3, 4, 6), response="relative-change", **FEW)
    assert found.passes == calls["forward"] + 2 * calls["backward"]
    assert calls["backward"] > 0


def test_many_inputs_are_searched_in_blocks(monkeypatch):
    choices = {"response": "margin", "radius": [0.5, 1.0], **FEW}
    model, inputs = small_network(), words(5, 4, 6)
    whole = worst_case(model, inputs, **choices)
    monkeypatch.setattr("jostle.worst.worst._NUMBERS_AT_ONCE", 4 * 3 * 6 * 2)  # two inputs at a time
    parts = worst_case(model, inputs, **choices)
    np.testing.assert_allclose(parts.mean, whole.mean, rtol=1e-9)
    np.testing.assert_allclose(parts.values, whole.values, rtol=0.05)
    assert torch.get_default_dtype() == torch.float64


def test_blocks_have_room_for_many_draws(monkeypatch):
    blocks = []

    def watched(spots, *rest, **more):
        blocks.append(len(spots))
        return search(spots, *rest, **more)

    monkeypatch.setattr("jostle.worst.worst._NUMBERS_AT_ONCE", 4 * 50 * 2)  # the draws of two inputs at a time
    monkeypatch.setattr("jostle.worst.worst.search", watched)
    worst_case(small_network(), words(5, 4, 6), response="margin", **FEW | {"draws": 50})
    assert blocks == [8, 8, 4]
