"""What is counted of weighted draws: the estimate of adaptive sampling and its intervals.

``WeightedTally`` takes the place of an ``UntilTally`` when draws go on with a proposal fixed after a pilot: see
``sampling.adaptive``. The value and the interval of the stopping rule come from the draws of that proposal alone. For
every other end (``max_passes``, Ctrl-C) there is a confidence sequence of these and the uniform draws before them, on a
tenth of alpha as always. The draws of pilots are not used.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from jostle.base.estimate import OTHER, Interval, Target
from jostle.estimates.draws import DrawTally, UntilTally, sums_up_to, surely_left
from jostle.estimates.result import Floats, MeanChange, Profile
from jostle.intervals import anytime
from jostle.intervals.weighted import stopped_weighted
from jostle.sampling import Trials
from jostle.sampling.adaptive import Proposal
from jostle.sampling.plans import Integers


class WeightedTally(DrawTally):
    """Sums over draws of a proposal.

    Each draw has mean S = E[w Y] given all draws before it, as its proposal was fixed by then. So the capital of

        the beta-binomial mixture over the uniform draws, times the bets on w Y of the draws after them

    is one martingale against each candidate S, and gives one confidence sequence (Ville), see ``anytime``.

    Arguments:
        uniform: the draws before, which all weigh the same.
        proposal: what the draws that count are drawn from.
    """

    def __init__(self, uniform: UntilTally, proposal: Proposal) -> None:
        self.uniform, self.proposal = uniform, proposal
        self.plan, self.level, self.target = uniform.plan, uniform.level, uniform.target
        self._has_settled = False
        self._draws, self._total, self._squares, self._flips = np.zeros(4)
        positions, inputs = len(proposal.cells.position_shares), len(uniform.inputs)
        self._by_position = np.zeros((3, positions))  # draws, sum of w Y, sum of w^2 Y
        self._by_input = np.zeros((2, inputs))  # sum of w Y and of w
        self._values: dict[float, int] = {}  # draws by the value of w Y
        self._largest = float(proposal.weights.max())

    def add(self, trials: Trials, changes: Floats) -> None:
        """Count changes in the order of the draws; NaN marks a trial that failed and is left out."""
        kept = np.isfinite(changes)
        assert trials.weights is not None
        weights, changes, tokens, inputs = trials.weights[kept], changes[kept], trials.tokens[kept], trials.inputs[kept]
        moved = weights * changes
        self._draws += len(trials)
        self._total += moved.sum()
        self._squares += (weights * moved).sum()
        self._flips += changes.sum()
        for value, count in zip(*np.unique(moved, return_counts=True), strict=True):
            self._values[float(value)] = self._values.get(float(value), 0) + int(count)
        for row, part in enumerate((moved, weights)):
            self._by_input[row] += np.bincount(inputs, weights=part, minlength=self._by_input.shape[1])
        for row, part in enumerate((np.ones_like(weights), moved, weights * moved)):
            self._by_position[row] += np.bincount(tokens, weights=part, minlength=self._by_position.shape[1])

    def met(self, trials: Trials, changes: Floats, ends: Integers) -> NDArray[np.bool_]:
        """(looks,) whether the stopping rule is met after the first ``ends[i]`` of these trials, which come next."""
        assert trials.weights is not None
        moved = np.where(np.isfinite(changes), changes, 0.0)
        rows = np.stack([trials.weights * moved, trials.weights**2 * moved], axis=1)
        total, squares = sums_up_to(rows, ends).T + np.array([[self._total], [self._squares]])
        draws = self._draws + ends
        return self.plan.is_met(total / draws, *self._stopped(total, squares, draws))

    @property
    def trials(self) -> int:
        """Trials behind the value: those of the proposal if the rule was met, otherwise all."""
        return int(self._draws) + (0 if self._has_settled else self.uniform.trials)

    @property
    def value(self) -> float:
        """The mean of w Y."""
        if self._has_settled:
            return float(self._total / self._draws)
        return float((self._total + self.uniform.value * self.uniform.trials) / self.trials)

    @property
    def unvisited(self) -> int:
        """How many inputs have not been drawn yet."""
        return self.uniform.unvisited

    def visits_all(self, trials: Trials, changes: Floats, ends: Integers) -> NDArray[np.bool_]:
        """Never: adaptive draws are for the dataset, whose interval always improves."""
        del trials, changes
        return np.zeros(len(ends), dtype=bool)

    def draws_left(self) -> float:
        """At least about how many more draws the rule will take, judged with some caution by the draws so far."""
        if not self._squares:
            return 0.0
        share = self.plan.share_done(float(self._total / self._draws), *self._ends())
        alike = float(self._total**2 / self._squares)  # so many flips of equal weight would tell as much
        return surely_left(alike, alike * (1 / max(share, 1e-9) - 1), float(self._draws))

    def _ends(self) -> tuple[float, float]:
        """The interval that the stopping rule looks at."""
        low, high = self._stopped(self._total, self._squares, self._draws)
        return float(low), min(float(high), 1.0)

    def _stopped(self, total: ArrayLike, squares: ArrayLike, draws: ArrayLike) -> tuple[Floats, Floats]:
        """The intervals of so many draws, if they are where the rule is met."""
        return stopped_weighted(total, squares, self._largest, draws, self.level, is_relative=self.plan.is_relative)

    def candidate(self) -> Interval:
        """The interval that the stopping rule looks at now."""
        ends = self._ends() if self._draws else (0.0, 1.0)
        method = "weighted Poisson (Fay-Feuer), calibrated for its stopping rule"
        return Interval(*ends, self.level, self.target, method)

    def settle(self) -> None:
        """The stopping rule was met: from now on the interval of that rule is the answer."""
        self._has_settled = True

    def interval(self, target: Target) -> Interval:
        """The interval for ``target`` now; for the population, that of the first visits of the uniform draws."""
        if target != self.target:
            return self.uniform.interval(target)
        if self._has_settled:
            return self.candidate()
        level = anytime.sequence_level(self.level)
        uniform, weighted = self.uniform.log_capital(level), self._log_bets()
        grid = np.unique(np.clip([*np.geomspace(1e-7, 1, 400), self.value, self.uniform.value], 1e-9, 0.999))[None]
        centre = grid[0, np.argmin((uniform(grid) + weighted(grid))[0])]
        low, high = anytime.hull(lambda m: uniform(m) + weighted(m), np.array([centre]), level, (0.0, 1.0))
        method = "confidence sequence, beta-binomial mixture and betting"
        return Interval(min(float(low[0]), self.value), max(float(high[0]), self.value), self.level, target, method)

    def _log_bets(self) -> anytime.Capital:
        """The capital of the bets on the draws of the proposal."""
        values = np.asarray(sorted(self._values) or [0.0])
        counts = np.asarray([[self._values.get(value, 0) for value in values.tolist()]], dtype=np.float64)
        return anytime.log_bets(values, counts, (0.0, max(self._largest, 1.0)))

    def estimate(self) -> MeanChange:
        """The estimate from all draws so far."""
        sums, visits = self._by_input + self.uniform.by_input
        with np.errstate(invalid="ignore"):
            per_input = sums / visits
        interval, other = self.interval(self.target), self.interval(OTHER[self.target])
        return MeanChange(self.value, interval, other, per_input, self._profile(), self.trials)

    def _profile(self) -> Profile:
        """By position, sum of w Y / (draws x share of the position): unbiased."""
        inputs, shares = self.uniform.inputs, self.proposal.cells.position_shares
        counts, total, squares = self._by_position
        largest = self.proposal.largest
        with np.errstate(invalid="ignore", divide="ignore"):
            draws = self._draws * shares  # of uniform draws so many would be at each position
            values = total / draws
            low, high = stopped_weighted(total, squares, largest, draws, self.level)
        blank = shares == 0
        values, low, high = (np.where(blank, np.nan, part) for part in (values, low, high))
        high = np.maximum(np.minimum(high, 1.0), values)
        method = "weighted Poisson (Fay-Feuer), each position on its own"
        numbers = counts.astype(np.int64)
        return Profile(values, low, high, numbers, inputs.positions, "dataset", method, inputs.special_share)
