"""The loop: take trials from a plan, ask the models, count, look, stop."""

import itertools
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace

import numpy as np

from jostle.errors import FailureError, UsageError
from jostle.estimates.estimate import Estimate
from jostle.estimates.grid_tally import GridTally
from jostle.estimates.support import BINARY, REAL, TERNARY, Support
from jostle.estimates.until_tally import UntilTally
from jostle.intervals import Target
from jostle.progress import Reporter, State
from jostle.sampling import Evaluation, Grid, Plan, Trials, Until

Tally = GridTally | UntilTally
Pair = tuple[int, int]


@dataclass
class Outcome:
    """What a run knows when it ends.

    Arguments:
        singles: one estimate a model.
        pairs: for models a < b, the estimate of (change of a) - (change of b), trial by trial on the same noise.
        stopped: why it ended: ``complete``, ``precision``, ``max_passes``, ``all-inputs-visited`` or ``interrupted``.
    """

    singles: list[Estimate]
    pairs: dict[Pair, Estimate]
    stopped: str


class Run:
    """One pass of a plan over several models.

    Arguments:
        evaluation: the models, inputs, jostle and response.
        plan: which triples, and when to stop.
        level, target: of the intervals; ``target`` is the one a stopping rule looks at.
        seed: of the order and of the choice of triples.
        report: told about progress.
        average: ``macro``, inputs weigh the same, or ``micro``, tokens do.
        pair_level: of the intervals of differences, which decide nothing; ``level`` unless given.
    """

    def __init__(
        self,
        evaluation: Evaluation,
        plan: Plan,
        level: float,
        target: Target,
        seed: int,
        report: Reporter,
        average: str = "macro",
        pair_level: float | None = None,
    ) -> None:
        self.evaluation, self.plan, self.seed, self.report = evaluation, plan, seed, report
        self.level, self.target, self.average = level, target, average
        count = len(evaluation.functions)
        single, paired = (BINARY, TERNARY) if evaluation.response.is_binary else (REAL, REAL)
        self.singles = [self._tally(single, level, decides_alone=count == 1) for _ in range(count)]
        of_pairs = level if pair_level is None else pair_level
        self.pairs = {pair: self._tally(paired, of_pairs, decides_alone=False) for pair in _pairs(count)}

    def go(self) -> Outcome:
        """Run to the end, or to an interruption after which something is known."""
        with ExitStack() as modes:
            for function in self.evaluation.functions:
                modes.enter_context(function.evaluating())
                function.check_steady(self.evaluation.response.describe())
            self.evaluation.check()
            try:
                stopped = self._until(self.plan) if isinstance(self.plan, Until) else self._grid(self.plan)
            except KeyboardInterrupt:
                if not self._has_results():
                    raise
                stopped = "interrupted"
        if stopped == "max_passes" and not self._has_results():
            raise UsageError(f"{self.plan.describe()} ended before a single trial; give a larger max_passes")
        if not self._has_results():
            raise FailureError(
                "nothing could be measured: no trial has a finite response (NaN outputs, or an undefined change)"
            )
        pairs = {pair: self._estimate(tally) for pair, tally in self.pairs.items()}
        return Outcome([self._estimate(tally) for tally in self.singles], pairs, stopped)

    def _estimate(self, tally: Tally) -> Estimate:
        """What a tally knows, and where special tokens are, which only the inputs know."""
        estimate = tally.estimate()
        return replace(estimate, profile=replace(estimate.profile, special=self.evaluation.inputs.special_share))

    def _tally(self, support: Support, level: float, *, decides_alone: bool) -> Tally:
        inputs = self.evaluation.inputs
        if isinstance(self.plan, Until):
            return UntilTally(
                len(inputs),
                inputs.positions,
                self.plan,
                support,
                level,
                self.target,
                decides_alone,
                self.average,
            )
        exact, draws = self.evaluation.perturbation.is_deterministic, self.plan.draws
        return GridTally(len(inputs), inputs.positions, draws, support, level, self.target, exact, average=self.average)

    def _grid(self, plan: Grid) -> str:
        inputs, size, done = self.evaluation.inputs, self.evaluation.batch_size, 0
        order = plan.order(inputs, self.seed)
        for start in range(0, len(order), size):
            chosen = order[start : start + size]
            self.evaluation.prepare(chosen)
            for trials in plan.blocks(inputs, chosen, block=16 * size):
                self._take(trials)
                done += len(np.unique(trials.inputs))
                tallies = [tally for tally in self.singles if isinstance(tally, GridTally)]
                summary = "  ".join(f"{tally.value:.4f} ± {tally.half_width:.4f}" for tally in tallies)
                self.report(State(done / len(inputs), self.evaluation.passes, summary))
        return "complete"

    def _until(self, plan: Until) -> str:
        tallies = [tally for tally in self.singles if isinstance(tally, UntilTally)]
        for start, stop in plan.looks():
            trials = plan.trials(self.evaluation.inputs, self.seed, start, stop, self.average)
            room = plan.max_passes - self.evaluation.passes
            affordable = int(np.searchsorted(self.evaluation.new_passes(trials), room, side="right"))
            self._take(trials[:affordable])
            looked_at = [tally.candidate() for tally in tallies]
            intervals = [(tally.value, look.low, look.high) for tally, look in zip(tallies, looked_at, strict=True)]
            share = min(plan.share_done(*interval) for interval in intervals)
            summary = "  ".join(f"{value:.4f} [{low:.4f}, {high:.4f}]" for value, low, high in intervals)
            self.report(State(share, self.evaluation.passes, summary))
            may_stop = all(tally.may_stop for tally in tallies)
            if may_stop and all(plan.is_met(*interval) for interval in intervals):
                for tally in tallies:
                    tally.settle()
                return "precision"
            if affordable < len(trials):
                return "max_passes"
            if self.target == "population" and tallies[0].has_visited_all:
                return "all-inputs-visited"
        raise AssertionError("looks() is endless")

    def _take(self, trials: Trials) -> None:
        changes = self.evaluation.changes(trials) if len(trials) else np.empty((len(self.singles), 0))
        inputs = self.evaluation.inputs
        trials = Trials(trials.inputs, inputs.profile_positions(trials.inputs, trials.tokens), trials.draws)
        for tally, change in zip(self.singles, changes, strict=True):
            tally.add(trials, change)
        for (a, b), tally in self.pairs.items():
            tally.add(trials, changes[a] - changes[b])

    def _has_results(self) -> bool:
        return all(tally.trials > 0 for tally in self.singles)


def _pairs(count: int) -> Iterator[Pair]:
    return itertools.combinations(range(count), 2)
