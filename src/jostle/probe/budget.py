"""How much a probe may cost: the time of the loop, its own time, and how many passes the next measurement gets."""

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from jostle.sampling import Grid, Plan, Until
from jostle.tokens import Inputs

MOST_HALVINGS = 4
_LEAST_PASSES = 256  # below, an interval for flips is wider than 0.1
_CHECKED = 48  # passes with which a measurement checks that the model is steady
_RARE = 0.1  # the share of flips for which a relative precision is planned
_GROWTH = 1.25  # how many more passes the same precision may need at the next measurement


@dataclass(frozen=True)
class Rung:
    """A plan with its passes halved so often, and how many passes it is expected to make at most."""

    plan: Plan
    passes: int
    halvings: int


def ladder(plan: Plan, inputs: Inputs, level: float) -> list[Rung]:
    """``plan``, then the same with its passes halved, up to four times.

    ``Until`` then asks for an interval wider by a factor of sqrt(2) each time, from the same sequence of trials. With
    only a smaller ``max_passes`` the interval would be wider still: it is made to be narrow where the rule stops.
    ``Grid`` gets fewer draws: every token of every input is still jostled, so that the mean is over the same inputs.
    """
    if isinstance(plan, Grid):
        cells = len(inputs) * inputs.num_tokens if inputs.token_counts is None else int(inputs.token_counts.sum())
        draws = [plan.draws >> halvings for halvings in range(MOST_HALVINGS + 1)]
        return [
            Rung(Grid(number), cells * number + len(inputs) + _CHECKED, halvings)
            for halvings, number in enumerate(draws)
            if number
        ]
    trials = float(plan.horizon(np.asarray([_RARE if plan.half_width is None else 0.5]), level)[0])
    most = min(plan.max_passes, int(trials + min(trials, len(inputs))) + _CHECKED)
    halved = [most >> halvings for halvings in range(1, MOST_HALVINGS + 1)]
    smaller = [passes for passes in halved if passes >= _LEAST_PASSES]
    rungs = [Rung(_wider(plan, times, passes), passes, times) for times, passes in enumerate(smaller, start=1)]
    return [Rung(plan, most, 0), *rungs]


def _wider(plan: Until, halvings: int, passes: int) -> Until:
    widths = {"half_width": plan.half_width, "relative": plan.relative}
    wider = {key: None if width is None else width * 2 ** (halvings / 2) for key, width in widths.items()}
    return Until(**wider, max_passes=passes)


@dataclass(frozen=True)
class Choice:
    """What the next measurement may do.

    Arguments:
        plan: how it samples; None to skip it.
        halvings: how often its passes were halved.
        note: why it may be less than was asked for; empty if it is not.
    """

    plan: Plan | None
    halvings: int
    note: str


class Budget:
    """Times the loop and the probe, and keeps the second within a share of the first.

        seconds of the probe <= share * seconds of the loop without the probe

    up to the first measurement, which nothing is known for: it makes the fewest passes there are.

    Arguments:
        share: in (0, 1], or None for no limit.
        clock: seconds since any fixed time.
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
        """Seconds of the probe so far, those of a measurement under way included."""
        under_way = self.clock() - self._mark if self._is_measuring and self._mark is not None else 0.0
        return self._finished + under_way

    def start(self) -> None:
        """The loop runs: from now on its time counts."""
        if self._mark is None:
            self._mark = self.clock()

    def restore(self, training_seconds: float, probe_seconds: float) -> None:
        """Go on from the times of an earlier process."""
        self.training_seconds, self._finished = training_seconds, probe_seconds

    @contextlib.contextmanager
    def measuring(self) -> Iterator[None]:
        """Time inside is the probe's."""
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
        """A measurement took so long.

        Arguments:
            passes: it made.
            seconds: for these.
            rest: seconds for what does not depend on the passes: accuracy, further measures.
            is_precise: whether it ended because its interval was narrow enough.
        """
        self._per_pass, self._rest = max(seconds / passes, 1e-9), rest
        self._expected = _GROWTH * passes if is_precise else np.inf

    def choose(self, rungs: Sequence[Rung]) -> Choice:
        """The highest rung that can be paid for."""
        if self.share is None:
            return Choice(rungs[0].plan, 0, "")
        last = rungs[-1]
        if self._per_pass is None:
            why = f"{_halved(last)}: the first measurement, for which nothing is timed yet"
            return Choice(last.plan, last.halvings, why if last.halvings else "")
        left = self.share * self.training_seconds - self._finished
        allowed = int((left - self._rest) / self._per_pass)
        for rung in rungs:
            expected = rung.passes if rung.halvings else min(rung.passes, self._expected)
            if expected <= allowed:
                return self._chosen(rung, rungs[0], allowed, left)
        needed = self._seconds(min(last.passes, self._expected))
        return Choice(None, 0, f"skipped: {needed:.3g} s are needed at least, {self._left(left)}")

    def _chosen(self, rung: Rung, full: Rung, allowed: int, left: float) -> Choice:
        if rung.halvings:
            needed = self._seconds(min(full.passes, self._expected))
            return Choice(rung.plan, rung.halvings, f"{_halved(rung)}: {needed:.3g} s are needed, {self._left(left)}")
        if isinstance(rung.plan, Grid) or rung.plan.max_passes <= allowed:
            return Choice(rung.plan, 0, "")
        # More passes than expected must not cost more than is left.
        return Choice(replace(rung.plan, max_passes=allowed), 0, f"ended at {allowed:,} passes: {self._left(left)}")

    def _seconds(self, passes: float) -> float:
        return self._rest + passes * (self._per_pass or 0.0)

    def _left(self, left: float) -> str:
        return f"{max(left, 0.0):.3g} s are left of {self.share:.3g} of {self.training_seconds:.3g} s of training"


def _halved(rung: Rung) -> str:
    times = "once" if rung.halvings == 1 else f"{rung.halvings} times"
    return f"passes halved {times}, to {rung.passes:,}"
