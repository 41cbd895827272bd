"""How much time a probe may take: it times the loop and itself, and decides how many passes a measurement may make."""

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from jostle.sampling import Grid, Plan, Until
from jostle.tokens import Inputs

MOST_HALVINGS = 4
_LEAST_PASSES = 256  # below, an interval for flips is wider than 0.1
_PASSES_OF_CHECKS = 48  # in which a measurement checks that the model is steady
_RARE = 0.1  # the share of flips that a relative precision is planned for
_GROWTH = 1.25  # how many times the passes of a measurement the next one may need for the same precision


@dataclass(frozen=True)
class Rung:
    """A plan whose passes were halved.

    Arguments:
        plan: how a measurement samples.
        passes: the most passes that it is expected to make.
        halvings: how many times the passes were halved.
    """

    plan: Plan
    passes: int
    halvings: int


def plan_ladder(plan: Plan, inputs: Inputs, level: float) -> list[Rung]:
    """``plan``, and then the same with its passes halved, up to four times.

    Each halving lets the interval of ``Until`` be wider by a factor of sqrt(2); the sequence of trials is the same.
    With only a smaller ``max_passes`` the interval would be wider still, because it is tuned to be narrow where the
    rule stops. ``Grid`` gets fewer draws: every token of every input is still jostled, so the mean is over the same
    inputs.
    """
    if isinstance(plan, Grid):
        tokens = len(inputs) * inputs.num_tokens if inputs.token_counts is None else int(inputs.token_counts.sum())
        draws = [plan.draws >> halvings for halvings in range(MOST_HALVINGS + 1)]
        return [
            Rung(Grid(number), tokens * number + len(inputs) + _PASSES_OF_CHECKS, halvings)
            for halvings, number in enumerate(draws)
            if number
        ]
    trials = float(plan.horizon(np.asarray([_RARE if plan.half_width is None else 0.5]), level)[0])
    most = min(plan.max_passes, int(trials + min(trials, len(inputs))) + _PASSES_OF_CHECKS)
    halved = [most >> halvings for halvings in range(1, MOST_HALVINGS + 1)]
    smaller = [passes for passes in halved if passes >= _LEAST_PASSES]
    rungs = [Rung(_widen(plan, times, passes), passes, times) for times, passes in enumerate(smaller, start=1)]
    return [Rung(plan, most, 0), *rungs]


def _widen(plan: Until, halvings: int, passes: int) -> Until:
    """``plan`` for an interval that is wider by sqrt(2) for each halving."""
    times = 2 ** (halvings / 2)
    half_width, relative = (None if width is None else width * times for width in (plan.half_width, plan.relative))
    return replace(plan, half_width=half_width, relative=relative, max_passes=passes)


@dataclass(frozen=True)
class Allowance:
    """What the next measurement may do.

    Arguments:
        plan: how it samples; None to skip it.
        halvings: how many times its passes were halved.
        note: why it may do less than the full plan; empty if it may do all of it.
    """

    plan: Plan | None
    halvings: int
    note: str


class Budget:
    """Times the loop and the probe, and keeps the time of the probe within a share of the time of the loop.

        seconds of the probe <= share * seconds of the loop without the probe

    The first measurement is an exception: nothing is timed yet, so it makes the fewest passes of the ladder.

    Arguments:
        share: in (0, 1], or None for no limit.
        clock: a function to seconds since some fixed time.
    """

    def __init__(self, share: float | None, clock: Callable[[], float] = time.perf_counter) -> None:
        self.share, self.clock = share, clock
        self.training_seconds, self._finished = 0.0, 0.0
        self._mark: float | None = None
        self._is_measuring = False
        self._per_pass: float | None = None
        self._rest = 0.0
        self._expected: float = np.inf

    @property
    def probe_seconds(self) -> float:
        """Seconds of the probe so far, including a measurement that is under way."""
        under_way = self.clock() - self._mark if self._is_measuring and self._mark is not None else 0.0
        return self._finished + under_way

    def start(self) -> None:
        """Start to count the time of the loop, if that has not been done."""
        if self._mark is None:
            self._mark = self.clock()

    def restore(self, training_seconds: float, probe_seconds: float) -> None:
        """Continue from the times of an earlier process."""
        self.training_seconds, self._finished = training_seconds, probe_seconds

    @contextlib.contextmanager
    def measuring(self) -> Iterator[None]:
        """Count the time inside as the probe's."""
        now = self.clock()
        self.training_seconds += now - (self._mark if self._mark is not None else now)
        self._mark, self._is_measuring = now, True
        try:
            yield
        finally:
            now = self.clock()
            self._finished += now - self._mark
            self._mark, self._is_measuring = now, False

    def learn(self, passes: int, seconds: float, rest: float, *, is_precise: bool) -> None:
        """Learn from a measurement how long the next one will take.

        Arguments:
            passes: how many passes it made.
            seconds: how long these passes took.
            rest: seconds for everything that does not depend on the passes: accuracy, further measures.
            is_precise: whether it ended because its interval was narrow enough.
        """
        self._per_pass, self._rest = max(seconds / passes, 1e-9), rest
        self._expected = _GROWTH * passes if is_precise else np.inf

    def choose(self, rungs: Sequence[Rung]) -> Allowance:
        """The first rung, with the most passes, that there is time for."""
        if self.share is None:
            return Allowance(rungs[0].plan, 0, "")
        last = rungs[-1]
        if self._per_pass is None:
            why = f"{_halved(last)}: the first measurement, for which nothing is timed yet"
            return Allowance(last.plan, last.halvings, why if last.halvings else "")
        left = self.share * self.training_seconds - self._finished
        allowed = int((left - self._rest) / self._per_pass)
        for rung in rungs:
            expected = rung.passes if rung.halvings else min(rung.passes, self._expected)
            if expected <= allowed:
                return self._allow(rung, rungs[0], allowed, left)
        needed = self._seconds(min(last.passes, self._expected))
        return Allowance(None, 0, f"skipped: {needed:.3g} s are needed at least, {self._left(left)}")

    def _allow(self, rung: Rung, full: Rung, allowed: int, left: float) -> Allowance:
        if rung.halvings:
            needed = self._seconds(min(full.passes, self._expected))
            return Allowance(
                rung.plan, rung.halvings, f"{_halved(rung)}: {needed:.3g} s are needed, {self._left(left)}"
            )
        if isinstance(rung.plan, Grid) or rung.plan.max_passes <= allowed:
            return Allowance(rung.plan, 0, "")
        # If it needs more passes than expected, it must not take more time than is left.
        return Allowance(replace(rung.plan, max_passes=allowed), 0, f"ended at {allowed:,} passes: {self._left(left)}")

    def _seconds(self, passes: float) -> float:
        return self._rest + passes * (self._per_pass or 0.0)

    def _left(self, left: float) -> str:
        return f"{max(left, 0.0):.3g} s are left of {self.share:.3g} of {self.training_seconds:.3g} s of training"


def _halved(rung: Rung) -> str:
    times = "once" if rung.halvings == 1 else f"{rung.halvings} times"
    return f"passes halved {times}, to {rung.passes:,}"
