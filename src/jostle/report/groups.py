"""Groups of positions: their mean change with an interval, and how finely positions can be told apart.

A position on its own has few trials. Where their chance is all there is to see, neighbours are put together.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from jostle.base import specs
from jostle.estimates import Measurement
from jostle.figures.style import is_flip
from jostle.intervals import anytime, fixed
from jostle.sampling import PLANS, Plan, Until

Integers = NDArray[np.int64]
_SHORTEST_HORIZON = 16.0  # the same as for the positions of a profile
_EXCESS = 2.0  # a cut is fine enough to be shown if its groups vary this many times as much as chance makes them
_CHANCE = 0.01  # how often positions that are all alike may be said to differ


@dataclass(frozen=True)
class Group:
    """The mean change over some positions, NaN where there is no trial.

    Arguments:
        places: the positions.
        value, low, high: the mean with its interval.
        trials: behind it.
        spread: the standard deviation that chance gives the mean if all positions are alike; 0 if it is exact.
    """

    places: Integers
    value: float
    low: float
    high: float
    trials: int
    spread: float = 0.0


def group(m: Measurement, places: Integers) -> Group:
    """The mean over all trials at these positions, with an interval.

    Flips are independent draws given the inputs. So flips at several positions are counted together, and the interval
    is that of a single position: a confidence sequence if sampling stopped early, otherwise Clopper and Pearson's. For
    other responses, and for adaptive draws, only intervals by position are known. Their mean is wider than necessary;
    if means are about normal, it covers however the positions depend on each other.
    """
    profile = m.profile
    counts = profile.counts[places]
    known, trials = places[counts > 0], int(counts.sum())
    if not trials:
        return Group(places, np.nan, np.nan, np.nan, 0)
    weights = profile.counts[known] / trials
    is_weighted = profile.method.startswith("weighted")  # adaptive: trials say nothing about the weight of a position
    if is_weighted:
        weights = np.full(len(known), 1 / len(known))
    value, low, high = (float(part[known] @ weights) for part in (profile.values, profile.low, profile.high))
    if profile.method == "exact":
        return Group(places, value, low, high, trials)
    if is_flip(m) and profile.target == "dataset" and not is_weighted:
        low, high = _pooled_interval(m, round(value * trials), trials, len(places) / len(profile.values))
        return Group(places, value, low, high, trials, _binomial_spread(m, trials))
    z = float(stats.norm.ppf(0.5 + m.settings.level / 2))
    return Group(places, value, low, high, trials, (high - low) / 2 / z / np.sqrt(len(known)))


def _binomial_spread(m: Measurement, trials: int) -> float:
    """The standard deviation of a share of flips of so many trials, if every position has the mean of all."""
    profile = m.profile
    known = profile.counts > 0
    mean = float(profile.values[known] @ profile.counts[known] / profile.counts.sum())
    return float(np.sqrt(mean * (1 - mean) / trials))


def _pooled_interval(m: Measurement, flips: int, trials: int, share: float) -> tuple[float, float]:
    """The interval of a share of flips at some positions, which are ``share`` of all positions."""
    level = m.settings.level
    plan = specs.build(PLANS, m.settings.plan, "plan", Plan)
    if isinstance(plan, Until):
        low, high = anytime.bernoulli(
            flips, trials, level, lambda p: np.maximum(plan.horizon(p, level) * share, _SHORTEST_HORIZON)
        )
        return float(low), float(high)
    low, high = fixed.clopper_pearson(flips, trials, level)
    return float(low), float(high)


def difference_of(groups: Sequence[Group]) -> tuple[float, float]:
    """How many times as much as chance explains groups vary, and the probability of that if they are all alike.

    X = sum over groups of ((value - mean) / spread)^2 is about chi-squared with k - 1 degrees of freedom if k groups
    are alike. The first number is X / (k - 1); infinite for exact values that differ.
    """
    known = [one for one in groups if one.trials]
    values = np.asarray([one.value for one in known])
    spreads = np.asarray([one.spread for one in known])
    if len(known) < 2 or not np.isfinite(spreads).all() or np.ptp(values) == 0:
        return 0.0, 1.0
    if not spreads.all():
        return np.inf, 0.0
    mean = float(np.average(values, weights=1 / spreads**2))
    x, freedom = float((((values - mean) / spreads) ** 2).sum()), len(known) - 1
    return x / freedom, float(stats.chi2.sf(x, freedom))


def choose_groups(
    measured: Sequence[Measurement], cuts: Sequence[list[Integers]]
) -> tuple[list[Integers], dict[str, bool]]:
    """The finest of several ways to cut positions into groups that shows more than chance; the coarsest if none does.

    A cut shows more than chance if, for one of the models, its groups cannot be all alike and at most half of their
    variance is chance. The second answer says for each model whether its groups cannot be all alike.

    Arguments:
        measured: models on the same inputs.
        cuts: from the finest to the coarsest; each is a list of groups of positions.
    """
    is_told: dict[str, bool] = {}
    for cut in cuts:
        found = {m.name: difference_of([group(m, places) for places in cut]) for m in measured}
        is_told = {name: chance < _CHANCE / len(cuts) for name, (_, chance) in found.items()}
        if any(is_told[name] and excess >= _EXCESS for name, (excess, _) in found.items()):
            return cut, is_told
        if all(m.profile.method == "exact" for m in measured):
            return cut, dict.fromkeys(is_told, True)
    return cuts[-1], is_told


def blocks(shape: tuple[int, int]) -> list[list[Integers]]:
    """Ways to cut a grid into squares of 1, 2, 3, ... positions a side, while at least four squares are left."""
    rows, columns = shape
    numbers = np.arange(rows * columns).reshape(shape)
    cuts = list[list[Integers]]()
    for side in range(1, max(rows, columns) + 1):
        parts = [
            numbers[row : row + side, column : column + side].reshape(-1)
            for row in range(0, rows, side)
            for column in range(0, columns, side)
        ]
        if side == 1 or 4 <= len(parts) < len(cuts[-1]):
            cuts.append(parts)
    return cuts


def ranges(counts: Integers, most: int) -> list[Integers]:
    """Ranges of positions with about the same number of trials, from the first position with trials to the last."""
    first, last = np.flatnonzero(counts)[[0, -1]].tolist()
    if last - first < most:
        return [np.asarray([place]) for place in range(first, last + 1)]
    shares = np.cumsum(counts[: last + 1]) / counts.sum()
    ends = np.unique(np.searchsorted(shares, np.arange(1, most + 1) / most - 1e-9) + 1)
    ends[-1] = last + 1
    return [np.arange(start, stop) for start, stop in zip([first, *ends[:-1].tolist()], ends.tolist(), strict=True)]
