"""What is counted of random draws, and the intervals that hold whenever one looks.

``UntilTally`` counts the changes of draws that all weigh the same. It can say for many looks at once whether the
stopping rule is met there, so that the draws of several looks can be evaluated together.
"""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jostle.base.estimate import OTHER, Interval, Target
from jostle.estimates.request import Request
from jostle.estimates.result import NEGLIGIBLE, SIGN_DECIDED, Floats, MeanChange, Profile
from jostle.estimates.tallies import BINARY, TERNARY, Support, too_few_positions
from jostle.intervals import anytime, fixed
from jostle.intervals.sign import log_evidence, signs
from jostle.sampling import Trials, Until
from jostle.sampling.plans import Integers
from jostle.tokens import Inputs

_PILOT = 256
_LEAST_CHANGED, _MOST_UNCHANGED = 100, 20_000
CALIBRATED = 0.8, 0.99
_CAUTION = 1.5  # standard errors


@dataclass(frozen=True)
class Moments:
    """What intervals need to know about independent draws: counts of their values, or the first two moments.

    Arguments:
        support: the values that can occur.
        counts: (..., width); one row for each look or position, if there are several.
    """

    support: Support
    counts: Floats

    @classmethod
    def none(cls, support: Support) -> "Moments":
        """No draws yet."""
        return cls(support, np.zeros(len(support.values) if support.is_discrete else 3))

    @staticmethod
    def rows(support: Support, changes: Floats) -> Floats:
        """(draws, width): what each draw adds to the counts."""
        if support.is_discrete:
            return np.asarray(changes[:, None] == np.asarray(support.values), dtype=np.float64)
        return np.stack([np.ones_like(changes), changes, changes**2], axis=1)

    @property
    def size(self) -> Floats:
        """The number of draws."""
        return np.asarray(self.counts.sum(axis=-1) if self.support.is_discrete else self.counts[..., 0])

    @property
    def mean(self) -> Floats:
        """Their mean, NaN for none."""
        total = self.counts @ np.asarray(self.support.values) if self.support.is_discrete else self.counts[..., 1]
        with np.errstate(invalid="ignore"):
            return np.asarray(total / self.size)

    @property
    def variance(self) -> Floats:
        """The unbiased variance of real draws."""
        size, total, squares = np.moveaxis(self.counts, -1, 0)
        with np.errstate(invalid="ignore", divide="ignore"):
            spread = np.maximum(squares - total**2 / size, 0.0) / (size - 1)
        return np.where(size > 1, spread, 0.0)


class DrawTally(ABC):
    """What the loop of ``Until`` asks of the counts of one model: when to stop, and then the answer."""

    @abstractmethod
    def add(self, trials: Trials, changes: Floats) -> None:
        """Count changes in the order of the draws; NaN marks a trial that failed and is left out."""

    @abstractmethod
    def met(self, trials: Trials, changes: Floats, ends: Integers) -> NDArray[np.bool_]:
        """(looks,) whether the stopping rule is met after the first ``ends[i]`` of these trials, which come next.

        Nothing is counted by this: the caller adds the trials up to the look at which it stops.
        """

    @abstractmethod
    def visits_all(self, trials: Trials, changes: Floats, ends: Integers) -> NDArray[np.bool_]:
        """(looks,) whether every input has been drawn by then: the population interval cannot improve after that."""

    @property
    @abstractmethod
    def unvisited(self) -> int:
        """How many inputs have not been drawn yet."""

    @property
    @abstractmethod
    def trials(self) -> int:
        """Finite trials behind the value."""

    @property
    @abstractmethod
    def value(self) -> float:
        """The estimate now."""

    @abstractmethod
    def draws_left(self) -> float:
        """At least about how many more draws the rule will take, judged with some caution by the draws so far."""

    @abstractmethod
    def candidate(self) -> Interval:
        """The interval that the stopping rule looks at now."""

    @abstractmethod
    def settle(self) -> None:
        """The stopping rule was met: from now on the interval of that rule is the answer."""

    @abstractmethod
    def estimate(self) -> MeanChange:
        """The estimate from all draws so far."""


@dataclass
class UntilTally(DrawTally):
    """Sums over random triples that all weigh the same.

    For the dataset all draws count: they are independent with the dataset's mean. For the population only the first
    visit of each input counts: these draws are independent with the population's mean, whatever the dataset.

    The stopping rule looks at an interval of its own for flips, see ``intervals.anytime``. It is the answer where the
    rule is met, also where several models must all be precise enough: for each of them that is a later look than its
    own, at which the sample size depends on its flips still less. Differences between models then have Gaffke's bound
    at the same raised level. Simulated in tests/estimates/test_stopping.py.

    Attributes:
        decision: of a difference, if the plan is to decide: ``more``, ``less``, ``negligible``, or nothing yet.

    Arguments:
        request: what is asked; the stopping rule looks at the interval for its ``target``. With ``average="micro"``
            long inputs are drawn more often: first visits then say nothing about a population, and there is no
            interval for it.
        plan: the stopping rule; the intervals are tuned to be narrowest where it stops.
        inputs: the inputs of the trials.
        support: the values a change can take.
        level: of the intervals.
    """

    request: Request
    plan: Until
    inputs: Inputs
    support: Support
    level: float

    def __post_init__(self) -> None:
        self.target = self.request.target
        self._has_settled = False
        self._changed = 0
        self._is_calibrated = self.support.is_discrete and CALIBRATED[0] <= self.level <= CALIBRATED[1]
        tokens, num_inputs = int(np.prod(self.inputs.positions)), len(self.inputs)
        self._all, self._first = Moments.none(self.support), Moments.none(self.support)
        self._by_position = np.zeros((tokens, len(self._all.counts)))
        self._sums, self._visits = np.zeros(num_inputs), np.zeros(num_inputs)
        self._extremes = {"dataset": (np.inf, -np.inf), "population": (np.inf, -np.inf)}  # of draws, and first visits
        self._real_horizon: float | None = None
        self.decision = ""
        self._pending: tuple[int, str] | None = None  # after how many of the next trials what was decided

    def add(self, trials: Trials, changes: Floats) -> None:
        """Count changes in the order of the draws; NaN marks a trial that failed and is left out."""
        if self._pending is not None and self._pending[0] <= len(trials):
            self.decision = self._pending[1]
        self._pending = None
        kept = np.isfinite(changes)
        is_first = self._first_visits(trials, kept)[kept]
        inputs, tokens, changes = trials.inputs[kept], trials.tokens[kept], changes[kept]
        rows = Moments.rows(self.support, changes)
        self._all = Moments(self.support, self._all.counts + rows.sum(axis=0))
        self._first = Moments(self.support, self._first.counts + rows[is_first].sum(axis=0))
        for target, part in (("dataset", changes), ("population", changes[is_first])):
            low, high = self._extremes[target]
            self._extremes[target] = (float(part.min(initial=low)), float(part.max(initial=high)))
        self._changed += int(np.count_nonzero(changes))
        self._sums += np.bincount(inputs, weights=changes, minlength=len(self._sums))
        self._visits += np.bincount(inputs, minlength=len(self._visits))
        for column, part in enumerate(rows.T):
            self._by_position[:, column] += np.bincount(tokens, weights=part, minlength=len(self._by_position))

    def met(self, trials: Trials, changes: Floats, ends: Integers) -> NDArray[np.bool_]:
        """(looks,) whether the stopping rule is met after the first ``ends[i]`` of these trials, which come next.

        Nothing is counted by this: the caller adds the trials up to the look at which it stops.
        """
        kept = np.isfinite(changes)
        rows = Moments.rows(self.support, np.where(kept, changes, 0.0)) * kept[:, None]
        everything = Moments(self.support, self._all.counts + sums_up_to(rows, ends))
        moments = everything
        if self.target == "population":
            rows = rows * self._first_visits(trials, kept)[:, None]
            moments = Moments(self.support, self._first.counts + sums_up_to(rows, ends))
        changed = self._changed + sums_up_to((kept & (changes != 0))[:, None], ends)[:, 0]
        is_enough = self._is_enough(changed, everything.size)
        if self.plan.decided:
            return self._decided_by(moments, is_enough, ends)
        low, high = self._looked_at(moments)
        is_met = np.asarray(self.plan.is_met(everything.mean, low, high) & is_enough)
        if self.support.is_discrete or self._real_horizon is not None:
            return is_met
        ready = np.flatnonzero(is_enough & (everything.size >= _PILOT))
        if not len(ready) or is_met[: ready[0]].any():
            return is_met
        self._real_horizon = self._plan_real(Moments(self.support, everything.counts[ready[0]]))
        low, high = self._looked_at(moments)
        after = np.arange(len(ends)) >= ready[0]
        return np.asarray(after & is_enough & self.plan.is_met(everything.mean, low, high))

    def _decided_by(self, moments: Moments, is_enough: NDArray[np.bool_], ends: Integers) -> NDArray[np.bool_]:
        """(looks,) whether a difference was decided at some look by then: its sign, or that it is negligible.

        What is decided at a look stays decided, so the first look that tells is remembered until it is counted.
        """
        found = np.full(len(ends), self.decision, dtype=object)
        if not self.decision:
            found[:] = self._decisions(moments, is_enough)
            told = np.flatnonzero(found)
            if len(told):
                found[told[0] :] = found[told[0]]
                self._pending = (int(ends[told[0]]), str(found[told[0]]))
        return np.asarray(found != "")

    def _decisions(self, moments: Moments, is_enough: NDArray[np.bool_]) -> NDArray[Any]:
        """(looks,) what the evidence at each look tells: ``more``, ``less``, ``negligible``, or nothing."""
        if self.support == TERNARY:
            sign = signs(moments.counts[..., 2], moments.counts[..., 0], self.level)
        else:
            low, high = self._sequence(moments, self.level, self.target)
            sign = np.where(is_enough, (low > 0).astype(np.int64) - (high < 0), 0)
        found = np.array(["less", "", "more"], dtype=object)[sign + 1]
        if self.plan.at_least is not None:
            maybe = np.flatnonzero((sign == 0) & is_enough & (np.abs(moments.mean) < self.plan.at_least))
            rows = Moments(self.support, moments.counts[maybe])
            low, high = self._sequence(rows, self._beside(), self.target)
            found[maybe[(-self.plan.at_least < low) & (high < self.plan.at_least)]] = "negligible"
        return found

    @property
    def _peeked_level(self) -> float:
        """The level of the interval that the stopping rule looks at."""
        return anytime.peeked_level(self.level, is_relative=self.plan.is_relative)

    def _beside(self) -> float:
        """The level of the interval of a difference beside the evidence for its sign, which takes half of alpha."""
        return (1 + self.level) / 2 if self.support.is_discrete else self.level

    def visits_all(self, trials: Trials, changes: Floats, ends: Integers) -> NDArray[np.bool_]:
        """(looks,) whether every input has been drawn by then: the population interval cannot improve after that."""
        fresh = self._first_visits(trials, np.isfinite(changes))[:, None]
        return np.asarray(sums_up_to(fresh, ends)[:, 0] == self.unvisited)

    @property
    def unvisited(self) -> int:
        """How many inputs have not been drawn yet."""
        return int(np.count_nonzero(self._visits == 0))

    def _first_visits(self, trials: Trials, kept: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """(trials,) whether a trial that is kept is the first one of its input."""
        places = np.flatnonzero(kept & (self._visits[trials.inputs] == 0))
        is_first = np.zeros(len(trials), dtype=bool)
        is_first[places[np.unique(trials.inputs[places], return_index=True)[1]]] = True
        return is_first

    @property
    def trials(self) -> int:
        """Finite trials so far."""
        return int(self._all.size)

    @property
    def value(self) -> float:
        """The mean of all draws so far."""
        return float(self._all.mean)

    def _is_enough(self, changed: Floats, size: Floats) -> NDArray[np.bool_]:
        """Whether there are enough draws to judge the precision.

        Intervals of flips are valid for any number of draws. Those of real changes are asymptotic: draws that are all
        zero have no spread, and would look infinitely precise.
        """
        if self.support.is_discrete:
            return np.ones(len(size), dtype=bool)
        return np.asarray((changed >= _LEAST_CHANGED) | (size >= _MOST_UNCHANGED))

    def draws_left(self) -> float:
        """At least about how many more draws the rule will take, judged with some caution by the draws so far."""
        if self.plan.decided:
            return self._undecided() * self.trials if self.trials else 0.0
        if self._is_calibrated and self.support == BINARY and self.target == "dataset":
            if self.plan.is_relative and self.trials:
                rate = max(self.value, 0.5 / self.trials)
                needed = self.plan.least_draws(rate, rate, self._peeked_level) * rate
                return surely_left(self._changed, needed - self._changed, self.trials)
            return max(self.plan.least_draws(*self._likely_rates(), self._peeked_level) - self.trials, 0.0)
        if not self.trials:
            return 0.0
        share = self.plan.share_done(self.value, *(float(end[0]) for end in self._looked_at(self._one(self.target))))
        return max(caution(self._changed) / max(share, 1e-9) - 1, 0.0) * self.trials

    def _likely_rates(self) -> tuple[float, float]:
        """Almost surely the rate of flips is between these; without any draws, most trials are thought not to flip."""
        if not self.trials:
            return 0.0, 0.5
        doubt = _CAUTION * (math.sqrt(self._changed) + 1)
        return max(self._changed - doubt, 0.0) / self.trials, min((self._changed + doubt) / self.trials, 1.0)

    def _undecided(self) -> float:
        """How many times the draws so far a decision will surely take; evidence comes in leaps, so rather too few."""
        if self.decision or self.support != TERNARY:
            return 0.0
        counts = self._one(self.target).counts[0]
        told = max(float(each) for each in log_evidence(counts[2], counts[0]))
        return max(min(0.5 * math.log(2 / (1 - self.level)) / max(told, 0.1) - 1, 0.25), 0.0)

    @property
    def by_input(self) -> Floats:
        """(2, N): the sum of changes of each input, and its draws."""
        return np.stack([self._sums, self._visits])

    def log_capital(self, level: float) -> anytime.Capital:
        """The capital of the confidence sequence for the dataset against each candidate of the mean flip."""
        counts = self._all.counts
        return anytime.log_mixture(
            np.asarray([[counts[1]]]), np.asarray([[counts.sum()]]), level, self._horizon(level, 1.0, np.inf)
        )

    def _horizon(self, level: float, share: float, cap: float) -> anytime.Horizon:
        """About how many draws will be made, if they are this share of all, and there can be at most ``cap``."""
        return lambda p: np.clip(self.plan.horizon(p, level) * share, 16.0, max(cap, 16.0))

    def _one(self, target: Target) -> Moments:
        """The moments of the draws that count for ``target``, as one row."""
        moments = self._all if target == "dataset" else self._first
        return Moments(self.support, moments.counts[None])

    def _looked_at(self, moments: Moments) -> tuple[Floats, Floats]:
        """The ends (looks,) that the stopping rule looks at: the interval for ``target`` if sampling stops there."""
        if self._is_calibrated and self.support == BINARY:
            return anytime.stopped_proportion(
                moments.counts[..., 1], moments.size, self.level, is_relative=self.plan.is_relative
            )
        return self._sequence(moments, self.level, self.target)

    def candidate(self) -> Interval:
        """The interval that the stopping rule looks at now."""
        if self.plan.decided or not (self._is_calibrated and self.support == BINARY):
            return self.interval(self.target)
        low, high = self._looked_at(self._one(self.target))
        method = "Clopper-Pearson, calibrated for its stopping rule"
        return self._labelled(float(low[0]), float(high[0]), self.target, method)

    def settle(self) -> None:
        """The stopping rule was met: from now on the interval of that rule is the answer."""
        self._has_settled = True

    def interval(self, target: Target) -> Interval:
        """The interval for ``target`` now; until the rule is met, the intervals of all looks hold together."""
        is_stopped = self._has_settled and self._is_calibrated and target == self.target and not self.plan.decided
        if is_stopped and self.support == BINARY:
            return self.candidate()
        if self.request.average == "micro" and target == "population":
            ends = self.support.bounds if self.support.is_discrete else (-np.inf, np.inf)
            method = "unknown: micro-averages of a population need Grid"
            return Interval(*ends, self.level, target, method, is_known=False)
        moments = self._one(target)
        if is_stopped:
            ends = fixed.bounded_mean(self.support.values, moments.counts[0], self._peeked_level, self.support.bounds)
            return self._labelled(*ends, target, "Gaffke's bound, calibrated for its stopping rule")
        if self.plan.decided and self.support != BINARY and target == self.target:
            return self._decided_interval(moments)
        peeks = self._is_calibrated and target == self.target and not self.plan.decided
        level = anytime.sequence_level(self.level) if peeks else self.level
        kinds = {BINARY: "beta-binomial mixture", TERNARY: "betting"}
        low, high = self._sequence(moments, level, target)
        method = f"confidence sequence, {kinds.get(self.support, 'asymptotic')}"
        return self._labelled(float(low[0]), float(high[0]), target, method)

    def _decided_interval(self, moments: Moments) -> Interval:
        """The interval of a difference whose sign is sought: a confidence sequence, cut at 0 where that is decided.

        The evidence for the sign and the sequence take half of alpha each, so that both hold together.
        """
        low, high = (float(end[0]) for end in self._sequence(moments, self._beside(), self.target))
        kind = "confidence sequence, " + ("betting" if self.support.is_discrete else "asymptotic")
        if self.decision in ("more", "less"):
            ends = (max(low, 0.0), high) if self.decision == "more" else (low, min(high, 0.0))
            return self._labelled(*ends, self.target, f"{SIGN_DECIDED}, {kind}")
        shown = f"{NEGLIGIBLE} {self.plan.at_least:g}, " if self.decision else ""
        return self._labelled(low, high, self.target, shown + kind)

    def _labelled(self, low: float, high: float, target: Target, method: str) -> Interval:
        suffix = "" if target == "dataset" else ", first visits"
        return Interval(low, high, self.level, target, method + suffix, caveat=self._caveat(target))

    def _caveat(self, target: Target) -> str:
        """Why the coverage of an interval of real changes is not promised; that of flips always is."""
        moments = self._one(target)
        if self.support.is_discrete or not moments.size[0]:
            return ""
        mean, squares = float(moments.mean[0]), float(moments.variance[0] * (moments.size[0] - 1))
        furthest = max(abs(end - mean) for end in self._extremes[target])
        return fixed.asymptotic(float(moments.size[0]), furthest**2 / squares if squares > 0 else 1.0)

    def estimate(self) -> MeanChange:
        """The estimate from all draws so far."""
        with np.errstate(invalid="ignore"):
            per_input = self._sums / self._visits
        interval, other = self.interval(self.target), self.interval(OTHER[self.target])
        return MeanChange(self.value, interval, other, per_input, self._profile(), self.trials)

    def _sequence(
        self, moments: Moments, level: float, target: Target = "dataset", share: float = 1.0
    ) -> tuple[Floats, Floats]:
        """Ends (rows,) of the confidence sequence of draws with these moments, which are this share of all."""
        cap = np.inf if target == "dataset" else float(len(self.inputs))  # so many first visits there are
        if self.support == BINARY:
            horizon = self._horizon(level, share, cap)
            return anytime.bernoulli(moments.counts[..., 1], moments.size, level, horizon)
        if self.support.is_discrete:
            return anytime.bounded(self.support.values, moments.counts, level, self.support.bounds)
        tuned = min((self._real_horizon or _PILOT) * share, cap)
        return anytime.asymptotic(moments.mean, moments.variance, moments.size, level, tuned)

    def _plan_real(self, moments: Moments) -> float:
        """How many draws a real-valued mean will need, judged by a pilot; the interval is narrowest there."""
        aim = self.plan.half_width or (self.plan.relative or 0.0) * abs(float(moments.mean))
        return min(9.2 * float(moments.variance) / max(aim, 1e-9) ** 2, 1e12)

    def _profile(self) -> Profile:
        share = 1 / len(self._by_position)
        distinct, back = np.unique(self._by_position, axis=0, return_inverse=True)  # many rows are equal
        moments = Moments(self.support, distinct)
        low, high = self._sequence(moments, self.level, share=share)
        blank = moments.size == 0
        low, high = (np.where(blank, np.nan, end)[back] for end in (low, high))
        counts = moments.size.astype(np.int64)[back]
        method = "confidence sequence, each position on its own"
        if not self.support.is_discrete:
            method += ", asymptotic" + too_few_positions(moments.size[back], np.zeros(len(back)))
        positions, special = self.inputs.positions, self.inputs.special_share
        return Profile(moments.mean[back], low, high, counts, positions, "dataset", method, special)


def surely_left(changes: float, left: float, draws: float) -> float:
    """How many draws it almost surely takes to see so many more changes.

    Arguments:
        changes, draws: so far.
        left: changes that are still needed.
    """
    if left <= 0 or not draws:
        return 0.0
    most = changes + _CAUTION * (math.sqrt(changes) + 1)
    return max(left - _CAUTION * (math.sqrt(left) + 1), 0.0) * draws / most


def caution(changed: float) -> float:
    """The share of the draws predicted that will be needed almost surely, if so many changes have been seen."""
    return 1 - _CAUTION / math.sqrt(1 + changed)


def sums_up_to(rows: NDArray[Any], ends: Integers) -> Floats:
    """(looks, width): the sum of the first ``ends[i]`` rows, for ends in increasing order."""
    totals = np.concatenate([np.zeros((1, rows.shape[1])), np.cumsum(rows, axis=0, dtype=np.float64)])
    return totals[ends]
