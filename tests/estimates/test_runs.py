"""Draws of several looks are evaluated together: the same draws, the same values and the same stop as look by look."""

import pytest
import torch

import jostle
from jostle import Until, models
from jostle.estimates import runs
from jostle.estimates.request import Request
from jostle.sampling import TrialEvaluation

X = torch.randn(60, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
TEXTS = {
    "input_ids": torch.randint(1, 30, (40, 12), generator=torch.Generator().manual_seed(2)),
    "attention_mask": (torch.arange(12) < 3 + torch.arange(40)[:, None] % 10).long(),
}


def smooth(x):
    return x.sum(dim=1)


def fragile(x):
    return torch.where(x[:, 0] > 2.5, torch.nan, x[:, :3].sum(dim=1))


def found(plan, model=smooth, **options):
    settings = {"tokens": "coordinates", "perturbation": "gaussian-noise:1", "seed": 3} | options
    if isinstance(model, dict):
        return jostle.compare(model, X, plan=plan, **settings)
    return jostle.measure(model, X, plan=plan, **settings)


CASES = {
    "half-width": (Until(half_width=0.01), {}),
    "relative": (Until(relative=0.1), {}),
    "rough": (Until(half_width=0.1), {}),
    "population": (Until(half_width=0.2), {"target": "population"}),
    "all visited": (Until(half_width=0.01), {"target": "population"}),
    "margin": (Until(relative=0.05), {"response": "margin"}),
    "level": (Until(half_width=0.02), {"level": 0.999}),
    "micro": (Until(half_width=0.02), {"average": "micro"}),
    "two models": (Until(half_width=0.02), {"model": {"smooth": smooth, "first": lambda x: x[:, 0]}}),
}


@pytest.mark.parametrize("case", CASES)
def test_blocks_of_looks_stop_where_single_looks_do(case, monkeypatch):
    plan, options = CASES[case]
    together = found(plan, **options)
    monkeypatch.setattr(runs, "_LEAST_AHEAD", 0)
    monkeypatch.setattr(runs, "_MOST_AHEAD", 0)
    alone = found(plan, **options)
    parts = [(together, alone)] if not isinstance(together, jostle.Comparison) else []
    parts += [(together[name], alone[name]) for name in (together if not parts else ())]
    for one, other in parts:
        assert (one.trials, one.stopped) == (other.trials, other.stopped)
        assert (one.value, one.low, one.high) == pytest.approx((other.value, other.low, other.high), rel=1e-12)
        assert one.per_input == pytest.approx(other.per_input, rel=1e-12, nan_ok=True)
        assert one.profile.high == pytest.approx(other.profile.high, rel=1e-12, nan_ok=True)
        assert other.passes <= one.passes <= 1.1 * other.passes + 64


def test_what_was_asked_beyond_the_stop_is_in_the_passes_and_not_in_the_estimate(monkeypatch):
    alone = found(Until(half_width=0.05))
    monkeypatch.setattr(runs.UntilTally, "draws_left", lambda tally: 1e9)
    ahead = found(Until(half_width=0.05))
    assert ahead.passes > alone.passes
    assert (ahead.value, ahead.trials, ahead.high) == (alone.value, alone.trials, alone.high)
    assert int(ahead.profile.counts.sum()) == ahead.trials


def test_failed_trials_beyond_the_stop_are_not_counted(monkeypatch):
    with pytest.warns(jostle.JostleWarning):
        alone = found(Until(half_width=0.05), model=fragile)
    monkeypatch.setattr(runs.UntilTally, "draws_left", lambda tally: 1e9)
    with pytest.warns(jostle.JostleWarning):
        ahead = found(Until(half_width=0.05), model=fragile)
    assert ahead.nonfinite == alone.nonfinite > 0


@pytest.mark.parametrize("plan", [jostle.Until(half_width=0.01, max_passes=500), jostle.Grid(2)])
def test_draws_that_are_all_answered_with_nan_are_no_lack_of_passes(plan):
    inputs = torch.ones(5, 4)
    with pytest.raises(jostle.FailureError, match="no trial has a finite response"):
        jostle.measure(
            lambda x: torch.where(x == 1, x, torch.nan),
            inputs,
            tokens="coordinates",
            perturbation="sign-flip",
            plan=plan,
        )


@pytest.mark.parametrize("most", [100, 333, 1000, 1777])
def test_max_passes_is_exact(most):
    result = found(Until(half_width=0.0001, max_passes=most))
    assert result.stopped == "max_passes"
    assert most - 1 <= result.passes <= most  # a draw of a new input takes two


def test_the_batch_size_is_chosen_without_a_clock():
    """Two runs give the same batches, and a given size is kept."""

    def sizes(**options):
        seen = []

        def model(x):
            seen.append(len(x))
            return x.sum(dim=1)

        found(Until(half_width=0.01), model=model, **options)
        return seen

    assert sizes() == sizes()
    assert max(sizes()) == 256
    assert max(sizes(batch_size=50)) == 50


@pytest.mark.parametrize("rate", [0.02, 0.5, 0.95])
@pytest.mark.parametrize("plan", [Until(half_width=0.02), Until(relative=0.1, adaptive=False)])
def test_draws_that_are_made_ahead_are_seldom_too_many(plan, rate):
    """The draws that the rule will surely take still are seldom more than it takes."""
    threshold = float(torch.special.ndtri(torch.tensor(1 - rate, dtype=torch.float64)))
    inputs, flips = torch.zeros(100, 4, dtype=torch.float64), lambda x: threshold - x.sum(dim=1)
    settings = {"tokens": "coordinates", "perturbation": "gaussian-noise:1", "plan": plan}
    runs = [jostle.measure(flips, inputs, seed=seed, **settings) for seed in range(8)]
    asked = sum(run.passes - 100 - 48 for run in runs)  # without clean passes and checks
    counted = sum(run.trials for run in runs)
    assert asked <= 1.03 * counted + 8 * 192


def blocks_of(plan, model, inputs, monkeypatch):
    """How many trials were evaluated together, block by block."""
    sizes, plain = [], TrialEvaluation.changes

    def watched(evaluation, trials, tell=None):
        sizes.append(len(trials))
        return plain(evaluation, trials, tell)

    with monkeypatch.context() as patch:
        patch.setattr(TrialEvaluation, "changes", watched)
        noise = "gaussian-noise:1"
        tokens = "embeddings" if isinstance(inputs, dict) else "coordinates"
        result = jostle.measure(model, inputs, tokens=tokens, perturbation=noise, plan=plan, seed=3)
    return sizes, result


def test_texts_of_a_small_model_are_evaluated_in_larger_blocks(monkeypatch):
    encoder = models.create("text-encoder", vocabulary=30, dim=16, depth=1, heads=2, mlp_dim=32, max_length=12, seed=0)
    plan = Until(half_width=0.001, max_passes=5000, adaptive=False)
    small, found_small = blocks_of(plan, encoder, TEXTS, monkeypatch)
    assert blocks_of(plan, smooth, X, monkeypatch)[0][0] == 256
    assert small[0] > 1500
    monkeypatch.setattr(runs, "_TOKENS_AHEAD", 0)
    large, found_large = blocks_of(plan, encoder, TEXTS, monkeypatch)
    assert large[0] == 256
    assert (found_small.value, found_small.low, found_small.trials) == (
        found_large.value,
        found_large.low,
        found_large.trials,
    )


def test_only_models_that_attend_get_whole_lanes():
    sizes = {"vocabulary": 30, "dim": 16, "depth": 1, "max_length": 12, "seed": 0}
    made = {
        "encoder": models.create("text-encoder", heads=2, mlp_dim=32, **sizes),
        "lstm": models.create("text-lstm", **sizes),
    }
    request = Request.build(tokens="embeddings", perturbation="gaussian-noise:1", plan="until:half_width=0.1")
    spare = {}
    for names in (["encoder"], ["lstm"], ["encoder", "lstm"]):
        evaluation = request.prepare({name: made[name] for name in names}, TEXTS)
        for function in evaluation.functions:
            with function.evaluating():
                function.check_steady(request.response)
        evaluation.choose_batches()
        spare["+".join(names)] = evaluation.batching.spare_columns
    assert spare == {"encoder": 4, "lstm": 0, "encoder+lstm": 0}
