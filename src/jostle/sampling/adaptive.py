"""Where flips can happen: cells (input, token) in strata, and draws that visit the promising strata more often.

Flips live on inputs with a small clean margin, which costs nothing to know once the clean inputs have been asked, and
at few positions. So inputs are put into bins of their margin and positions into groups of their flips so far. Where the
slopes of margins are known, see ``slopes``, cells are put into groups by margin / slope instead. A ``Proposal`` draws a
stratum (bin, group) with a probability of its own, and a cell within it as a uniform draw would; a flip then counts
with the weight (share of the stratum among uniform draws) / (its probability). The estimate is unbiased for every
proposal that was fixed before its draws. Strata that are wrong cost draws, and nothing else.

A share of the draws is uniform whatever the strata promise (the defensive share, at least 1/20), so no weight exceeds
20. The interval needs them to exclude rare flips among cells that look safe, and that bounds the gain: it takes some
33 / S uniform draws, against 500 / S for +-10 % by uniform draws alone.
"""

import functools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from jostle.base.randomness import Stream
from jostle.intervals.weighted import stopped_weighted
from jostle.sampling.plans import Integers, Trials, Until
from jostle.tokens import Inputs

Floats = NDArray[np.float64]
Groups = NDArray[np.signedinteger[Any]]  # of positions, or of cells in one byte each

DEFENSIVE = (0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.55, 0.75)
_BIN_ENDS = np.array([1 / 256, 1 / 128, 1 / 64, 1 / 32, 1 / 16, 1 / 8, 3 / 16, 1 / 4, 3 / 8, 1 / 2, 3 / 4, 1])
_GROUPS = 4
_SLOPE_ENDS = 4.0 ** np.arange(-6, 1)  # shares of all cells: the first group holds the 1/4096 that should flip first
_BIN_FLIPS, _POSITION_FLIPS, _GROUP_FLIPS = 0.5, 2.0, 4.0  # that every bin, position, group is thought to have had
_STRATUM_FLIPS = 1.0  # and every stratum of bins and groups of slopes
_ROWS_AT_ONCE = 2**12
_UNSEEN = 1.5
_STEPS = np.linspace(0, 1, 16)
_FIRST_DRAW = {"pilot": 2**30, "main": 2**31}  # draws of a stage have noise of their own


class Cells:
    """All (input, token) of a measurement, with the share of each among uniform draws, and its bin of margins.

    Attributes:
        bins: (N,) the bin of each input; the first holds the 1/256 with the smallest margins, the last the upper
            quarter.
        position_shares: (positions,) the share of each position of a profile among uniform draws.
        by_slope: (N, tokens) the group of each cell by margin / slope, if slopes are known.

    Arguments:
        inputs: the inputs.
        margins: (N,) how far the clean output of each is from another prediction, in any unit.
        average: ``macro`` or ``micro``, as for ``measure``.
        slopes: (N, tokens) how steep each margin is along each token, in any unit; None if that is not known.
    """

    def __init__(
        self, inputs: Inputs, margins: Floats, average: str, slopes: NDArray[np.float32] | None = None
    ) -> None:
        self.inputs, self._margins = inputs, margins
        counts = np.full(len(inputs), inputs.num_tokens) if inputs.token_counts is None else inputs.token_counts
        self._token_shares = (
            1 / (len(inputs) * counts) if average == "macro" else np.full(len(inputs), 1 / counts.sum())
        )
        order = np.argsort(margins, kind="stable")
        shares = (self._token_shares * counts)[order]  # of whole inputs
        self.bins = np.empty(len(inputs), dtype=np.int64)
        self.bins[order] = np.minimum(np.searchsorted(_BIN_ENDS, np.cumsum(shares) - shares / 2), len(_BIN_ENDS) - 1)
        self._by_bin = np.argsort(self.bins, kind="stable")
        self._firsts = np.searchsorted(self.bins[self._by_bin], np.arange(len(_BIN_ENDS) + 1))
        positions = int(np.prod(inputs.positions))
        self.position_shares = np.zeros(positions)
        for rows, places in self._rows():
            weights = np.broadcast_to(self._token_shares[rows, None], places.shape)[places >= 0]
            self.position_shares += np.bincount(places[places >= 0], weights=weights, minlength=positions)
        self.by_slope = None if slopes is None else self._ranked(slopes)

    def _ranked(self, slopes: NDArray[np.float32]) -> NDArray[np.int8]:
        """The group of each cell by margin / slope; masked ones may have any."""
        with np.errstate(divide="ignore", invalid="ignore"):
            scores = self._margins[:, None].astype(np.float32) / slopes
        scores[np.isnan(scores)] = np.inf
        shares = np.broadcast_to(self._token_shares[:, None], scores.shape)
        if self.inputs.mask is not None:
            shares = np.where(self.inputs.mask, shares, 0.0)
        order = np.argsort(scores, axis=None, kind="stable")
        ranked = shares.ravel()[order]
        groups = np.empty(scores.size, dtype=np.int8)
        groups[order] = np.searchsorted(_SLOPE_ENDS, np.cumsum(ranked) - ranked / 2).clip(max=len(_SLOPE_ENDS) - 1)
        return groups.reshape(scores.shape)

    def groups_of(self, groups: Groups, indices: Integers) -> Groups:
        """(inputs, tokens): the group of every token of these inputs, -1 for masked ones.

        Arguments:
            groups: of each position (positions,), or of each cell (N, tokens).
            indices: the inputs.
        """
        if groups.ndim == 1:
            places = self.positions(indices)
            return np.where(places >= 0, groups[places], -1)
        found = groups[indices].astype(np.int64)
        return found if self.inputs.mask is None else np.where(self.inputs.mask[indices], found, -1)

    def _rows(self) -> Iterator[tuple[slice, Integers]]:
        """Some inputs at a time, and the positions (inputs, tokens) of their tokens, -1 for masked ones."""
        for start in range(0, len(self.inputs), _ROWS_AT_ONCE):
            rows = slice(start, min(start + _ROWS_AT_ONCE, len(self.inputs)))
            yield rows, self.positions(np.arange(rows.start, rows.stop))

    def positions(self, indices: Integers) -> Integers:
        """(inputs, tokens): the position of every token of these inputs in a profile, -1 for masked ones."""
        tokens = np.arange(self.inputs.num_tokens)
        owner = np.repeat(indices, len(tokens))
        places = self.inputs.profile_positions(owner, np.tile(tokens, len(indices))).reshape(len(indices), -1)
        return places if self.inputs.mask is None else np.where(self.inputs.mask[indices], places, -1)

    def group_shares(self, groups: Groups) -> Floats:
        """(N, groups): the share among uniform draws of each input's tokens in each group."""
        count = int(groups.max()) + 1
        if self.inputs.mask is None and groups.ndim == 1:
            sizes = np.bincount(groups, minlength=count)
            return np.asarray(self._token_shares[:, None] * sizes)
        shares = np.empty((len(self.inputs), count))
        for start in range(0, len(self.inputs), _ROWS_AT_ONCE):
            rows = slice(start, min(start + _ROWS_AT_ONCE, len(self.inputs)))
            of_tokens = self.groups_of(groups, np.arange(rows.start, rows.stop))
            for group in range(count):
                shares[rows, group] = (of_tokens == group).sum(axis=1)
        return np.asarray(shares * self._token_shares[:, None])

    def by_bin(self, shares: Floats) -> Floats:
        """(bins, groups): the shares (N, groups) of inputs, summed over the inputs of each bin."""
        return np.stack([np.bincount(self.bins, weights=part, minlength=len(_BIN_ENDS)) for part in shares.T], axis=1)


@dataclass(frozen=True, eq=False)
class Proposal:
    """Draws of cells by strata.

    Arguments:
        cells: what is drawn.
        groups: (positions,) the group of each position, or (N, tokens) that of each cell.
        shares: (N, groups) of ``cells.group_shares``.
        chances: (bins, groups) the probability of each stratum; 0 only where there is no cell.
        stage: ``pilot`` or ``main``; each has random numbers of its own.
    """

    cells: Cells
    groups: Groups
    shares: Floats
    chances: Floats
    stage: str

    @functools.cached_property
    def weights(self) -> Floats:
        """(bins, groups): what a flip of each stratum counts; 0 where there is no cell."""
        wanted = self.cells.by_bin(self.shares)
        return np.divide(wanted, self.chances, out=np.zeros_like(wanted), where=self.chances > 0)

    @property
    def largest(self) -> Floats:
        """(positions,): the largest weight of a draw at each position."""
        if self.groups.ndim == 1:
            return np.asarray(self.weights.max(axis=0)[self.groups])
        found, weights = np.zeros(len(self.cells.position_shares)), self.weights
        for rows, places in self.cells._rows():
            here = weights[self.cells.bins[rows, None], self.groups[rows]]
            np.maximum.at(found, places[places >= 0], here[places >= 0])
        return found

    def trials(self, seed: int, start: int, stop: int) -> Trials:
        """Trials number ``start`` .. ``stop`` - 1 of this stage, with their weights."""
        number, zeros = np.arange(start, stop), np.zeros(stop - start)
        uniforms = Stream(seed, f"until/{self.stage}").uniforms(number, zeros, zeros, size=3)
        ends = np.cumsum(self.chances.ravel())
        stratum = np.searchsorted(ends, uniforms[:, 0] * ends[-1], side="right").clip(max=ends.size - 1)
        bins, groups = np.divmod(stratum, self.chances.shape[1])
        inputs = np.empty(len(number), dtype=np.int64)
        order, firsts = self.cells._by_bin, self.cells._firsts
        for group, upto in enumerate(self._upto):
            here = np.flatnonzero(groups == group)
            first, stop = firsts[bins[here]], firsts[bins[here] + 1]
            low, high = upto[first], upto[stop]
            place = np.searchsorted(upto, low + uniforms[here, 1] * (high - low), side="right") - 1
            inputs[here] = order[np.clip(place, first, stop - 1)]
        draws = number + _FIRST_DRAW[self.stage]
        return Trials(inputs, self._tokens(inputs, groups, uniforms[:, 2]), draws, self.weights[bins, groups])

    @functools.cached_property
    def _upto(self) -> list[Floats]:
        """Of each group, (N + 1,) the share of the first inputs in the order of bins."""
        shares = self.shares[self.cells._by_bin]
        return [np.concatenate([[0.0], np.cumsum(part)]) for part in shares.T]

    def _tokens(self, inputs: Integers, groups: Integers, uniforms: Floats) -> Integers:
        """A token of each input, uniform among those of its group."""
        if self.cells.inputs.mask is None and self.groups.ndim == 1:
            order = np.argsort(self.groups, kind="stable")
            firsts = np.searchsorted(self.groups[order], np.arange(int(self.groups.max()) + 2))
            first, size = firsts[groups], firsts[groups + 1] - firsts[groups]
            return order[first + (uniforms * size).astype(np.int64)]
        is_member = self.cells.groups_of(self.groups, inputs) == groups[:, None]
        nth = (uniforms * is_member.sum(axis=1)).astype(np.int64)
        return np.asarray((np.cumsum(is_member, axis=1) == nth[:, None] + 1).argmax(axis=1))


@dataclass(frozen=True)
class Forecast:
    """What a pilot says about the draws to come.

    Arguments:
        value: about what the sensitivity is.
        draws: about how many draws of the proposal meet the stopping rule.
        uniform: about how many uniform draws meet it.
        proposal: the best one.
    """

    value: float
    draws: float
    uniform: float
    proposal: Proposal


class Pilot:
    """Flips by margin and position, or by margin and slope, so far, and the proposal that follows from them.

    Attributes:
        flips, draws: (bins, positions), or (bins, groups of slopes), of all draws so far, uniform ones and pilots.

    Arguments:
        cells: what is drawn.
        plan: the stopping rule that the proposal serves.
        level: of the interval that it looks at.
    """

    def __init__(self, cells: Cells, plan: Until, level: float) -> None:
        self.cells, self.plan, self.level = cells, plan, level
        columns = len(cells.position_shares) if cells.by_slope is None else len(_SLOPE_ENDS)
        self.flips, self.draws = np.zeros((2, len(_BIN_ENDS), columns))

    def add(self, trials: Trials, changes: Floats) -> None:
        """Count the changes of trials."""
        if self.cells.by_slope is None:
            columns = self.cells.inputs.profile_positions(trials.inputs, trials.tokens)
        else:
            columns = self.cells.by_slope[trials.inputs, trials.tokens].astype(np.int64)
        places = self.cells.bins[trials.inputs], columns
        np.add.at(self.draws, places, 1)
        np.add.at(self.flips, places, changes)

    def forecast(self, stage: str) -> Forecast:
        """The proposal that is expected to take the fewest draws, for this stage, and how many that will be."""
        groups: Groups
        if self.cells.by_slope is None:
            groups, rates = self._rates()
            shares = self.cells.group_shares(groups)
            wanted = self.cells.by_bin(shares)
        else:
            groups, shares, wanted = self.cells.by_slope, self._slope_shares, self.cells.by_bin(self._slope_shares)
            rates = self.slope_rates(wanted)
        chances, draws, uniform = self.best_chances(wanted, rates)
        return Forecast(
            float((wanted * rates).sum()), draws, uniform, Proposal(self.cells, groups, shares, chances, stage)
        )

    def best_chances(self, wanted: Floats, rates: Floats) -> tuple[Floats, float, float]:
        """The chances of strata that take the fewest draws, how many these are, and how many uniform draws it takes.

        Arguments:
            wanted, rates: of each stratum (bins, groups), its share among uniform draws and its rate of flips.
        """
        value, promising = float((wanted * rates).sum()), wanted * np.sqrt(rates)
        defensive = np.asarray(DEFENSIVE)[:, None, None]
        tried = (1 - defensive) * promising / promising.sum() + defensive * wanted  # (shares, bins, groups)
        weights = np.divide(wanted, tried, out=np.zeros_like(tried), where=wanted > 0)
        squares = (wanted * weights * rates).sum(axis=(1, 2))
        needed = needed_draws(
            self.plan, self.level, value, np.append(squares, value), np.append(weights.max(axis=(1, 2)), 1.0)
        )
        best = int(needed[:-1].argmin())
        return tried[best], float(needed[best]), float(needed[-1])

    @functools.cached_property
    def _slope_shares(self) -> Floats:
        assert self.cells.by_slope is not None
        return self.cells.group_shares(self.cells.by_slope)

    def slope_rates(self, wanted: Floats) -> Floats:
        """About the rate of flips in each stratum (bins, groups of slopes), whose shares are ``wanted``.

        A stratum with few flips is judged by its bin and its group: their rates alone, and the geometric mean of both.
        """
        total, draws = float(self.flips.sum()), float(self.draws.sum())
        overall = (total + 1) / (draws + 1)
        alone = [
            self._smooth(self.flips.sum(axis=axis), self.draws.sum(axis=axis), wanted.sum(axis=axis), overall)
            for axis in (1, 0)
        ]
        between = np.sqrt(alone[0][:, None] * alone[1])
        between *= (total + 1) / (float((between * self.draws).sum()) + 1)
        expected = between * self.draws
        rates = np.minimum(between * (self.flips + _STRATUM_FLIPS) / (expected + _STRATUM_FLIPS), 1.0)
        return self._with_unseen(rates, float((wanted * rates).sum()), total)

    @staticmethod
    def _with_unseen(rates: Floats, value: float, total: float) -> Floats:
        """Flips that no pilot has seen yet may be anywhere: as many as one or two of those that it has."""
        unseen = _UNSEEN / (total + 2)
        return (1 - unseen) * rates + unseen * value

    def _rates(self) -> tuple[Integers, Floats]:
        """The group of each position, and about the rate of flips in each stratum (bins, groups)."""
        flips, draws, total = self.flips.sum(axis=1), self.draws.sum(axis=1), float(self.flips.sum())
        shares = np.bincount(self.cells.bins, minlength=len(_BIN_ENDS)) / len(self.cells.bins)
        rates = self._smooth(flips, draws, shares, (total + 1) / (draws.sum() + 1))
        expected = rates @ self.draws  # flips at each position, if all positions were alike
        effects = (self.flips.sum(axis=0) + _POSITION_FLIPS) / (expected + _POSITION_FLIPS)
        order = np.argsort(effects, kind="stable")
        ends = np.cumsum(self.cells.position_shares[order])
        groups = np.empty(len(effects), dtype=np.int64)
        groups[order] = np.minimum((ends - 1e-9) * _GROUPS, _GROUPS - 1).astype(np.int64)
        groups = np.unique(groups, return_inverse=True)[1]
        pooled = [np.bincount(groups, weights=part) for part in (self.flips.sum(axis=0), expected)]
        factors = (pooled[0] + _GROUP_FLIPS) / (pooled[1] + _GROUP_FLIPS)
        by_group = np.stack([self.draws[:, groups == group].sum(axis=1) for group in range(len(factors))], axis=1)
        value = float((shares * rates).sum())
        rates = self._smooth(flips, by_group @ factors, shares, value)
        both = np.minimum(rates[:, None] * factors, 1.0)
        return groups, self._with_unseen(both, float(shares @ both.mean(axis=1)), total)

    @staticmethod
    def _smooth(flips: Floats, draws: Floats, shares: Floats, value: float) -> Floats:
        """(bins,) rates that fall with the margin; a bin without draws is judged by its rank."""
        middle = np.cumsum(shares) - shares / 2
        prior = np.where(shares > 0, 1 / np.maximum(middle, 1 / 1024), 0.0)
        prior = prior * value / (shares @ prior)
        with np.errstate(divide="ignore", invalid="ignore"):
            rates = np.where(shares > 0, (flips + _BIN_FLIPS) / (draws + _BIN_FLIPS / prior), 0.0)
        return np.minimum(falling(rates, draws + 1e-9), 1.0)


def needed_draws(plan: Until, level: float, value: float, squares: ArrayLike, largest: ArrayLike) -> Floats:
    """About how many draws meet the rule of ``plan``, by the interval that it will look at, for several proposals.

    Arguments:
        plan, level: the rule, and the level of its interval.
        value: E[w Y].
        squares: (proposals,) E[w^2 Y].
        largest: (proposals,) the largest weight.
    """
    aim = plan.half_width if plan.half_width is not None else (plan.relative or 0.0) * value
    square, most = (np.atleast_1d(each)[:, None] for each in (squares, largest))
    first, last = np.full(square.shape, 64.0), np.full(square.shape, 1e9)
    for _ in range(3):
        n = first * (last / first) ** _STEPS  # (proposals, steps)
        low, high = stopped_weighted(n * value, n * square, most, n, level, is_relative=plan.is_relative)
        is_met = high - low <= 2 * aim
        place = np.where(is_met.any(axis=1), is_met.argmax(axis=1), len(_STEPS) - 1)[:, None]
        first, last = np.take_along_axis(n, np.maximum(place - 1, 0), axis=1), np.take_along_axis(n, place, axis=1)
    return np.where(is_met[:, -1], last[:, 0], np.inf)


def falling(values: Floats, weights: Floats) -> Floats:
    """The nearest sequence that never rises, by weighted least squares (pool adjacent violators).

    >>> falling(np.array([3.0, 1.0, 2.0, 0.0]), np.ones(4)).tolist()
    [3.0, 1.5, 1.5, 0.0]
    """
    pools: list[tuple[float, float, int]] = []  # value, weight, length
    for value, weight in zip(values.tolist(), weights.tolist(), strict=True):
        pool = (value, weight, 1)
        while pools and pools[-1][0] < pool[0]:
            before, mass, length = pools.pop()
            total = mass + pool[1]
            pool = ((before * mass + pool[0] * pool[1]) / total, total, length + pool[2])
        pools.append(pool)
    return np.concatenate([np.full(length, value) for value, _, length in pools])
