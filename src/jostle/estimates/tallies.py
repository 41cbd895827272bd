"""What is counted of a grid, and the estimate that follows from the counts.

The size of a grid was fixed beforehand; random draws, which are looked at while they grow, are counted in ``draws``. A
``Support`` says which values a change can take, which decides which intervals exist for its mean.
"""

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray
from scipy import special

from jostle.base.errors import UsageError
from jostle.base.estimate import Interval
from jostle.estimates.request import Request
from jostle.estimates.result import Floats, MeanChange, Profile
from jostle.intervals import anytime, fixed
from jostle.sampling import Grid, Trials
from jostle.tokens import Inputs


@dataclass(frozen=True)
class Support:
    """The possible values of a change: 0 and 1 for flips, -1, 0, 1 for a difference of flips, or any real number.

    Arguments:
        values: the possible values in increasing order, one apart; empty for real numbers.
    """

    values: tuple[int, ...] = ()

    @property
    def is_discrete(self) -> bool:
        """Whether there are only a few values, so that their counts are all that an interval needs."""
        return bool(self.values)

    @property
    def bounds(self) -> tuple[float, float]:
        """The smallest and the largest value."""
        return float(self.values[0]), float(self.values[-1])

    def count(self, changes: NDArray[np.float64]) -> NDArray[np.float64]:
        """How often each value occurs among finite ``changes``."""
        index = (changes - self.values[0]).astype(np.int64)
        return np.bincount(index, minlength=len(self.values)).astype(np.float64)


BINARY = Support((0, 1))
TERNARY = Support((-1, 0, 1))
REAL = Support()
_MOST_AT_ONCE = 20_000_000  # trials of one input, which are in memory together


@dataclass
class GridTally:
    """Sums over all triples of a grid, never N x T of anything.

    Trials arrive input by input with all their tokens and draws.

    Attributes:
        per_input: (N,) the mean change of each input; NaN before its trials arrive.
        trials: finite trials so far.

    Arguments:
        request: what is asked.
        plan: the grid.
        inputs: the inputs of the trials.
        support: the values a change can take.
        level: of the intervals.
    """

    request: Request
    plan: Grid
    inputs: Inputs
    support: Support
    level: float
    per_input: Floats = field(init=False)
    trials: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        self.num_inputs, self.draws = len(self.inputs), self.plan.draws
        self._by_token = self.request.average == "micro"  # all tokens weigh the same, or all inputs
        self._is_exact = self.request.perturbation.is_deterministic  # then the whole grid is the exact answer
        tokens = int(np.prod(self.inputs.positions))
        if tokens * self.draws > _MOST_AT_ONCE:
            raise UsageError(
                f"draws={self.draws:,} of {tokens:,} tokens are more than {_MOST_AT_ONCE:,} passes for one input: give "
                "fewer draws, or none, and sampling stops when the interval is narrow"
            )
        self.per_input = np.full(self.num_inputs, np.nan)
        self._noise_variance = np.zeros(self.num_inputs)  # of each input's mean, from its noise alone
        self._trials_of = np.zeros(self.num_inputs)  # finite trials of each input
        self._failed = 0
        self._counts = np.zeros(len(self.support.values))  # trials by value
        self._sizes: set[int] = set()  # finite trials of an input: one number if all inputs weigh the same
        low, high = self.support.bounds if self.support.is_discrete else (0.0, 0.0)
        self._sum_counts = np.zeros((tokens, int(high - low) * self.draws + 1))  # tokens by position and sum of draws
        self._moments = np.zeros((3, tokens))  # count, sum and sum of squares of token means, by position
        self._extremes = np.stack([np.full(tokens, np.inf), np.full(tokens, -np.inf)])  # of token means, by position

    def add(self, trials: Trials, changes: Floats) -> None:
        """Count the changes of whole inputs; NaN marks a trial that failed and is left out."""
        changes = changes.reshape(-1, self.draws)  # (tokens of all inputs, draws)
        owner, token = trials.inputs[:: self.draws], trials.tokens[:: self.draws]
        finite = np.isfinite(changes)
        self.trials += int(finite.sum())
        self._failed += int((~finite).sum())
        self._add_inputs(owner, changes, finite)
        self._add_positions(token, changes, finite)

    def _add_inputs(self, owner: np.ndarray, changes: Floats, finite: np.ndarray) -> None:
        index, back = np.unique(owner, return_inverse=True)
        filled = np.where(finite, changes, 0.0)
        counts = np.bincount(back, weights=finite.sum(axis=1)).astype(np.float64)
        with np.errstate(invalid="ignore", divide="ignore"):
            self.per_input[index] = np.bincount(back, weights=filled.sum(axis=1)) / counts
            self._noise_variance[index] = self._variance_of_means(back, changes, counts)
        self._trials_of[index] = counts
        self._sizes.update(counts.astype(int).tolist())
        if self.support.is_discrete:
            self._counts += self.support.count(changes[finite])

    def _variance_of_means(self, back: np.ndarray, changes: Floats, counts: Floats) -> Floats:
        """The variance of each input's mean given the input.

        With several draws, from the spread over the draws of a token. With one, from the spread over tokens, which is
        at least as large; an input with one token and one draw gives NaN.
        """
        if self.draws > 1:
            finite = np.isfinite(changes)
            size = np.maximum(finite.sum(axis=1), 1)
            deviation = np.where(finite, changes - np.nansum(changes, axis=1, keepdims=True) / size[:, None], 0.0)
            within = (deviation**2).sum(axis=1) / np.maximum(size - 1, 1) * size
            return np.asarray(np.bincount(back, weights=within) / counts**2)
        change = np.nan_to_num(changes[:, 0])
        mean = np.bincount(back, weights=change) / counts
        spread = np.bincount(back, weights=np.where(np.isfinite(changes[:, 0]), (change - mean[back]) ** 2, 0.0))
        return np.asarray(spread / (counts - 1) / counts)

    def _add_positions(self, token: np.ndarray, changes: Floats, finite: np.ndarray) -> None:
        whole = finite.all(axis=1)
        sums = changes[whole].sum(axis=1)
        if self.support.is_discrete:
            column = (sums - self.support.values[0] * self.draws).astype(np.int64)
            np.add.at(self._sum_counts, (token[whole], column), 1)
        tokens = self._moments.shape[1]
        means = sums / self.draws
        for row, weights in enumerate((np.ones_like(means), means, means**2)):
            self._moments[row] += np.bincount(token[whole], weights=weights, minlength=tokens)
        np.minimum.at(self._extremes[0], token[whole], means)
        np.maximum.at(self._extremes[1], token[whole], means)

    @property
    def value(self) -> float:
        """The mean over the inputs visited so far."""
        seen = self.per_input[np.isfinite(self.per_input)]
        return self._mean(seen) if len(seen) else float("nan")

    def _mean(self, seen: Floats) -> float:
        return fixed.weighted_mean(seen, self._seen_sizes) if self._by_token else float(seen.mean())

    @property
    def _is_whole(self) -> bool:
        """Whether all inputs were visited. If not, somebody who watched ended it: intervals must hold at any time."""
        return bool(np.isfinite(self.per_input).all())

    @property
    def _seen_sizes(self) -> Floats:
        """Finite trials of the inputs that have any."""
        return self._trials_of[np.isfinite(self.per_input)]

    @property
    def half_width(self) -> float:
        """Roughly half of the width of the population interval so far, quick enough to show while running."""
        seen = self.per_input[np.isfinite(self.per_input)]
        return float(2 * seen.std() / np.sqrt(len(seen))) if len(seen) else float("nan")

    def estimate(self) -> MeanChange:
        """The estimate from all inputs visited so far."""
        seen = self.per_input[np.isfinite(self.per_input)]
        value = self._mean(seen)
        ends, method, caveat = self._clustered(seen)
        population = Interval(*ends, self.level, "population", method, caveat=caveat)
        dataset = self._dataset(value, seen, population)
        interval, other = (dataset, population) if self.request.target == "dataset" else (population, dataset)
        return MeanChange(value, interval, other, self.per_input, self._profile(), self.trials)

    def _clustered(self, means: Floats) -> tuple[fixed.Ends, str, str]:
        """An interval from one mean for each input, how it was made, and why its coverage is not promised.

        Of a grid that was ended early it is a confidence sequence over inputs, which come in random order.
        """
        sizes = self._seen_sizes
        is_ratio = self._by_token and len(np.unique(sizes)) > 1
        over = "ratio over inputs" if is_ratio else "inputs as clusters"
        if self.support.is_discrete and not is_ratio:
            found = fixed.histogram(means)
            if self._is_whole:
                return fixed.bounded_mean(*found, self.level, self.support.bounds), f"{over}, Gaffke's bound", ""
            ends = anytime.bounded_ends(*found, self.level, self.support.bounds)
            return ends, f"{over}, confidence sequence, betting", ""
        value = self._mean(means)
        residuals = sizes * (means - value) / sizes.mean() if is_ratio else means - value
        largest = sizes if self.support.is_discrete else residuals  # a flip is at most as far away as its size
        why = fixed.too_few if self.support.is_discrete else fixed.asymptotic
        caveat = why(len(means), fixed.largest_share(largest))
        if not self._is_whole:
            variance = float(residuals.var(ddof=1)) if len(means) > 1 else 0.0
            low, high = anytime.asymptotic(value, variance, len(means), self.level, self.num_inputs)
            return (float(low), float(high)), f"{over}, confidence sequence, asymptotic", caveat
        if self.support.is_discrete:
            ends = fixed.bounded_ratio(means, sizes, self.level, self.support.bounds)
            return ends, f"{over}, Gaffke's bound", caveat
        return (
            fixed.student_ratio(means, sizes if is_ratio else np.ones_like(means), self.level),
            (f"{over}, Student's t"),
            caveat,
        )

    def _dataset(self, value: float, seen: Floats, population: Interval) -> Interval:
        """The interval for the inputs given.

        Where inputs have different numbers of trials (masks, failed trials) a trial of a short input weighs more, and
        no binomial bound holds; the spread over inputs is then an upper bound of the spread of the noise.
        """
        if len(seen) < self.num_inputs:
            return _renamed(population, f"{len(seen)} of {self.num_inputs} inputs, {population.method}")
        if self._is_exact and not self._failed:
            return Interval(value, value, self.level, "dataset", "exact: every token of every input, no randomness")
        if self.support.is_discrete and (len(self._sizes) == 1 or self._by_token):
            ends = fixed.bounded_mean(self.support.values, self._counts, self.level, self.support.bounds)
            name = "Clopper-Pearson" if self.support == BINARY else "Gaffke's bound"
            return Interval(*ends, self.level, "dataset", f"draws as strata, {name}")
        noise = self._noise_variance
        if self.support.is_discrete or np.isnan(noise).any():
            return _renamed(population, f"spread over inputs as an upper bound, {population.method}")
        reach = float(special.ndtri((1 + self.level) / 2) * np.sqrt(noise.sum()) / self.num_inputs)
        if self._by_token:
            reach = fixed.noise_reach(noise, self._trials_of, self.level)
        freedom = int((self._trials_of * (1 - 1 / self.draws) if self.draws > 1 else self._trials_of - 1).sum())
        caveat = fixed.asymptotic(freedom, fixed.largest_share(np.sqrt(noise)))
        return Interval(value - reach, value + reach, self.level, "dataset", "draws as strata, normal", caveat=caveat)

    def _profile(self) -> Profile:
        count, total, squares = self._moments
        with np.errstate(invalid="ignore", divide="ignore"):
            means = total / count
            variance = (squares - count * means**2) / (count - 1)
        target = self.request.target
        if self._is_exact and target == "dataset" and not self._failed:
            low, high, method = means, means, "exact"
        elif not self.support.is_discrete:
            low, high = fixed.student(means, variance, count, self.level)
            with np.errstate(invalid="ignore", divide="ignore"):
                extreme = np.square(self._extremes - means).max(axis=0) / (variance * (count - 1))
            method = "inputs as clusters, Student's t, asymptotic" + too_few_positions(count, extreme)
        elif not self._is_whole:
            values = np.linspace(*self.support.bounds, self._sum_counts.shape[1])
            low, high = anytime.bounded(values, self._sum_counts, self.level, self.support.bounds)
            method = "confidence sequence, betting"
        elif target == "dataset" and self.support == BINARY:
            low, high = fixed.clopper_pearson(total * self.draws, count * self.draws, self.level)
            method = "draws as strata, Clopper-Pearson"
        else:
            low, high = self._bounded_positions(count)
            method = "inputs as clusters, Gaffke's bound"
        blank = count == 0
        low, high = (np.where(blank, np.nan, end) for end in (low, high))
        counts = (count * self.draws).astype(np.int64)
        inputs = self.inputs
        return Profile(means, low, high, counts, inputs.positions, target, method, inputs.special_share)

    def _bounded_positions(self, count: Floats) -> tuple[Floats, Floats]:
        bounds = self.support.bounds
        values = np.linspace(*bounds, self._sum_counts.shape[1])
        ends = [
            fixed.bounded_mean(values, row, self.level, bounds) if tokens else bounds
            for row, tokens in zip(self._sum_counts, count, strict=True)
        ]
        low, high = zip(*ends, strict=True)
        return np.asarray(low), np.asarray(high)


def too_few_positions(counts: Floats, shares: Floats) -> str:
    """What the method of a profile of real changes says if some positions have too few values for a promise.

    Arguments:
        counts: (tokens,) values at each position.
        shares: (tokens,) of their sum of squared deviations that the most extreme value has; NaN if unknown.
    """
    known = [place for place, count in enumerate(counts) if count]
    doubtful = sum(bool(fixed.too_few(counts[place], float(np.nan_to_num(shares[place], nan=1.0)))) for place in known)
    return f", too few at {doubtful} of {len(known)} positions" if doubtful else ""


def _renamed(population: Interval, method: str) -> Interval:
    """The interval for a population as one for the inputs given."""
    return replace(population, target="dataset", method=method)
