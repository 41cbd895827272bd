"""Do the intervals cover as often as they say? Simulated flips, no models; minutes, so marked slow.

Each assertion allows three Monte-Carlo standard errors below the nominal level.
"""

import math

import numpy as np
import pytest

from jostle.estimates.draws import UntilTally
from jostle.estimates.request import Request
from jostle.estimates.tallies import BINARY, REAL, TERNARY, GridTally
from jostle.sampling import Grid, Trials, Until
from jostle.tokens import Coordinates, Inputs

pytestmark = pytest.mark.slow

LEVEL = 0.95
INPUTS, TOKENS = 400, 16
REQUEST = Request.build(tokens="coordinates", perturbation="gaussian-noise:1", level=LEVEL)


def grid_tally(inputs: int, draws: int, support) -> GridTally:
    return GridTally(REQUEST, Grid(draws), Inputs(np.zeros((inputs, TOKENS)), Coordinates()), support, LEVEL)


def until_tally(inputs: int, plan: Until, support) -> UntilTally:
    held = Inputs(np.zeros((inputs, TOKENS)), Coordinates())
    return UntilTally(REQUEST, plan, held, support, LEVEL)


def least(repeats: int) -> float:
    """The nominal level minus three Monte-Carlo standard errors."""
    return LEVEL - 3 * math.sqrt(LEVEL * (1 - LEVEL) / repeats)


def clustered(generator: np.random.Generator, inputs: int) -> np.ndarray:
    """Flip rates by input with mean 0.02, most of it in a few inputs: what trained networks look like."""
    return generator.beta(0.1, 4.9, inputs)


def even(generator: np.random.Generator, inputs: int) -> np.ndarray:
    return np.full(inputs, 0.02)


def all_or_nothing(generator: np.random.Generator, inputs: int) -> np.ndarray:
    return (generator.random(inputs) < 0.02).astype(float)


def half(generator: np.random.Generator, inputs: int) -> np.ndarray:
    return generator.uniform(0, 1, inputs)


DESIGNS = {clustered: 0.02, even: 0.02, all_or_nothing: 0.02, half: 0.5}


def grid_trials(inputs: int, draws: int) -> Trials:
    cells = inputs * TOKENS
    owner = np.repeat(np.arange(inputs), TOKENS * draws)
    return Trials(owner, np.tile(np.repeat(np.arange(TOKENS), draws), inputs), np.tile(np.arange(draws), cells))


@pytest.mark.parametrize("design", DESIGNS)
@pytest.mark.parametrize(("inputs", "draws"), [(400, 5), (100, 1), (30, 2)])
def test_grid_covers_the_dataset_and_the_population(design, inputs, draws):
    generator, repeats = np.random.default_rng(1), 1000
    trials, hits = grid_trials(inputs, draws), np.zeros(2)
    for _ in range(repeats):
        rates = design(generator, inputs)
        tally = grid_tally(inputs, draws, BINARY)
        tally.add(trials, (generator.random(len(trials)) < rates[trials.inputs]).astype(float))
        estimate = tally.estimate()
        hits += rates.mean() in estimate.dataset, DESIGNS[design] in estimate.population
    assert (hits / repeats >= least(repeats)).all(), hits / repeats


@pytest.mark.parametrize("draws", [1, 4])
def test_grid_differences_cover(draws):
    """Two models whose flips are coupled by the same noise."""
    generator, repeats = np.random.default_rng(2), 600
    trials, hits = grid_trials(200, draws), np.zeros(2)
    for _ in range(repeats):
        first = clustered(generator, 200)
        second = np.clip(first * generator.uniform(0.5, 2.0, 200), 0, 1)
        uniform = generator.random(len(trials))
        difference = (uniform < first[trials.inputs]).astype(float) - (uniform < second[trials.inputs])
        tally = grid_tally(200, draws, TERNARY)
        tally.add(trials, difference)
        estimate = tally.estimate()
        hits += (first - second).mean() in estimate.dataset, POPULATION_DIFFERENCE in estimate.population
    assert (hits / repeats >= least(repeats)).all(), hits / repeats


def _population_difference() -> float:
    generator = np.random.default_rng(3)
    first = clustered(generator, 4_000_000)
    return float((first - np.clip(first * generator.uniform(0.5, 2.0, len(first)), 0, 1)).mean())


POPULATION_DIFFERENCE = _population_difference()


@pytest.mark.parametrize("draws", [1, 4])
def test_grid_covers_real_changes(draws):
    generator, repeats = np.random.default_rng(4), 1000
    trials, hits = grid_trials(100, draws), np.zeros(2)
    for _ in range(repeats):
        means = generator.gamma(2.0, 1.0, 100)
        tally = grid_tally(100, draws, REAL)
        tally.add(trials, generator.exponential(means[trials.inputs]))
        estimate = tally.estimate()
        hits += means.mean() in estimate.dataset, 2.0 in estimate.population
    # Student's t on skewed values is asymptotic: one percentage point is granted.
    assert (hits / repeats >= least(repeats) - 0.01).all(), hits / repeats


def draw(generator: np.random.Generator, start: int, stop: int, inputs: int) -> Trials:
    count = stop - start
    return Trials(
        generator.integers(inputs, size=count), generator.integers(TOKENS, size=count), np.arange(start, stop)
    )


@pytest.mark.parametrize("design", DESIGNS)
@pytest.mark.parametrize("plan", [Until(half_width=0.01), Until(relative=0.3)])
def test_until_covers_where_it_stops(design, plan):
    generator, repeats, hits = np.random.default_rng(5), 300, np.zeros(2)
    for _ in range(repeats):
        rates = design(generator, 5_000)
        tally = until_tally(5_000, plan, BINARY)
        for start, stop in plan.looks():
            trials = draw(generator, start, stop, 5_000)
            tally.add(trials, (generator.random(len(trials)) < rates[trials.inputs]).astype(float))
            look = tally.candidate()
            if plan.is_met(tally.value, look.low, look.high):
                break
        tally.settle()
        hits += rates.mean() in tally.interval("dataset"), DESIGNS[design] in tally.interval("population")
    assert (hits / repeats >= least(repeats)).all(), hits / repeats


@pytest.mark.parametrize("plan", [Until(half_width=0.01), Until(half_width=0.1), Until(relative=0.2)])
def test_until_covers_at_all_looks_together(plan):
    """The hardest stopping rule: stop at the first look at which the interval misses, if there is one."""
    generator, repeats, hits = np.random.default_rng(6), 300, np.zeros(2)
    for _ in range(repeats):
        rates = clustered(generator, INPUTS)
        tally = until_tally(INPUTS, plan, BINARY)
        holds = np.ones(2, dtype=bool)
        for start, stop in plan.looks():
            trials = draw(generator, start, stop, INPUTS)
            tally.add(trials, (generator.random(len(trials)) < rates[trials.inputs]).astype(float))
            holds &= rates.mean() in tally.interval("dataset"), 0.02 in tally.interval("population")
            if stop > 10_000:
                break
        hits += holds
    assert (hits / repeats >= least(repeats)).all(), hits / repeats


def test_until_differences_cover_at_all_looks_together():
    generator, repeats, hits = np.random.default_rng(7), 200, 0
    plan = Until(half_width=0.02)
    for _ in range(repeats):
        first = clustered(generator, INPUTS)
        second = np.clip(first * 1.5, 0, 1)
        tally, holds = until_tally(INPUTS, plan, TERNARY), True
        for start, stop in plan.looks():
            trials = draw(generator, start, stop, INPUTS)
            uniform = generator.random(len(trials))
            change = (uniform < first[trials.inputs]).astype(float) - (uniform < second[trials.inputs])
            tally.add(trials, change)
            holds &= (first - second).mean() in tally.interval("dataset")
            if stop > 5_000:
                break
        hits += holds
    assert hits / repeats >= least(repeats), hits / repeats


def test_until_real_changes_cover_where_they_stop():
    generator, repeats, hits = np.random.default_rng(8), 400, np.zeros(2)
    plan = Until(relative=0.1)
    for _ in range(repeats):
        means = generator.gamma(2.0, 1.0, 5_000)
        tally = until_tally(5_000, plan, REAL)
        for start, stop in plan.looks():
            trials = draw(generator, start, stop, 5_000)
            changes = generator.exponential(means[trials.inputs])
            is_met = tally.met(trials, changes, np.array([len(trials)]))[0]
            tally.add(trials, changes)
            if is_met:
                break
        hits += means.mean() in tally.interval("dataset"), 2.0 in tally.interval("population")
    assert (hits / repeats >= least(repeats)).all(), hits / repeats


def test_treating_all_flips_as_independent_would_not_cover():
    """The mistake that the population interval avoids, so that this file can be seen to fail."""
    generator, repeats, hits = np.random.default_rng(9), 300, 0
    trials = grid_trials(400, 5)
    for _ in range(repeats):
        rates = clustered(generator, 400)
        tally = grid_tally(400, 5, BINARY)
        tally.add(trials, (generator.random(len(trials)) < rates[trials.inputs]).astype(float))
        hits += 0.02 in tally.estimate().dataset
    assert hits / repeats < 0.6


@pytest.mark.parametrize("draws", [1, 3])
def test_grid_covers_the_dataset_when_short_inputs_are_the_sensitive_ones(draws):
    """Masks: 10 inputs of 2 tokens with rate 0.3 among 90 of 16 tokens with rate 0.001."""
    generator, repeats, hits = np.random.default_rng(10), 400, 0
    lengths = np.where(np.arange(100) < 10, 2, TOKENS)
    rates = np.where(np.arange(100) < 10, 0.3, 0.001)
    owner = np.repeat(np.arange(100), lengths)
    tokens = np.concatenate([np.arange(length) for length in lengths])
    trials = Trials(np.repeat(owner, draws), np.repeat(tokens, draws), np.tile(np.arange(draws), len(owner)))
    for _ in range(repeats):
        tally = grid_tally(100, draws, BINARY)
        tally.add(trials, (generator.random(len(trials)) < rates[trials.inputs]).astype(float))
        hits += rates.mean() in tally.estimate().dataset
    assert hits / repeats >= least(repeats), hits / repeats


def test_profiles_cover_position_by_position():
    generator, repeats, hits = np.random.default_rng(11), 200, np.zeros(TOKENS)
    rates = np.linspace(0.001, 0.4, TOKENS)
    trials = grid_trials(50, 2)
    for _ in range(repeats):
        tally = grid_tally(50, 2, BINARY)
        tally.add(trials, (generator.random(len(trials)) < rates[trials.tokens]).astype(float))
        profile = tally.estimate().profile
        hits += (profile.low <= rates) & (rates <= profile.high)
    assert (hits / repeats >= least(repeats)).all(), hits / repeats


def test_until_real_changes_that_are_mostly_zero_do_not_stop_too_soon():
    """One token in sixteen matters: the first draws may all be zero, with no spread at all."""
    generator, repeats, hits = np.random.default_rng(12), 200, 0
    plan = Until(relative=0.2)
    for _ in range(repeats):
        tally = until_tally(500, plan, REAL)
        for start, stop in plan.looks():
            trials = draw(generator, start, stop, 500)
            changes = np.where(trials.tokens == 0, np.abs(generator.standard_normal(len(trials))), 0.0)
            is_met = tally.met(trials, changes, np.array([len(trials)]))[0]
            tally.add(trials, changes)
            if is_met:
                break
        hits += math.sqrt(2 / math.pi) / TOKENS in tally.interval("dataset")
    assert hits / repeats >= least(repeats), hits / repeats
