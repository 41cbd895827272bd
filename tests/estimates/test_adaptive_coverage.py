"""Do the intervals of adaptive sampling cover, whatever the strata? Simulated on counts, thousands of runs at once.

A proposal is fixed before its draws, so all that matters is how often each weight occurs and flips. Right strata and
adversarially wrong ones are tried: flips only where draws are rarest, where weights are largest, everywhere alike, or
in a few sure cells.
"""

import math

import numpy as np
import pytest

from jostle.intervals.weighted import stopped_weighted
from jostle.sampling import Until

pytestmark = pytest.mark.slow

LEVEL, RUNS = 0.95, 4000
NEEDED = 1 - 0.9 * (1 - LEVEL)  # the confidence sequence beside it has the rest

# Shares of strata among uniform draws, from the smallest margins on, and what a pilot may have thought their rates are.
SHARES = np.array([0.004, 0.004, 0.008, 0.016, 0.03, 0.06, 0.06, 0.06, 0.13, 0.128, 0.25, 0.25])
THOUGHT = np.geomspace(0.3, 1e-4, 12)


def proposal(defensive: float) -> np.ndarray:
    promising = SHARES * np.sqrt(THOUGHT)
    return (1 - defensive) * promising / promising.sum() + defensive * SHARES


RATES = {
    "as thought": THOUGHT,
    "the other way round": THOUGHT[::-1] / 20,
    "all alike": np.full(12, 0.005),
    "only in the safest": np.where(np.arange(12) == 11, 0.02, 0.0),
    "6 % in the safest": 0.94 * THOUGHT + 0.06 * (SHARES @ THOUGHT) * (np.arange(12) >= 10) / 0.5,
    "sure in the first, else none": np.where(np.arange(12) == 0, 1.0, 0.0),
    "sure in the first, rare in the last": np.where(np.arange(12) == 0, 1.0, np.where(np.arange(12) == 11, 0.004, 0.0)),
    "one in the middle": np.where(np.arange(12) == 6, 0.1, 0.0),
}
PLANS = {
    "10 %": Until(relative=0.1),
    "20 %": Until(relative=0.2),
    "50 %": Until(relative=0.5),
    "half-width": Until(half_width=0.002),
}


def least(nominal: float, runs: int) -> float:
    return nominal - 3 * math.sqrt(nominal * (1 - nominal) / runs)


def stop(plan: Until, chances: np.ndarray, rates: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """(runs,) each: the ends where every run stops. Flips of the strata are drawn look by look."""
    generator = np.random.default_rng(seed)
    weights = SHARES / chances
    outcomes = np.append(chances * rates, 1 - chances @ rates)
    total, squares, alive = np.zeros(RUNS), np.zeros(RUNS), np.arange(RUNS)
    low, high = np.zeros(RUNS), np.zeros(RUNS)
    for start, now in plan.looks():
        flips = generator.multinomial(now - start, outcomes, size=len(alive))[:, :-1]
        total[alive] += flips @ weights
        squares[alive] += flips @ weights**2
        low[alive], high[alive] = stopped_weighted(
            total[alive], squares[alive], weights.max(), now, LEVEL, is_relative=plan.is_relative
        )
        alive = alive[~plan.is_met(total[alive] / now, low[alive], high[alive])]
        if not len(alive):
            return low, high
    raise AssertionError("looks are endless")


@pytest.mark.parametrize("defensive", [0.05, 0.2, 0.75])
@pytest.mark.parametrize("rates", RATES)
@pytest.mark.parametrize("plan", PLANS)
def test_the_interval_where_it_stops_covers_whatever_the_strata(plan, rates, defensive):
    value = float(SHARES @ RATES[rates])
    low, high = stop(PLANS[plan], proposal(defensive), RATES[rates], seed=1)
    covered = ((low <= value) & (value <= high)).mean()
    assert covered >= least(NEEDED, RUNS), covered
