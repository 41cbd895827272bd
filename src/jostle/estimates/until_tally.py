"""What is counted while drawing, and the intervals that may be looked at at any time."""

from dataclasses import dataclass

import numpy as np

from jostle.estimates.estimate import Estimate, Floats, Profile
from jostle.estimates.support import BINARY, Support
from jostle.intervals import Interval, Target, anytime, sequential
from jostle.sampling import Trials, Until

UNKNOWN = "unknown"  # how the method of an interval begins that is none: it holds all values there are
_PILOT = 256
_LEAST_CHANGED, _MOST_UNCHANGED = 100, 20_000
_CALIBRATED = 0.8, 0.99


@dataclass
class Moments:
    """What the intervals need of independent draws: counts of values, or the first two moments."""

    support: Support
    counts: Floats

    @classmethod
    def none(cls, support: Support) -> "Moments":
        """No draws yet."""
        return cls(support, np.zeros(len(support.values) if support.is_discrete else 3))

    def add(self, changes: Floats) -> None:
        """Take in finite changes."""
        self.counts = self.counts + self.rows(self.support, changes).sum(axis=0)

    @staticmethod
    def rows(support: Support, changes: Floats) -> Floats:
        """(draws, width): what each draw adds to the counts."""
        if support.is_discrete:
            return np.asarray(changes[:, None] == np.asarray(support.values), dtype=np.float64)
        return np.stack([np.ones_like(changes), changes, changes**2], axis=1)

    @property
    def size(self) -> int:
        """How many draws."""
        return int(self.counts.sum() if self.support.is_discrete else self.counts[0])

    @property
    def mean(self) -> float:
        """Their mean, NaN for none."""
        if not self.size:
            return float("nan")
        total = float(np.asarray(self.support.values) @ self.counts) if self.support.is_discrete else self.counts[1]
        return float(total / self.size)

    @property
    def variance(self) -> float:
        """The unbiased variance of real draws."""
        size, total, squares = self.counts
        return float(max(squares - total**2 / size, 0.0) / (size - 1)) if size > 1 else 0.0


@dataclass
class UntilTally:
    """Sums over random triples.

    For the dataset all draws count: they are independent with the dataset's mean. For the population only the first
    visit of each input counts: these draws are independent with the population's mean, whatever the dataset.

    Arguments:
        num_inputs, positions: N, and the shape of the position grid.
        plan: the stopping rule; the intervals are tuned to be narrowest where it stops.
        support: the values a change can take.
        level, target: of the intervals; the stopping rule looks at the interval for ``target``.
        decides_alone: whether this tally alone decides when sampling stops. If it does, and changes are flips, the
            stopping rule has an interval of its own, see ``intervals.sequential``; where several models must all be
            precise enough, only a confidence sequence is valid for each.
        average: ``macro``, or ``micro`` where long inputs were drawn more often: first visits then say nothing about a
            population, and there is no interval for it.
    """

    num_inputs: int
    positions: tuple[int, ...]
    plan: Until
    support: Support
    level: float
    target: Target
    decides_alone: bool = False
    average: str = "macro"

    def __post_init__(self) -> None:
        self._has_settled = False
        self._changed = 0
        is_calibrated = _CALIBRATED[0] <= self.level <= _CALIBRATED[1]
        self._peeks = self.decides_alone and self.support == BINARY and is_calibrated
        tokens = int(np.prod(self.positions))
        self._all, self._first = Moments.none(self.support), Moments.none(self.support)
        self._by_position = np.zeros((tokens, len(self._all.counts)))
        self._sums, self._visits = np.zeros(self.num_inputs), np.zeros(self.num_inputs)
        self._real_horizon: float | None = None

    def add(self, trials: Trials, changes: Floats) -> None:
        """Take in changes in the order of the draws; NaN marks a trial that failed and is left out."""
        kept = np.isfinite(changes)
        inputs, tokens, changes = trials.inputs[kept], trials.tokens[kept], changes[kept]
        self._all.add(changes)
        self._changed += int(np.count_nonzero(changes))
        distinct, first = np.unique(inputs, return_index=True)
        self._first.add(changes[first[self._visits[distinct] == 0]])
        np.add.at(self._sums, inputs, changes)
        np.add.at(self._visits, inputs, 1)
        np.add.at(self._by_position, tokens, Moments.rows(self.support, changes))
        if not self.support.is_discrete and self._real_horizon is None and self._all.size >= _PILOT and self.may_stop:
            self._real_horizon = self._plan_real()

    @property
    def trials(self) -> int:
        """Finite trials so far."""
        return self._all.size

    @property
    def value(self) -> float:
        """The mean of all draws so far."""
        return self._all.mean

    @property
    def may_stop(self) -> bool:
        """Whether there is enough to judge a precision by.

        For flips the intervals know it themselves. Those of real changes are asymptotic: draws that are all zero have
        no spread, and would look infinitely precise.
        """
        if self.support.is_discrete:
            return True
        return self._changed >= _LEAST_CHANGED or self._all.size >= _MOST_UNCHANGED

    @property
    def has_visited_all(self) -> bool:
        """Whether every input has been drawn at least once: then the population interval cannot improve."""
        return bool((self._visits > 0).all())

    def candidate(self) -> Interval:
        """What the stopping rule looks at: the interval for ``target`` if sampling stops here by the rule."""
        if not self._peeks:
            return self.interval(self.target)
        moments = self._all if self.target == "dataset" else self._first
        ends = sequential.stopped_proportion(int(moments.counts[1]), moments.size, self.level)
        method = "Clopper-Pearson, calibrated for its stopping rule"
        return Interval(*ends, self.level, self.target, method + ("" if self.target == "dataset" else ", first visits"))

    def settle(self) -> None:
        """The stopping rule was met: from now on its own interval is the answer."""
        self._has_settled = True

    def interval(self, target: Target) -> Interval:
        """The interval for ``target`` now; until the rule is met, it holds at every look together."""
        if self._peeks and target == self.target and self._has_settled:
            return self.candidate()
        if self.average == "micro" and target == "population":
            ends = self.support.bounds if self.support.is_discrete else (-np.inf, np.inf)
            return Interval(*ends, self.level, target, f"{UNKNOWN}: micro-averages of a population need Grid")
        moments = self._all if target == "dataset" else self._first
        cap = np.inf if target == "dataset" else float(self.num_inputs)
        level = sequential.sequence_level(self.level) if self._peeks and target == self.target else self.level
        names = {True: "confidence sequence, betting", False: "confidence sequence, asymptotic"}
        method = (
            "confidence sequence, beta-binomial mixture" if self.support == BINARY else names[self.support.is_discrete]
        )
        method += "" if target == "dataset" else ", first visits"
        return Interval(*self._ends(moments, 1.0, level, cap), self.level, target, method)

    def estimate(self) -> Estimate:
        """The estimate from all draws so far."""
        with np.errstate(invalid="ignore"):
            per_input = self._sums / self._visits
        dataset, population = self.interval("dataset"), self.interval("population")
        return Estimate(self.value, dataset, population, per_input, self._profile(), self._all.size)

    def _ends(self, moments: Moments, share: float, level: float, cap: float = np.inf) -> tuple[float, float]:
        """Ends of the confidence sequence from ``moments``, which receive this share of all draws, at most ``cap``."""
        if self.support == BINARY:

            def horizon(p: Floats) -> Floats:
                return np.clip(self.plan.horizon(p, level) * share, 16.0, max(cap, 16.0))

            return anytime.bernoulli(int(moments.counts[1]), moments.size, level, horizon)
        if self.support.is_discrete:
            return anytime.bounded(self.support.values, moments.counts, level, self.support.bounds)
        tuned = min((self._real_horizon or _PILOT) * share, cap)
        return anytime.asymptotic(moments.mean, moments.variance, moments.size, level, tuned)

    def _plan_real(self) -> float:
        """How many draws a real-valued mean will need, from a pilot: the mixture is tuned to that."""
        aim = self.plan.half_width or (self.plan.relative or 0.0) * abs(self._all.mean)
        return min(9.2 * self._all.variance / max(aim, 1e-9) ** 2, 1e12)

    def _profile(self) -> Profile:
        share, blank = 1 / len(self._by_position), (np.nan, np.nan)
        distinct, back = np.unique(self._by_position, axis=0, return_inverse=True)  # many positions are alike
        rows = [Moments(self.support, counts) for counts in distinct]
        ends = np.asarray([self._ends(row, share, self.level) if row.size else blank for row in rows])[back]
        values = np.asarray([row.mean for row in rows])[back]
        counts = np.asarray([row.size for row in rows], dtype=np.int64)[back]
        method = "confidence sequence, each position on its own"
        return Profile(values, ends[:, 0], ends[:, 1], counts, self.positions, "dataset", method)
