"""What is counted on a grid, and the intervals of a sample whose size was fixed beforehand."""

from dataclasses import dataclass, field

import numpy as np
from scipy import special

from jostle.estimates import by_token
from jostle.estimates.estimate import Estimate, Floats, Profile
from jostle.estimates.support import BINARY, Support
from jostle.intervals import Interval, Target, fixed
from jostle.sampling import Trials


@dataclass
class GridTally:
    """Sums over all triples of a grid, never N x T of anything.

    Trials arrive input by input with all their tokens and draws. A cell is one (input, token) with its draws.

    Arguments:
        num_inputs, positions: N, and the shape of the position grid.
        draws: trials a cell.
        support: the values a change can take.
        level, target: of the intervals.
        is_deterministic: whether the jostle has no randomness, so that the complete grid is the exact answer.
        average: ``macro``, inputs weigh the same, or ``micro``, tokens do.
    """

    num_inputs: int
    positions: tuple[int, ...]
    draws: int
    support: Support
    level: float
    target: Target
    is_deterministic: bool
    average: str = "macro"
    per_input: Floats = field(init=False)
    trials: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        tokens = int(np.prod(self.positions))
        self.per_input = np.full(self.num_inputs, np.nan)
        self._noise_variance = np.zeros(self.num_inputs)  # of each input's mean, from its noise alone
        self._trials_of = np.zeros(self.num_inputs)  # finite trials of each input
        self._failed = 0
        self._counts = np.zeros(len(self.support.values))  # trials by value
        self._sizes: set[int] = set()  # finite trials of an input: one number if all inputs weigh the same
        low, high = self.support.bounds if self.support.is_discrete else (0.0, 0.0)
        self._cell_counts = np.zeros((tokens, int(high - low) * self.draws + 1))  # cells by position and sum
        self._cell_moments = np.zeros((3, tokens))  # count, sum and sum of squares of cell means, by position

    def add(self, trials: Trials, changes: Floats) -> None:
        """Take in the changes of whole inputs; NaN marks a trial that failed and is left out."""
        cells = changes.reshape(-1, self.draws)
        owner, token = trials.inputs[:: self.draws], trials.tokens[:: self.draws]
        finite = np.isfinite(cells)
        self.trials += int(finite.sum())
        self._failed += int((~finite).sum())
        self._add_inputs(owner, cells, finite)
        self._add_positions(token, cells, finite)

    def _add_inputs(self, owner: np.ndarray, cells: Floats, finite: np.ndarray) -> None:
        index, back = np.unique(owner, return_inverse=True)
        filled = np.where(finite, cells, 0.0)
        counts = np.bincount(back, weights=finite.sum(axis=1)).astype(np.float64)
        with np.errstate(invalid="ignore", divide="ignore"):
            self.per_input[index] = np.bincount(back, weights=filled.sum(axis=1)) / counts
            self._noise_variance[index] = self._variance_of_means(back, cells, counts)
        self._trials_of[index] = counts
        self._sizes.update(counts.astype(int).tolist())
        if self.support.is_discrete:
            self._counts += self.support.count(cells[finite])

    def _variance_of_means(self, back: np.ndarray, cells: Floats, counts: Floats) -> Floats:
        """The variance of each input's mean given the input.

        With several draws, from the spread within cells. With one, from the spread over tokens, which is at least as
        large; an input with one token and one draw gives NaN.
        """
        if self.draws > 1:
            finite = np.isfinite(cells)
            size = np.maximum(finite.sum(axis=1), 1)
            deviation = np.where(finite, cells - np.nansum(cells, axis=1, keepdims=True) / size[:, None], 0.0)
            within = (deviation**2).sum(axis=1) / np.maximum(size - 1, 1) * size
            return np.asarray(np.bincount(back, weights=within) / counts**2)
        change = np.nan_to_num(cells[:, 0])
        mean = np.bincount(back, weights=change) / counts
        spread = np.bincount(back, weights=np.where(np.isfinite(cells[:, 0]), (change - mean[back]) ** 2, 0.0))
        return np.asarray(spread / (counts - 1) / counts)

    def _add_positions(self, token: np.ndarray, cells: Floats, finite: np.ndarray) -> None:
        whole = finite.all(axis=1)
        sums = cells[whole].sum(axis=1)
        if self.support.is_discrete:
            column = (sums - self.support.values[0] * self.draws).astype(np.int64)
            np.add.at(self._cell_counts, (token[whole], column), 1)
        tokens = self._cell_moments.shape[1]
        means = sums / self.draws
        for row, weights in enumerate((np.ones_like(means), means, means**2)):
            self._cell_moments[row] += np.bincount(token[whole], weights=weights, minlength=tokens)

    @property
    def value(self) -> float:
        """The mean over the inputs visited so far."""
        seen = self.per_input[np.isfinite(self.per_input)]
        return self._mean(seen) if len(seen) else float("nan")

    def _mean(self, seen: Floats) -> float:
        return float(seen.mean()) if self.average == "macro" else by_token.mean(seen, self._seen_sizes)

    @property
    def _seen_sizes(self) -> Floats:
        """Finite trials of the inputs that have any."""
        return self._trials_of[np.isfinite(self.per_input)]

    @property
    def half_width(self) -> float:
        """Roughly half of the population interval so far, quick enough to show while running."""
        seen = self.per_input[np.isfinite(self.per_input)]
        return float(2 * seen.std() / np.sqrt(len(seen))) if len(seen) else float("nan")

    def estimate(self) -> Estimate:
        """The estimate from all inputs visited so far."""
        seen = self.per_input[np.isfinite(self.per_input)]
        value = self._mean(seen)
        population = Interval(*self._clustered(seen), self.level, "population", self._clustered_method)
        return Estimate(
            value, self._dataset(value, seen, population), population, self.per_input, self._profile(), self.trials
        )

    @property
    def _clustered_method(self) -> str:
        if self.average == "micro":
            return "ratio over inputs, " + ("Gaffke's bound" if self.support.is_discrete else "Student's t")
        return "inputs as clusters, Gaffke's bound" if self.support.is_discrete else "inputs as clusters, Student's t"

    def _clustered(self, means: Floats) -> tuple[float, float]:
        """An interval from one mean an input."""
        if self.average == "micro" and self.support.is_discrete:
            return by_token.bounded_ratio(means, self._seen_sizes, self.level, self.support.bounds)
        if self.average == "micro":
            return by_token.student_ratio(means, self._seen_sizes, self.level)
        if self.support.is_discrete:
            bounds = self.support.bounds
            return fixed.bounded_mean(*fixed.histogram(means), self.level, bounds)
        variance = means.var(ddof=1) if len(means) > 1 else 0.0
        low, high = fixed.student(means.mean(), variance, len(means), self.level)
        return float(low), float(high)

    def _dataset(self, value: float, seen: Floats, population: Interval) -> Interval:
        """The interval for the inputs given.

        Where inputs have different numbers of trials (masks, failed trials) a trial of a short input weighs more, and
        no binomial bound holds; the spread over inputs is then an upper bound of the spread of the noise.
        """
        if len(seen) < self.num_inputs:
            method = f"{len(seen)} of {self.num_inputs} inputs, {population.method}"
            return Interval(population.low, population.high, self.level, "dataset", method)
        if self.is_deterministic and not self._failed:
            return Interval(value, value, self.level, "dataset", "exact: every token of every input, no randomness")
        if self.support.is_discrete and (len(self._sizes) == 1 or self.average == "micro"):
            ends = fixed.bounded_mean(self.support.values, self._counts, self.level, self.support.bounds)
            name = "Clopper-Pearson" if self.support == BINARY else "Gaffke's bound"
            return Interval(*ends, self.level, "dataset", f"draws as strata, {name}")
        noise = self._noise_variance
        if self.support.is_discrete or np.isnan(noise).any():
            method = f"spread over inputs as an upper bound, {population.method}"
            return Interval(population.low, population.high, self.level, "dataset", method)
        reach = float(special.ndtri((1 + self.level) / 2) * np.sqrt(noise.sum()) / self.num_inputs)
        if self.average == "micro":
            reach = by_token.noise_reach(noise, self._trials_of, self.level)
        return Interval(value - reach, value + reach, self.level, "dataset", "draws as strata, normal")

    def _profile(self) -> Profile:
        count, total, squares = self._cell_moments
        with np.errstate(invalid="ignore", divide="ignore"):
            means = total / count
            variance = (squares - count * means**2) / (count - 1)
        if self.is_deterministic and self.target == "dataset" and not self._failed:
            low, high, method = means, means, "exact"
        elif not self.support.is_discrete:
            low, high = fixed.student(means, variance, count, self.level)
            method = "inputs as clusters, Student's t"
        elif self.target == "dataset" and self.support == BINARY:
            low, high = fixed.clopper_pearson(total * self.draws, count * self.draws, self.level)
            method = "draws as strata, Clopper-Pearson"
        else:
            low, high = self._bounded_positions(count)
            method = "inputs as clusters, Gaffke's bound"
        blank = count == 0
        low, high = (np.where(blank, np.nan, end) for end in (low, high))
        counts = (count * self.draws).astype(np.int64)
        return Profile(means, low, high, counts, self.positions, self.target, method)

    def _bounded_positions(self, count: Floats) -> tuple[Floats, Floats]:
        bounds = self.support.bounds
        values = np.linspace(*bounds, self._cell_counts.shape[1])
        ends = [
            fixed.bounded_mean(values, row, self.level, bounds) if cells else bounds
            for row, cells in zip(self._cell_counts, count, strict=True)
        ]
        low, high = zip(*ends, strict=True)
        return np.asarray(low), np.asarray(high)
