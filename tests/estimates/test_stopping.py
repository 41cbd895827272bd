"""Do intervals cover where a rule stops that looks at several models at once? Simulated on counts, thousands of runs.

Every run draws the joint flips of all models look by look, and stops where the rule of ``Until`` does. Each assertion
allows three Monte-Carlo standard errors below the nominal level.
"""

import itertools
import math

import numpy as np
import pytest

from jostle.intervals import anytime, fixed
from jostle.sampling import Until

pytestmark = pytest.mark.slow

LEVEL, RUNS = 0.95, 4000


def least(runs: int) -> float:
    return LEVEL - 3 * math.sqrt(LEVEL * (1 - LEVEL) / runs)


def pair(first: float, second: float, both: float) -> tuple[np.ndarray, np.ndarray]:
    """Outcomes (4, 2) of two models and their probabilities, from how often each and both flip."""
    outcomes = np.array([[1, 1], [1, 0], [0, 1], [0, 0]])
    return outcomes, np.array([both, first - both, second - both, 1 - first - second + both])


def independent(*rates: float) -> tuple[np.ndarray, np.ndarray]:
    outcomes = np.array(list(itertools.product([0, 1], repeat=len(rates))))
    return outcomes, np.prod(np.where(outcomes == 1, rates, 1 - np.asarray(rates)), axis=1)


def stop_together(plan: Until, outcomes: np.ndarray, shares: np.ndarray, seed: int, runs: int = RUNS) -> np.ndarray:
    """(runs, outcomes): how often each outcome had been drawn when every model's interval was narrow enough."""
    generator = np.random.default_rng(seed)
    counts, alive = np.zeros((runs, len(outcomes))), np.arange(runs)
    for start, stop in plan.looks():
        counts[alive] += generator.multinomial(stop - start, shares, size=len(alive))
        flips = counts[alive] @ outcomes  # (alive, models)
        low, high = anytime.stopped_proportion(flips, stop, LEVEL, is_relative=plan.is_relative)
        alive = alive[~plan.is_met(flips / stop, low, high).all(axis=1)]
        if not len(alive):
            return counts
    raise AssertionError("looks are endless")


CASES = {
    "equal, independent": (Until(half_width=0.01), independent(0.05, 0.05)),
    "equal, dependent": (Until(half_width=0.01), pair(0.05, 0.05, 0.026)),
    "never both": (Until(half_width=0.01), pair(0.05, 0.05, 0.0)),
    "one within the other": (Until(half_width=0.01), pair(0.05, 0.02, 0.02)),
    "nearly the same": (Until(half_width=0.01), pair(0.05, 0.049, 0.049)),
    "rare": (Until(half_width=0.002), pair(0.005, 0.005, 0.0015)),
    "large": (Until(half_width=0.03), pair(0.5, 0.4, 0.0)),
    "relative": (Until(relative=0.2), pair(0.05, 0.1, 0.01)),
    "relative, never both": (Until(relative=0.2), pair(0.05, 0.05, 0.0)),
    "relative, one within the other": (Until(relative=0.1), pair(0.05, 0.03, 0.03)),
    "relative, independent": (Until(relative=0.1), independent(0.05, 0.05)),
    "relative, five models": (Until(relative=0.3), independent(0.05, 0.05, 0.05, 0.05, 0.04)),
    "five models": (Until(half_width=0.02), independent(0.05, 0.05, 0.05, 0.05, 0.04)),
}


@pytest.mark.parametrize("case", CASES)
def test_every_model_and_every_difference_is_covered_where_all_are_precise(case):
    plan, (outcomes, shares) = CASES[case]
    counts = stop_together(plan, outcomes, shares, seed=1)
    draws, rates = counts.sum(axis=1), shares @ outcomes
    low, high = anytime.stopped_proportion(counts @ outcomes, draws[:, None], LEVEL, is_relative=plan.is_relative)
    covered = ((low <= rates) & (rates <= high)).mean(axis=0)
    needed = (1.96**2 * rates * (1 - rates) / (plan.half_width or plan.relative * rates) ** 2).max()
    assert (covered >= least(RUNS)).all(), covered
    assert draws.mean() < 1.7 * needed, draws.mean() / needed
    difference = outcomes[:, 0] - outcomes[:, 1]
    truth, hits, runs = float(shares @ difference), 0, 2500
    for row in counts[:runs]:
        tally = [row[difference == value].sum() for value in (-1, 0, 1)]
        raised = anytime.peeked_level(LEVEL, is_relative=plan.is_relative)
        ends = fixed.bounded_mean([-1, 0, 1], tally, raised, (-1.0, 1.0))
        hits += ends[0] <= truth <= ends[1]
    assert hits / runs >= least(runs), hits / runs
