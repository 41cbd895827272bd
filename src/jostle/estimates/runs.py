"""The measuring loop: take trials from a plan, ask the models, count, look, stop.

``GridRun`` and ``UntilRun`` are the loops of the two plans. What is counted is in ``tallies`` and ``draws``.
"""

import functools
import itertools
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from typing import Generic, TypeVar

import numpy as np

from jostle.base.errors import FailureError, UsageError
from jostle.base.progress import Reporter, State
from jostle.estimates.adaptation import Adaptation
from jostle.estimates.draws import DrawTally, UntilTally
from jostle.estimates.request import Request
from jostle.estimates.samples import TrialRecorder
from jostle.estimates.tallies import BINARY, REAL, TERNARY, GridTally, Support
from jostle.sampling import Changes, Grid, TrialEvaluation, Trials, Until
from jostle.sampling.plans import Integers

AnyPlan = TypeVar("AnyPlan", Grid, Until)
AnyTally = TypeVar("AnyTally", GridTally, DrawTally)

_GRID_TRIALS = 2**12  # of a grid that are evaluated together
_GRID_AHEAD = 2**15  # trials of a grid that a crew is given at a time
_LEAST_AHEAD, _MOST_AHEAD = 256, 2**13  # draws beyond the next look that are evaluated together
_TIMES_AHEAD = 3
_TOKENS_AHEAD = 2**10  # in units of the tokens that take as long as a batch
_BEFORE = "no estimate yet"  # what progress says before the first trials are counted
_VISITS = 3.0  # draws an input that are still to come, or more: all clean inputs are asked about at once


class Run(ABC, Generic[AnyPlan, AnyTally]):
    """One pass of a plan over several models, which all see the same trials.

    Arguments:
        plan: which trials, and when to stop.
        request, evaluation, report, pair_level: as for ``make_run``.

    Attributes:
        singles: what is counted of each model.
        pairs: for models a < b, what is counted of (change of a) - (change of b), trial by trial on the same noise.
        recorder: takes all trials that are counted, if single inputs and tokens are of interest.
        stopped: why it ended: ``complete``, ``precision``, ``max_passes``, ``all-inputs-visited`` or ``interrupted``.
    """

    def __init__(
        self,
        request: Request,
        plan: AnyPlan,
        evaluation: TrialEvaluation,
        report: Reporter,
        pair_level: float | None = None,
    ) -> None:
        self.request, self.evaluation, self.report = request, evaluation, report
        self.plan: AnyPlan = plan
        self.inputs, self.stopped = evaluation.inputs, ""
        self.recorder: TrialRecorder | None = None
        single, paired = (BINARY, TERNARY) if request.response.is_binary else (REAL, REAL)
        count, level = len(evaluation.functions), request.level if pair_level is None else pair_level
        self.singles: list[AnyTally] = [self.tally(single, request.level) for _ in range(count)]
        self.pairs: dict[tuple[int, int], AnyTally] = {
            pair: self.tally(paired, level) for pair in itertools.combinations(range(count), 2)
        }

    @abstractmethod
    def tally(self, support: Support, level: float) -> AnyTally:
        """An empty tally of changes that take these values."""

    @abstractmethod
    def loop(self) -> str:
        """Take trials until the plan ends; returns why it ended."""

    def go(self) -> None:
        """Run to the end, or to Ctrl-C if there are results by then."""
        with ExitStack() as modes:
            try:
                for function in self.evaluation.functions:
                    modes.enter_context(function.evaluating())
                    function.check_steady(self.request.response)
                self.evaluation.check()
                self.evaluation.choose_batches()
                self.evaluation.staff.open()
                self.stopped = self.loop()
            except KeyboardInterrupt:
                if not self.has_results:
                    raise KeyboardInterrupt("before the first draws were done: nothing is known yet") from None
                self.stopped = "interrupted"
        if not self.has_results:
            raise FailureError(
                "nothing could be measured: no trial has a finite response (NaN outputs, or an undefined change)"
            )

    @property
    def has_results(self) -> bool:
        """Whether every model has a trial with a finite response."""
        return all(tally.trials > 0 for tally in self.singles)

    def count(self, trials: Trials, changes: Changes) -> None:
        """Count the changes (models, trials) of every model and of every pair of models."""
        if self.recorder is not None:
            self.recorder.add(trials, changes)
        positions = self.inputs.profile_positions(trials.inputs, trials.tokens)
        trials = replace(trials, tokens=positions)
        for tally, change in zip(self.singles, changes, strict=True):
            tally.add(trials, change)
        for (a, b), tally in self.pairs.items():
            tally.add(trials, changes[a] - changes[b])


class GridRun(Run[Grid, GridTally]):
    """Every token of every input, a fixed number of draws each."""

    def tally(self, support: Support, level: float) -> GridTally:
        """An empty tally of a grid."""
        return GridTally(self.request, self.plan, self.inputs, support, level)

    def loop(self) -> str:
        """Go through the inputs in a random order: clean passes of some of them, then all their trials."""
        done, summary = 0, _BEFORE

        def tell() -> None:
            if done:
                self.evaluation.staff.watch(done / len(self.inputs))
            self.report(State(done / len(self.inputs), self.evaluation.passes, summary))

        for groups in self._groups(self.plan.order(self.inputs, self.request.seed)):
            if self.inputs.items is None:
                self.evaluation.prepare(*groups, tell=tell)
            blocks = [block for chosen in groups for block in self.plan.blocks(self.inputs, chosen, _GRID_TRIALS)]
            for trials, changes in zip(blocks, self.evaluation.changes_of(blocks, tell), strict=True):
                self.count(trials, changes)
                done += len(np.unique(trials.inputs))
                summary = "  ".join(f"{tally.value:.4f} ± {tally.half_width:.4f}" for tally in self.singles)
                tell()
        return "complete"

    def _groups(self, order: Integers) -> Iterator[list[Integers]]:
        """Inputs in the order of their visits, in groups that have their clean passes in one batch.

        One group at a time in this process, so that Ctrl-C loses little; for a crew, enough groups to keep it busy.
        """
        size, done = self.evaluation.batching.batch_size, 0
        ahead = max(1, _GRID_AHEAD // (size * self.inputs.num_tokens * self.plan.draws))
        groups = [order[start : start + size] for start in range(0, len(order), size)]
        while done < len(groups):
            count = 1 if self.evaluation.staff.crew is None else ahead
            yield groups[done : done + count]
            done += count


class UntilRun(Run[Until, DrawTally]):
    """Random (input, token, draw) until every model's interval is narrow enough."""

    # Of the draws that are counted; an interval for every batch that is asked took a tenth of the time of a free model.
    _share, _summary = 0.0, _BEFORE

    def tally(self, support: Support, level: float) -> DrawTally:
        """An empty tally of random draws."""
        return UntilTally(self.request, self.plan, self.inputs, support, level)

    def loop(self) -> str:
        """Draw up to some look ahead, ask, look at the intervals in turn, and stop where the plan says so.

        Draws are uniform, until ``Adaptation`` proposes to go on with others.
        """
        request, done, stopped = self.request, 0, ""
        draw = functools.partial(self.plan.trials, self.inputs, request.seed, average=request.average)
        while not stopped:
            looks = self._looks_ahead(done)
            stopped = self._advance(draw(done, int(looks[-1])), looks - done)
            done = int(looks[-1])
            proposed = None if stopped else self._adaptation.propose(self.singles[0], self._ask)
            if proposed is not None:
                self.singles = [proposed]
                draw, done = functools.partial(proposed.proposal.trials, request.seed), 0
        return stopped

    @property
    def _deciding(self) -> list[DrawTally]:
        """The tallies that must all meet the stopping rule: of single models, or of differences if those decide."""
        return list(self.pairs.values()) if self.plan.decided else self.singles

    @functools.cached_property
    def _adaptation(self) -> Adaptation:
        return Adaptation(self.request, self.plan, self.evaluation)

    def _ask(self, trials: Trials) -> Changes | None:
        """The changes of trials that are not counted; None if there are too few passes left for them."""
        if self.evaluation.new_passes(trials)[-1] > self.plan.max_passes - self.evaluation.passes:
            return None
        return self.evaluation.changes(trials, self._tell)

    def _looks_ahead(self, done: int) -> Integers:
        """The next looks, whose draws are evaluated together: full batches, and hardly any draw beyond the stop.

        They reach as far as the rule will surely not be met, at most three times the draws so far (which Ctrl-C may
        lose), at most 8,192, and not beyond the next thought of a pilot. This depends on the draws and the model alone,
        so passes are the same in every run.
        """
        ahead = max(tally.draws_left() for tally in self._deciding)
        if self.inputs.items is None and ahead >= _VISITS * len(self.inputs):
            self._prepare_all()
        self.evaluation.expect(max(done + min(ahead, self.plan.max_passes), self.evaluation.expected))
        if self.request.target == "population":
            ahead = min(ahead, self.singles[0].unvisited)  # sampling ends when the last of them has been visited
        limit = done + min(ahead, max(self._least_ahead, _TIMES_AHEAD * done), _MOST_AHEAD)
        limit = min(limit, max(self._adaptation.next_thought, done))
        stops = [stop for _, stop in itertools.takewhile(lambda look: look[1] <= limit, self.plan.looks(done))]
        return np.asarray(stops or [next(self.plan.looks(done))[1]], dtype=np.int64)

    @property
    def _least_ahead(self) -> float:
        """How many draws are evaluated together, if so many are surely needed: of texts, about a second's work.

        What a small model takes for 256 texts of 10 to 64 tokens is to a fifth batches and padding, for 1,024 to a
        tenth, for 6,000 to a twentieth. A large model hardly gains, and takes far longer than a second for so many.
        """
        if self.inputs.padding is None:
            return _LEAST_AHEAD
        tokens = _TOKENS_AHEAD * self.evaluation.batching.free_padding
        return max(_LEAST_AHEAD, tokens / float(self.inputs.padding.lengths.mean()))

    def _prepare_all(self) -> None:
        """Ask about all clean inputs at once, in full batches: hardly any of them would not be drawn."""
        everything = np.arange(len(self.inputs))
        if self.evaluation.unasked and 2 * self.evaluation.unasked < self.plan.max_passes - self.evaluation.passes:
            self.evaluation.prepare(everything, tell=self._tell)

    def _advance(self, trials: Trials, ends: Integers) -> str:
        """Ask about these trials and count them up to the look that stops; returns why sampling ended, if it did.

        Arguments:
            trials: the next ones.
            ends: how many of them there are at each look.
        """
        room = self.plan.max_passes - self.evaluation.passes
        affordable = int(np.searchsorted(self.evaluation.new_passes(trials), room, side="right"))
        if not affordable:
            return self._out_of_passes()
        asked, looks = trials[:affordable], np.append(ends[ends < affordable], affordable)
        changes = self.evaluation.changes(asked, self._tell)
        is_met, is_last = self._looked(asked, changes, looks)
        stops = np.flatnonzero(is_met | is_last)
        size = int(looks[stops[0]]) if len(stops) else affordable
        self.evaluation.nonfinite -= np.isnan(changes[:, size:]).sum(axis=1)  # what was asked too much is not counted
        self.count(asked[:size], changes[:, :size])
        self._share, self._summary = self._so_far()
        self._adaptation.watch(asked[:size], changes[:, :size])
        self._tell()
        if len(stops) and is_met[stops[0]]:
            for tally in (*self.singles, *self.pairs.values()):
                tally.settle()
            return "decided" if self.plan.decided else "precision"
        if len(stops):
            return "all-inputs-visited"
        return "" if affordable == len(trials) else self._out_of_passes()

    def _looked(self, trials: Trials, changes: Changes, looks: Integers) -> tuple[np.ndarray, np.ndarray]:
        """(looks,) twice: whether all intervals are narrow enough, and whether more draws could not improve them."""
        told = [changes[a] - changes[b] for a, b in self.pairs] if self.plan.decided else changes
        is_met = np.logical_and.reduce(
            [tally.met(trials, change, looks) for tally, change in zip(self._deciding, told, strict=True)]
        )
        if self.request.target == "dataset":
            return is_met, np.zeros(len(looks), dtype=bool)
        return is_met, self.singles[0].visits_all(trials, changes[0], looks)

    def _so_far(self) -> tuple[float, str]:
        """About which share of the draws is done, and the estimates in words."""
        if not self.has_results:
            return 0.0, _BEFORE
        looks = [(tally.value, look.low, look.high) for tally in self._deciding for look in (tally.candidate(),)]
        share = 0.0 if self.plan.decided else min(self.plan.share_done(*look) for look in looks)
        return share, "  ".join(f"{value:.4f} [{low:.4f}, {high:.4f}]" for value, low, high in looks)

    def _tell(self) -> None:
        """Tell the reporter how far the draws that are counted have come, also before the first of them.

        A slow model takes long until then, and silence would look like a hang.
        """
        if self.has_results:
            self.evaluation.staff.watch(self._share)
        self.report(State(self._share, self.evaluation.passes, self._summary))

    def _out_of_passes(self) -> str:
        if not self.has_results and not self.evaluation.nonfinite.any():
            raise UsageError(f"{self.plan.describe()} ended before a single trial; give a larger max_passes")
        return "max_passes"
