"""Trials in, changes out: against a loop, and along every path that only saves time or memory."""

from contextlib import ExitStack

import numpy as np
import pytest
import torch

from jostle.base.errors import UsageError
from jostle.base.randomness import Stream
from jostle.perturbations import GaussianNoise, ReplaceBy, UniformToken
from jostle.responses import AbsoluteChange, Flip, LogitChange
from jostle.sampling import Grid, TrialEvaluation, Trials, Until, evaluation, readers
from jostle.tokens import Coordinates, Inputs, TokenFunction
from tests import oracles

X = torch.randn(12, 5, generator=torch.Generator().manual_seed(5), dtype=torch.float64)
WEIGHTS = torch.randn(5, 3, generator=torch.Generator().manual_seed(6), dtype=torch.float64)
SEED = 11


def linear(x):
    return x @ WEIGHTS


def make(*models, inputs=X, perturbation=GaussianNoise(1.0), response=None, batch_size=4):  # noqa: B008
    held = Inputs(inputs, Coordinates())
    functions = [TokenFunction(model, held, f"model {i}") for i, model in enumerate(models)]
    return TrialEvaluation(functions, perturbation, response or Flip(), SEED, batch_size)


def grid(inputs=X, draws=2):
    held, plan = Inputs(inputs, Coordinates()), Grid(draws)
    [trials] = plan.blocks(held, plan.order(held, SEED), block=10**9)
    return trials


def changes(made, trials):
    with ExitStack() as modes:
        for function in made.functions:
            modes.enter_context(function.evaluating())
        return made.changes(trials)


def noise(i, t, r):
    """The noise of one trial, made for it alone."""
    uniforms = Stream(SEED, "noise").uniforms([i], [t], [r], 1)
    return GaussianNoise(1.0).apply(torch.zeros(1, 1, dtype=torch.float64), uniforms)[0]


def test_changes_equal_a_loop_over_single_inputs():
    trials = grid(draws=3)
    flips = oracles.loop_over_grid(linear, X, [[t] for t in range(5)], noise, draws=3)
    expected = [flips[i][t][r] for i, t, r in zip(trials.inputs, trials.tokens, trials.draws, strict=True)]
    found = changes(make(linear), trials)
    assert found.shape == (1, len(trials))
    assert found[0].tolist() == expected
    assert 0 < sum(expected) < len(expected)


def test_several_models_see_the_same_noise_and_keep_to_themselves():
    trials = grid()
    both = changes(make(linear, lambda x: -linear(x), response=LogitChange()), trials)
    assert (both[0] == both[1]).all()
    one, two = (changes(make(model), trials)[0] for model in (linear, torch.sin))
    assert (changes(make(linear, torch.sin), trials) == np.stack([one, two])).all()


@pytest.mark.parametrize("response", [Flip(), LogitChange(), AbsoluteChange()])
@pytest.mark.parametrize(
    ("place", "name", "value"),
    [
        (evaluation, "_REMEMBERED_NUMBERS", 0),
        (readers, "_COMPARED_AT_ONCE", 0),
        (evaluation, "_UNIFORMS_AT_ONCE", 1),
        (evaluation, "_BATCHES_AT_ONCE", 1),
    ],
)
def test_every_limit_of_memory_gives_the_same_changes(monkeypatch, response, place, name, value):
    trials = grid()
    expected = changes(make(linear, torch.sin, response=response), trials)
    monkeypatch.setattr(place, name, value)
    small = make(linear, torch.sin, response=response)
    parts = [changes(small, trials[at : at + 17]) for at in range(0, len(trials), 17)]
    assert np.concatenate(parts, axis=1) == pytest.approx(expected, rel=1e-12, abs=1e-12)


def test_references_too_large_to_keep_are_made_again(monkeypatch):
    trials = grid(draws=1)
    # one pass more over the inputs of the first trials, to find out that it is too much
    for room, clean in ((3 * len(X), len(X)), (3 * len(X) - 1, 3 * len(X))):
        monkeypatch.setattr(evaluation, "_REMEMBERED_NUMBERS", room)
        made = make(linear, response=LogitChange())
        first, second = changes(made, trials), changes(made, trials)
        assert (first == second).all()
        assert made.passes == 2 * len(trials) + clean


def test_tokens_that_come_out_as_they_were_cost_no_pass():
    ids = torch.zeros(6, 4, dtype=torch.int64)
    trials, model = grid(ids), lambda x: x.double()
    still = make(model, inputs=ids, perturbation=UniformToken(1))
    assert changes(still, trials).tolist() == [[0.0] * len(trials)]
    assert still.passes == 6
    ids[:, 1] = 5
    moved = make(model, inputs=ids, perturbation=UniformToken(1), response=LogitChange())
    assert changes(moved, trials)[0].tolist() == (5.0 * (trials.tokens == 1)).tolist()
    assert moved.passes == 6 + 6 * 2


def test_only_tokens_that_move_are_put_into_batches():
    trials = grid()
    made = make(linear)
    moved, tokens = made.moved_tokens(trials)
    assert moved.tolist() == list(range(len(trials)))
    batch = made.jostled(trials, tokens)[""]
    before = X[torch.from_numpy(trials.inputs)]
    assert ((batch != before).sum(dim=1) == 1).all()
    assert ((batch != before).nonzero()[:, 1].numpy() == trials.tokens).all()


@pytest.mark.parametrize("batch_size", [1, 4, 100])
def test_new_passes_says_what_a_prefix_of_the_trials_will_cost(batch_size):
    trials = Until(half_width=0.1).trials(Inputs(X, Coordinates()), SEED, 0, 30)
    first, rest = trials[:7], trials[7:]
    predicted = make(linear, batch_size=batch_size).new_passes(trials)
    for size in range(1, len(trials) + 1):
        made = make(linear, batch_size=batch_size)
        changes(made, trials[:size])
        assert made.passes == predicted[size - 1]
    known = make(linear, batch_size=batch_size)
    changes(known, first)
    before, predicted = known.passes, known.new_passes(rest)
    changes(known, rest)
    assert known.passes - before == predicted[-1]
    assert len(known.new_passes(trials[:0])) == 0


def test_outputs_may_be_views_of_the_batch():
    trials = grid()
    found = changes(make(lambda x: x[:, :3], response=LogitChange(), batch_size=7), trials)[0]
    moves = [float(noise(i, t, r).abs()) for i, t, r in zip(trials.inputs, trials.tokens, trials.draws, strict=True)]
    assert found == pytest.approx(np.where(trials.tokens < 3, moves, 0.0))


def test_a_model_may_change_its_batch_in_place():
    def normalised(x):
        return x.mul_(-2.0) @ WEIGHTS

    trials = grid()
    expected = changes(make(linear, response=LogitChange()), trials)[0]
    found = changes(make(normalised, linear, lambda x: x[:, :3], normalised, response=LogitChange()), trials)
    assert found[1] == pytest.approx(expected)
    assert found[0] == pytest.approx(2 * expected)
    assert found[3] == pytest.approx(2 * expected)
    assert found[2] == pytest.approx(changes(make(lambda x: x[:, :3], response=LogitChange()), trials)[0])


def test_a_model_may_answer_in_the_same_memory_every_time():
    memory = torch.empty(100, 3, dtype=torch.float64)

    def frugal(x):
        return torch.mm(x, WEIGHTS, out=memory[: len(x)])

    trials = grid()
    for response in (Flip(), LogitChange()):
        expected = changes(make(linear, response=response), trials)
        assert changes(make(frugal, response=response), trials) == pytest.approx(expected)


def test_outputs_that_are_not_finite_are_marked_and_counted():
    def fragile(x):
        return linear(x).masked_fill((x == 100).any(dim=1)[:, None], torch.inf)

    trials = grid(draws=1)
    made = make(linear, fragile, perturbation=ReplaceBy(100.0))
    found = changes(made, trials)
    assert np.isfinite(found[0]).all()
    assert np.isnan(found[1]).all()
    assert made.nonfinite.tolist() == [0, len(trials)]


def test_outputs_are_lost_one_by_one_and_not_if_only_their_sum_is_infinite():
    def model(x):
        outputs = linear(x) / linear(x).abs().amax(dim=1, keepdim=True) * 1e308  # two of them have no finite sum
        return outputs.masked_fill((x[:, :1] > 1.5), torch.inf)

    calm, trials = X.clamp(-1.4, 1.4), grid(X)
    made = make(model, inputs=calm)
    found = changes(made, trials)[0]
    moved = Stream(SEED, "noise").uniforms(trials.inputs, trials.tokens, trials.draws, 1)
    first = calm[trials.inputs, trials.tokens] + GaussianNoise(1.0).apply(torch.zeros(len(trials), 1), moved)[:, 0]
    is_lost = (trials.tokens == 0) & (first > 1.5).numpy()
    assert 0 < is_lost.sum() < len(trials)
    assert np.isnan(found).tolist() == is_lost.tolist()
    scaled = changes(make(lambda x: model(x) / 1e308, inputs=calm), trials)[0]
    assert found[~is_lost].tolist() == scaled[~is_lost].tolist()


def test_clean_outputs_that_are_not_finite_are_refused_with_their_index():
    def fragile(x):
        return linear(x).masked_fill((x == X[3]).all(dim=1)[:, None], torch.nan)

    with pytest.raises(UsageError, match=r"model 1 answers 1 of \d+ unperturbed inputs .* \(first: input 3\)"):
        changes(make(linear, fragile), grid())


def test_trials_in_any_order_and_repeated_give_each_its_own_change():
    trials = grid()
    expected = changes(make(linear, response=LogitChange()), trials)[0]
    order = np.array([7, 7, 100, 3, 50, 7])
    mixed = Trials(trials.inputs[order], trials.tokens[order], trials.draws[order])
    assert changes(make(linear, response=LogitChange()), mixed)[0] == pytest.approx(expected[order])
