"""Adaptive sampling of flips, against a closed form: a linear model flips with P = Phi(-margin / (std |w_t|))."""

import math

import numpy as np
import pytest
import torch
from scipy import special

import jostle
from jostle import Until
from jostle.estimates import runs
from jostle.sampling.adaptive import Cells, Pilot, falling, needed_draws
from jostle.tokens import Inputs, Rows, Words

GENERATOR = torch.Generator().manual_seed(0)
X = torch.randn(3000, 16, dtype=torch.float64, generator=GENERATOR)
WEIGHTS = torch.cat([torch.full((4,), 1.0), torch.full((12,), 0.3)]).double()
STD = 0.03


def linear(x):
    return x @ WEIGHTS


def exact(std=STD):
    """(N, T): the probability of a flip of each cell."""
    margins = linear(X).abs()[:, None]
    return special.ndtr(-(margins / (std * WEIGHTS)).numpy())


def found(plan, model=linear, std=STD, inputs=X, **options):
    settings = {"tokens": "coordinates", "perturbation": f"gaussian-noise:{std}"} | options
    return jostle.measure(model, inputs, plan=plan, **settings)


def is_adaptive(m):
    return any(note.startswith("sampled adaptively") for note in m.notes)


def test_rare_flips_are_found_with_fewer_passes_and_the_interval_holds():
    truth = float(exact().mean())
    assert 0.001 < truth < 0.003
    for seed in range(3):
        adaptive = found(Until(relative=0.2), seed=seed)
        uniform = found(Until(relative=0.2, adaptive=False), seed=seed)
        assert is_adaptive(adaptive)
        assert not uniform.notes
        assert adaptive.passes < 0.8 * uniform.passes
        for m in (adaptive, uniform):
            assert m.low <= truth <= m.high
            assert m.stopped == "precision"
            assert m.high - m.low <= 0.4 * m.value
        assert adaptive.interval.method.startswith("weighted Poisson")


def test_the_profile_is_unbiased_and_adds_up_to_the_value():
    profiles = [found(Until(relative=0.2), seed=seed) for seed in range(6)]
    for m in profiles:
        assert float(m.profile.values.mean()) == pytest.approx(m.value, rel=1e-9)
        assert int(m.profile.counts.sum()) == m.trials
    truth, mean = exact().mean(axis=0), np.mean([m.profile.values for m in profiles], axis=0)
    assert mean[:4].mean() == pytest.approx(truth[:4].mean(), rel=0.1)
    inside = [(m.profile.low <= truth) & (truth <= m.profile.high) for m in profiles]
    assert np.mean(inside) > 0.93


def test_draws_stay_uniform_where_that_is_as_good():
    for options in ({"std": 3.0}, {"plan": Until(half_width=0.01)}):
        plan = options.get("plan", Until(relative=0.1))
        std = options.get("std", STD)
        here, uniform = found(plan, std=std), found(Until(**{**vars(plan), "adaptive": False}), std=std)
        assert not is_adaptive(here)
        assert (here.value, here.low, here.high, here.trials) == (
            uniform.value,
            uniform.low,
            uniform.high,
            uniform.trials,
        )
        assert here.passes <= 1.05 * uniform.passes


@pytest.mark.parametrize("count", [300, 600, 900, 3000])
def test_a_pilot_that_finds_no_gain_costs_little_and_is_told(count):
    """Every cell flips alike: margins say nothing. Of few inputs slopes are asked for as well, and say nothing."""
    inputs = torch.zeros(count, 16, dtype=torch.float64)
    threshold = float(-special.ndtri(0.004))

    def alike(x):
        return threshold - x.sum(dim=1)

    here = found(Until(relative=0.15), alike, 1.0, inputs)
    uniform = found(Until(relative=0.15, adaptive=False), alike, 1.0, inputs)
    assert any(note.startswith("draws stayed uniform") for note in here.notes)
    assert (here.value, here.high, here.trials) == (uniform.value, uniform.high, uniform.trials)
    assert uniform.passes < here.passes <= 1.05 * uniform.passes


@pytest.mark.parametrize("batch_size", [17, 1000])
def test_the_batch_size_does_not_matter(batch_size):
    first, second = found(Until(relative=0.2)), found(Until(relative=0.2), batch_size=batch_size)
    assert is_adaptive(first)
    assert (first.value, first.low, first.high, first.passes) == (second.value, second.low, second.high, second.passes)


def test_what_is_always_uniform():
    plan = Until(relative=0.2)
    assert is_adaptive(found(plan))
    assert not is_adaptive(found(plan, lambda x: (linear(x) > 0).long()))  # labels have no margin
    assert not is_adaptive(found(plan, target="population"))
    assert not is_adaptive(found(plan, response="margin"))
    assert not is_adaptive(found(plan, level=0.995))
    assert not is_adaptive(found(plan, labels=(linear(X) > 0).long()))  # all inputs must be visited alike
    settings = {"tokens": "coordinates", "perturbation": f"gaussian-noise:{STD}", "plan": plan}
    both = jostle.compare({"one": linear, "two": lambda x: x[:, 0]}, X, **settings)
    assert not both.notes


@pytest.mark.parametrize("most", [6_000, 9_000, 15_000])
def test_max_passes_is_exact_and_the_interval_holds_where_it_ends(most):
    m = found(Until(relative=0.05, max_passes=most))
    assert m.stopped == "max_passes"
    assert most - 1 <= m.passes <= most
    assert m.low <= exact().mean() <= m.high
    assert m.low <= m.value <= m.high


def test_no_pilot_is_drawn_where_no_proposal_could_be_done_in_time():
    plan = {"half_width": 1e-5, "max_passes": 8_000}
    here, uniform = found(Until(**plan)), found(Until(**plan, adaptive=False))
    assert here.trials == uniform.trials
    assert (here.value, here.low, here.high) == (uniform.value, uniform.low, uniform.high)
    assert not here.notes


def test_a_pilot_ends_when_it_is_known_that_there_is_no_room_for_a_gain():
    m = found(Until(half_width=1e-4, max_passes=300_000), std=1.0)
    assert m.notes == ["draws stayed uniform: a pilot of 512 saw no room for a gain"]
    assert m.trials > 0.95 * (m.passes - 5 * len(X))  # draws of pilots are not counted; slopes cost some passes


def test_an_interruption_among_weighted_draws_has_an_interval(monkeypatch):
    plan, calls = Until(relative=0.03, max_passes=10**8), []
    plain = runs.UntilRun._advance

    def advance(self, trials, ends):
        calls.append(trials.weights is not None)
        if sum(calls) > 14:
            raise KeyboardInterrupt
        return plain(self, trials, ends)

    monkeypatch.setattr(runs.UntilRun, "_advance", advance)
    with pytest.raises(jostle.Interrupted) as caught:
        found(plan)
    m = caught.value.result
    assert is_adaptive(m)
    assert m.interval.method == "confidence sequence, beta-binomial mixture and betting"
    assert m.low <= exact().mean() <= m.high
    assert m.high - m.low < m.value


def test_the_plan_says_whether_it_is_adaptive():
    assert Until(relative=0.1).describe() == "until:relative=0.1,max_passes=1000000"
    off = Until(relative=0.1, adaptive=False)
    assert off.describe() == "until:relative=0.1,max_passes=1000000,adaptive=false"
    m = found(off.describe())
    assert not is_adaptive(m)
    assert m.settings.plan == off.describe()
    with pytest.raises(jostle.UsageError, match="adaptive"):
        Until(relative=0.1, adaptive="maybe")


MASK = torch.arange(9) < 2 + torch.arange(300)[:, None] % 8
IDS = torch.randint(1, 50, (300, 9), generator=GENERATOR)
KINDS = {
    "plain": Inputs(torch.zeros(300, 9), Rows()),
    "masked": Inputs(torch.zeros(300, 9), Rows(), MASK),
    "left-padded text": Inputs({"input_ids": IDS * MASK.flip(1), "attention_mask": MASK.flip(1).long()}, Words()),
}


@pytest.mark.parametrize("steep", [False, True])
@pytest.mark.parametrize("average", ["macro", "micro"])
@pytest.mark.parametrize("kind", KINDS)
def test_weighted_draws_have_the_distribution_of_uniform_ones(kind, average, steep):
    """The mean of w over the draws of any set of cells is the share of that set among uniform draws."""
    inputs, size = KINDS[kind], 400_000
    slopes = np.random.default_rng(3).random((300, 9)).astype(np.float32) if steep else None
    pilot = Pilot(Cells(inputs, np.random.default_rng(1).random(300), average, slopes), Until(relative=0.1), 0.95)
    trials = Until(relative=0.1).trials(inputs, 0, 0, 2000, average)
    pilot.add(trials, (np.random.default_rng(2).random(2000) < 0.3 / (1 + trials.tokens)).astype(float))
    drawn = pilot.forecast("main").proposal.trials(5, 0, size)
    assert drawn.weights.max() <= 20
    assert drawn.weights.mean() == pytest.approx(1.0, abs=5 * drawn.weights.std() / math.sqrt(size))
    counts = np.full(300, 9) if inputs.mask is None else inputs.mask.sum(axis=1)
    if inputs.mask is not None:
        assert inputs.mask[drawn.inputs, drawn.tokens].all()
    share = np.repeat(1 / 300, 300) if average == "macro" else counts / counts.sum()
    by_input = np.bincount(drawn.inputs, weights=drawn.weights, minlength=300) / size
    assert by_input == pytest.approx(share, rel=0.25)
    for text in (0, 7, 150):
        tokens = drawn.tokens[drawn.inputs == text]
        weights = drawn.weights[drawn.inputs == text]
        by_token = np.bincount(tokens, weights=weights, minlength=9) / size
        assert by_token[by_token > 0] == pytest.approx(share[text] / counts[text], rel=0.6)
        assert np.count_nonzero(by_token) == counts[text]


def test_draws_of_different_stages_share_no_noise():
    inputs = KINDS["plain"]
    pilot = Pilot(Cells(inputs, np.arange(300.0), "macro"), Until(relative=0.1), 0.95)
    stages = [pilot.forecast(stage).proposal.trials(0, 0, 100).draws for stage in ("pilot", "main")]
    assert len({*range(100), *stages[0].tolist(), *stages[1].tolist()}) == 300
    assert max(stages[1]) < 2**32


def test_bins_hold_the_smallest_margins_first():
    margins = np.random.default_rng(0).permutation(2560).astype(float)
    cells = Cells(Inputs(torch.zeros(2560, 4), Rows()), margins, "macro")
    sizes = np.bincount(cells.bins)
    assert sizes.tolist() == [10, 10, 20, 40, 80, 160, 160, 160, 320, 320, 640, 640]
    assert (np.diff([margins[cells.bins == each].mean() for each in range(12)]) > 0).all()
    assert cells.position_shares == pytest.approx(np.full(4, 0.25))


def test_needed_draws_are_those_of_a_poisson_rate():
    draws, fewer = needed_draws(Until(relative=0.1), 0.95, 0.005, [0.005, 0.001], [1.0, 1.0])
    assert draws == pytest.approx(2.17**2 / 0.1**2 / 0.005, rel=0.1)
    assert fewer < draws
    assert math.isinf(needed_draws(Until(relative=0.1), 0.95, 0.0, 0.0, 1.0)[0])


def test_falling_keeps_the_weighted_mean():
    values, weights = np.array([1.0, 4.0, 2.0, 3.0]), np.array([1.0, 2.0, 3.0, 4.0])
    found = falling(values, weights)
    assert (np.diff(found) <= 0).all()
    assert found @ weights == pytest.approx(values @ weights)


def misleading(x):
    """The linear model, whose gradients are those of another: large where weights are small."""
    other = x @ WEIGHTS.flip(0)
    return linear(x).detach() + other - other.detach()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "count", "relative", "share"),
    [(linear, 3000, 0.3, 0.2), (linear, 300, 0.25, 0.5), (misleading, 300, 0.25, 0.2)],
    ids=["of many inputs", "by slopes", "by slopes of another model"],
)
def test_the_whole_way_covers_with_pilots_and_switches(model, count, relative, share):
    """2,000 measurements, from the first uniform draw to the stop, pilots and decisions included."""
    std, runs_made, hits, adaptive = 0.01, 2000, 0, 0
    truth = float(exact(std)[:count].mean())
    for seed in range(runs_made):
        # Large batches: the same draws and values, in less time.
        m = found(Until(relative=relative), model, std, X[:count], seed=seed, batch_size=2048)
        hits, adaptive = hits + (m.low <= truth <= m.high), adaptive + is_adaptive(m)
        if count == 300 and seed < 20 and is_adaptive(m):
            assert any("steep" in note for note in m.notes)
    assert hits / runs_made >= 0.95 - 3 * math.sqrt(0.95 * 0.05 / runs_made), hits / runs_made
    assert adaptive / runs_made > share


def test_a_pilot_that_drew_nothing_is_not_told_of():
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(16, 3))
    inputs = torch.randn(12, 1, 4, 4)
    m = jostle.measure(model, inputs, tokens="patches:2", perturbation="gaussian-noise:std=1", plan=Until(0.01))
    (note,) = [note for note in m.notes if note.startswith("draws stayed uniform")]
    assert note == "draws stayed uniform: the first draws predicted that other draws would save too little"
