"""How often intervals cover where a rule stops that was free to look: comparisons, decisions, adaptive draws, pilots.

The simulations are those of the slow tests, which fail if a case covers too seldom; here each is counted, for the table
of docs/coverage.md. Used by ``coverage.py``.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from tests.estimates import test_adaptive as pilots
from tests.estimates import test_adaptive_coverage as strata
from tests.estimates import test_stopping as together

from jostle.intervals import anytime, fixed
from jostle.intervals.sign import signs
from jostle.sampling import Until

LEVEL, DIFFERENCES, MEASUREMENTS, DECISIONS = 0.95, 2500, 2000, 4000
SHARES = (0.05, 0.2, 0.75)
Counted = list[tuple[str, int, int]]  # of each interval: its name, runs, and in how many it covered


@dataclass(frozen=True)
class Case:
    """One case: its name, and how to count it."""

    name: str
    count: Callable[[], Counted]


def cases() -> Iterator[Case]:
    """All cases."""
    for name in together.CASES:
        yield Case(f"several models, stopped together, {name}", lambda name=name: compared(name))
    for plan in strata.PLANS:
        for rates in strata.RATES:
            name = f"adaptive draws to {plan}, flips {rates}"
            yield Case(name, lambda plan=plan, rates=rates: weighted(plan, rates))
    for wins, losses in ((0.01, 0.01), (0.05, 0.05), (0.3, 0.3), (0.02, 0.015), (0.01, 0.005)):
        name = f"decided, flips of one alone {wins:g} and {losses:g}, within 100,000 draws"
        yield Case(name, lambda shares=(wins, losses): decided(*shares))
    for relative, std in ((0.3, 0.01), (0.2, 0.03)):
        name = f"`measure` of a linear model, Until(relative={relative}), std {std}, pilots and all"
        yield Case(name, lambda relative=relative, std=std: measured(relative, std))


def compared(name: str) -> Counted:
    """Every model, of which the one that is covered least is counted, and the difference of the first two."""
    plan, (outcomes, shares) = together.CASES[name]
    counts = together.stop_together(plan, outcomes, shares, seed=2)
    rates, draws = shares @ outcomes, counts.sum(axis=1)[:, None]
    low, high = anytime.stopped_proportion(counts @ outcomes, draws, LEVEL, is_relative=plan.is_relative)
    covered = ((low <= rates) & (rates <= high)).sum(axis=0).min()
    difference = outcomes[:, 0] - outcomes[:, 1]
    truth, raised, hits = float(shares @ difference), anytime.peeked_level(LEVEL, is_relative=plan.is_relative), 0
    for row in counts[:DIFFERENCES]:
        tally = [row[difference == value].sum() for value in (-1, 0, 1)]
        ends = fixed.bounded_mean([-1, 0, 1], tally, raised, (-1.0, 1.0))
        hits += ends[0] <= truth <= ends[1]
    return [("the worst of the models", len(counts), int(covered)), ("a difference", DIFFERENCES, int(hits))]


def weighted(plan: str, rates: str) -> Counted:
    """The interval where it stops, for the worst of three defensive shares."""
    truth, hits = float(strata.SHARES @ strata.RATES[rates]), []
    for share in SHARES:
        low, high = strata.stop(strata.PLANS[plan], strata.proposal(share), strata.RATES[rates], seed=2)
        hits.append(int(((low <= truth) & (truth <= high)).sum()))
    return [("dataset, the worst of 3 defensive shares", strata.RUNS, min(hits))]


def decided(wins: float, losses: float) -> Counted:
    """Right where no wrong sign is claimed; with equal models every sign is wrong."""
    generator, counts = np.random.default_rng(5), np.zeros((2, DECISIONS))
    found = np.zeros(DECISIONS, dtype=np.int64)
    for start, stop in Until(decided=True).looks():
        drawn = generator.multinomial(stop - start, [wins, losses, 1 - wins - losses], size=DECISIONS)
        counts += drawn[:, :2].T
        found = np.where(found == 0, signs(*counts, LEVEL), found)
        if stop > 100_000:
            break
    wrong = (found == -1) if wins > losses else found != 0
    return [("no wrong sign", DECISIONS, int((~wrong).sum()))]


def measured(relative: float, std: float) -> Counted:
    """From the first uniform draw to the stop."""
    truth, hits = float(pilots.exact(std).mean()), 0
    for seed in range(MEASUREMENTS):
        found = pilots.found(Until(relative=relative), std=std, seed=seed)
        hits += found.low <= truth <= found.high
    return [("dataset", MEASUREMENTS, int(hits))]
