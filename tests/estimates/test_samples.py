"""What became of single inputs and tokens, against the same trials counted by hand."""

import csv
import json

import numpy as np
import pytest
import torch
from scipy.stats import binomtest

import jostle
from jostle.base.errors import UsageError
from jostle.estimates import samples as kept
from jostle.estimates.samples import write_samples
from jostle.integrations.prompts import Prompts


def sign_of_two(x):
    return x[:, 0] + 0.5 * x[:, 1]


def points(count=30, tokens=4):
    return torch.randn(count, tokens, generator=torch.Generator().manual_seed(3), dtype=torch.float64)


def test_a_grid_without_randomness_is_exact_by_token():
    """The twin: flip every coordinate by hand."""
    x = points().sign()
    m = jostle.measure(
        sign_of_two, x, tokens="coordinates", perturbation="sign-flip", plan=jostle.Grid(1), samples=True
    )
    frame = m.to_frame("tokens")
    assert len(frame) == x.numel()
    for row in frame.itertuples():
        moved = x[row.input : row.input + 1].clone()
        moved[0, row.token] *= -1
        is_flip = bool((sign_of_two(moved) > 0) != (sign_of_two(x[row.input : row.input + 1]) > 0))
        assert (row.value, row.low, row.high, row.trials) == (is_flip, is_flip, is_flip, 1)
    np.testing.assert_allclose(m.to_frame("inputs")["value"], m.per_input)
    assert (m.to_frame("inputs")["low"] == m.to_frame("inputs")["high"]).all()


@pytest.mark.parametrize("at_once", [2**20, 100])
@pytest.mark.parametrize("plan", [jostle.Grid(7), jostle.Until(half_width=0.03)])
def test_sums_and_intervals_agree_with_the_measurement(plan, at_once, monkeypatch):
    monkeypatch.setattr(kept, "_AT_ONCE", at_once)
    options = {"tokens": "coordinates", "perturbation": "gaussian-noise:std=2", "plan": plan}
    m = jostle.measure(sign_of_two, points(), **options, samples=True)
    plain = jostle.measure(sign_of_two, points(), **options | {"plan": _uniform(plan)})
    assert (m.value, m.low, m.high, m.passes) == (plain.value, plain.low, plain.high, plain.passes)
    assert plain.samples is None
    tokens, inputs = m.to_frame("tokens"), m.to_frame("inputs")
    assert tokens["trials"].sum() == inputs["trials"].sum() == m.trials
    np.testing.assert_allclose(inputs["value"], m.per_input[inputs["input"]])
    by_position = (
        tokens.assign(changed=tokens["value"] * tokens["trials"]).groupby("token")[["changed", "trials"]].sum()
    )
    np.testing.assert_array_equal(by_position["trials"], m.profile.counts)
    np.testing.assert_allclose(by_position["changed"] / by_position["trials"], m.profile.values)
    for row in tokens.head(20).itertuples():
        ends = binomtest(round(row.value * row.trials), row.trials).proportion_ci(0.95, "exact")
        np.testing.assert_allclose([row.low, row.high], ends, atol=1e-9)


def _uniform(plan):
    return plan if isinstance(plan, jostle.Grid) else jostle.Until(half_width=plan.half_width, adaptive=False)


def test_a_single_token_is_covered_as_often_as_stated():
    """Flips of each token of one input, known to many draws, against intervals of 40 draws each."""
    x, options = points(1), {"tokens": "coordinates", "perturbation": "gaussian-noise:std=2", "samples": True}

    def model(x):
        return torch.stack([sign_of_two(x), -sign_of_two(x)], dim=1)

    truth = jostle.measure(model, x, **options, plan=jostle.Grid(20_000)).to_frame("tokens")["value"]
    found = [
        jostle.measure(model, x, **options, plan=jostle.Grid(40), seed=seed + 1).to_frame("tokens")
        for seed in range(60)
    ]
    assert truth.between(0.05, 0.95).sum() == 2  # the other two coordinates do not matter
    for token in np.flatnonzero(truth.between(0.05, 0.95)):
        share = np.mean([frame["low"][token] <= truth[token] <= frame["high"][token] for frame in found])
        assert share >= 0.9  # at least 0.95 of Clopper and Pearson's, of 60


def test_other_responses_have_students_interval_and_none_for_one_trial():
    options = {"tokens": "coordinates", "perturbation": "gaussian-noise:std=1", "response": "absolute-change"}
    m = jostle.measure(sign_of_two, points(), **options, plan=jostle.Grid(5), samples=True)
    frame = m.to_frame("tokens")
    moved = frame[frame["token"] < 2]
    assert (moved["low"] < moved["value"]).all()
    assert (moved["value"] < moved["high"]).all()
    one = jostle.measure(sign_of_two, points(), **options, plan=jostle.Grid(1), samples=True)
    assert one.to_frame("tokens")["low"].isna().all()


def test_models_that_are_compared_keep_their_own():
    models = {"two": sign_of_two, "first": lambda x: x[:, 0]}
    c = jostle.compare(
        models, points(), tokens="coordinates", perturbation="sign-flip", plan=jostle.Grid(1), samples=True
    )
    frame = c.to_frame("tokens").set_index(["model", "input", "token"])["value"]
    assert (frame["first"].xs(0, level="token") == 1).all()
    assert (frame["first"].xs(1, level="token") == 0).all()
    assert not frame["two"].equals(frame["first"])


def test_without_samples_tokens_say_how():
    m = jostle.measure(sign_of_two, points(), tokens="coordinates", perturbation="sign-flip", plan=jostle.Grid(1))
    with pytest.raises(UsageError, match="measure with samples=True"):
        m.to_frame("tokens")
    assert m.to_frame("inputs")["low"].isna().all()


def test_files_of_both_kinds_hold_inputs_and_tokens(tmp_path):
    m = jostle.measure(
        sign_of_two, points(), tokens="coordinates", perturbation="sign-flip", plan="grid:1", samples=True
    )
    write_samples(tmp_path / "a.jsonl", [("net", m.samples)])
    write_samples(tmp_path / "a.csv", [("net", m.samples)])
    lines = [json.loads(line) for line in (tmp_path / "a.jsonl").read_text().splitlines()]
    rows = list(csv.DictReader((tmp_path / "a.csv").read_text().splitlines()))
    assert [line["input"] for line in lines] == list(range(30))
    assert len(rows) == sum(len(line["tokens"]) for line in lines) == 120
    for line in lines:
        assert line["model"] == "net"
        assert line["value"] == pytest.approx(np.mean([token["value"] for token in line["tokens"]]))
    assert float(rows[0]["input_value"]) == lines[0]["value"]


def test_texts_are_shaded_and_escaped():
    pieces = Prompts.of_ids([[1, 2, 3], [4, 5, 6]])
    named = [[type(p)(f"<i>{p.text}", p.tokens) for p in each] for each in pieces.pieces]
    prompts = Prompts(pieces.inputs, named)

    class Counts(torch.nn.Module):
        def forward(self, input_ids, attention_mask):
            return torch.stack([(input_ids == 1).sum(1), (input_ids != 1).sum(1) - 2.5], dim=1).double()

    m = jostle.measure(Counts(), prompts, tokens="words", perturbation="uniform-token:1/2", plan="grid:3", samples=True)
    shown = m._repr_html_()
    assert "<i>" not in shown
    assert "&lt;i&gt;1 </span>" in shown
    assert "in 3 trials" in shown
    assert set(m.to_frame("tokens")["text"]) == {f"<i>{n} " for n in (1, 2, 3, 4, 5, 6)}


def test_pictures_lie_below_their_map():
    x = torch.rand(4, 3, 8, 8, dtype=torch.float64)
    m = jostle.measure(
        lambda x: x.flatten(1)[:, :5], x, tokens="patches:4", perturbation="gaussian-noise:std=1", plan="grid:2",
        samples=True,
    )  # fmt: skip
    shown = m._repr_html_()
    assert shown.count("data:image/png;base64,") == 3
    assert "patch 0:" in shown
    assert shown.count("<rect") == 4 + 3 * 4  # the map of all inputs and of three of them
