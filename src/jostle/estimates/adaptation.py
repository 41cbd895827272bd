"""When to leave uniform draws, and for which proposal: a pilot predicts what that saves, see ``sampling.adaptive``.

``Adaptation`` watches the uniform draws of one model. Once they promise a long measurement, it spends at most 4 % of
the passes that uniform draws are expected to take on a pilot: it asks about all clean inputs, which uniform draws would
mostly have asked about anyway, and draws where margins and positions promise flips. Where that is cheap in comparison,
it also asks how steep margins are along each token, see ``sampling.slopes``, which tells much better where flips are.
Slopes and pilots share what may be spent, so that all of it together is at most 5 % if it leads to nothing.
If the pilot predicts that draws of a fixed proposal meet the stopping rule with at most three quarters of the uniform
draws that are left, sampling goes on with that proposal, from fresh draws. Otherwise it stays uniform, as if nothing
had happened, and thinks again when it knows twice as many draws.
"""

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from jostle.estimates.draws import CALIBRATED, DrawTally, UntilTally
from jostle.estimates.request import Request
from jostle.estimates.result import Floats
from jostle.estimates.weighted import WeightedTally
from jostle.sampling import Changes, TrialEvaluation, Trials, Until
from jostle.sampling.adaptive import DEFENSIVE, Cells, Forecast, Pilot, needed_draws

_FIRST = 1024  # uniform draws before the first thought of a pilot
_PATIENCE = 4096  # uniform draws before a pilot without slopes, if some more flips would tell whether they are cheap
_SOONER = 1.4  # times the draws until the next thought, if slopes are known
_BUDGET = 0.04  # of the passes of uniform draws, for pilots that may lead to nothing
_LEAST = 512  # draws of a pilot
_WORTH = 0.75  # draws of a proposal over uniform draws, at most
_SOME, _FEW, _MANY = 12, 30, 100  # flips: enough to see a large gain, to see that there is none, to fix a proposal by
_PILOT_SHARE = 0.12  # of the draws of the proposal, for its pilot
_SLACK = 1.2  # draws of a proposal may be so many times those predicted
_NOTHING = 1e-6  # what a flip weighs that costs the interval nothing
_SLOPE_BUDGET = 0.05  # of the passes of uniform draws, for slopes and pilots together
_SLOPE_ROOM = 0.1  # of the passes that are allowed
_SLOPE_SHARE = 0.12  # of the draws of a proposal by margins and positions, for slopes that will make it better

Ask = Callable[[Trials], Changes | None]


class Adaptation:
    """Decides between uniform draws and a proposal, for one measurement; a note in the result says how.

    Arguments:
        request, plan: what is asked, and the stopping rule.
        evaluation: of the model.
    """

    def __init__(self, request: Request, plan: Until, evaluation: TrialEvaluation) -> None:
        self.request, self.plan, self.evaluation = request, plan, evaluation
        self._note = ""
        is_calibrated = CALIBRATED[0] <= request.level <= CALIBRATED[1]
        is_one = len(evaluation.functions) == 1 and request.target == "dataset"
        self._is_open = plan.adaptive and is_one and is_calibrated and request.response.is_binary
        self._seen: list[tuple[Trials, Floats]] = []  # uniform draws that the pilot does not know yet
        self._known: list[tuple[Trials, Floats]] = []  # draws that it knows
        self._pilot: Pilot | None = None
        self._asks_slopes = True
        self._next, self._spent, self._paid = _FIRST, 0, 0.0  # draws of pilots, passes of slopes

    @property
    def next_thought(self) -> float:
        """After how many uniform draws a pilot is thought about next; infinity if never."""
        return self._next if self._is_open else math.inf

    def watch(self, trials: Trials, changes: Changes) -> None:
        """Remember uniform draws while they may matter."""
        self._seen = [*self._seen, (trials, changes[0])] if self._is_open else []

    def propose(self, tally: DrawTally, ask: Ask) -> WeightedTally | None:
        """The tally of a proposal to go on with; None to stay uniform for now."""
        if not self._is_open or not isinstance(tally, UntilTally) or tally.trials < self._next:
            return None
        # With slopes, a thought costs no passes: what is known of all draws so far may do.
        self._next = int((_SOONER if self._paid else 2) * tally.trials)
        self._is_open = self.evaluation.knows_margins and not self._is_hopeless(tally)
        budget = self._budget(tally)
        flips = tally.value * tally.trials
        can_ask = self._is_open and self._can_ask(flips + math.sqrt(flips) + 0.5, tally)
        if self._is_open and flips < _SOME and tally.trials < _PATIENCE and self._waits(flips, tally):
            return None
        if (
            not self._is_open
            or (budget < _LEAST and not can_ask and self._pilot is None)
            or not np.isfinite(np.concatenate([changes for _, changes in self._seen])).all()
        ):
            self._is_open = self._is_open and budget > 0
            return None
        forecast = self._explore(tally, budget, ask, can_ask=can_ask)
        if forecast is None:
            return None
        self._is_open, self._seen, self._known = False, [], []
        self._tell(
            f"sampled adaptively: after {tally.trials:,} uniform draws and a pilot of {self._spent:,}, inputs with a "
            f"small margin and {self._where} were drawn more often, and their flips count less; predicted to take "
            f"{forecast.draws / max(forecast.uniform - tally.trials, 1.0):.2f} of the uniform draws that were left"
        )
        return WeightedTally(tally, forecast.proposal)

    def _budget(self, tally: UntilTally) -> float:
        """How many more draws a pilot may take; 0 if uniform draws will be through soon."""
        flips, draws = tally.value * tally.trials, tally.trials
        likely = (flips + 1.5 * math.sqrt(flips) + 2) / draws  # rather too many: the rule is then met sooner
        left = self._left(likely, tally)
        if left < 2 * draws:
            return 0.0
        unasked = self.evaluation.unasked
        extra = unasked * math.exp(-left / len(self.evaluation.inputs))  # uniform draws would not ask about them
        room = self.plan.max_passes - self.evaluation.passes - unasked
        return min(_BUDGET * left - extra - self._spent - self._paid, 0.25 * room)

    def _is_hopeless(self, tally: UntilTally) -> bool:
        """Whether no proposal at all could meet the rule with the passes that are left, so that a pilot is for nothing.

        It could not if it would take too many draws even with flips that weigh next to nothing.
        """
        flips = tally.value * tally.trials
        rate = min((flips + 1.5 * math.sqrt(flips) + 2) / tally.trials, 1.0)
        least = needed_draws(self.plan, self.request.level, rate, _NOTHING * rate, 1 / DEFENSIVE[-1])
        return bool(least[0] > self.plan.max_passes - self.evaluation.passes)

    def _can_ask(self, flips: float, tally: UntilTally) -> bool:
        """Whether slopes cost little in comparison with uniform draws, whatever they save, if this many flips are due.

        Arguments:
            flips: among the draws so far.
            tally: of these draws.
        """
        price = self._price + self.evaluation.unasked
        if not self._asks_slopes or price > _SLOPE_ROOM * (self.plan.max_passes - self.evaluation.passes):
            return False
        return price + self._spent <= _SLOPE_BUDGET * self._left(flips / tally.trials, tally)

    def _waits(self, flips: float, tally: UntilTally) -> bool:
        """Whether a few more flips will tell if slopes can be asked for; a pilot without them would spend their price.

        If flips are so rare that slopes can be asked for in any case, there is nothing to wait for.
        """
        doubt = 1.5 * math.sqrt(flips)
        can, may = (self._can_ask(count, tally) for count in (flips + doubt + 2, max(flips - doubt, 0.5)))
        return may and not can

    def _left(self, rate: float, tally: UntilTally) -> float:
        """How many more uniform draws it takes if flips have this rate."""
        rate = min(rate, 1.0)
        return float(needed_draws(self.plan, self.request.level, rate, rate, 1.0)[0]) - tally.trials

    @property
    def _price(self) -> float:
        """How many passes slopes take."""
        return self.evaluation.price_of_slopes

    @property
    def _where(self) -> str:
        """Which tokens are drawn more often."""
        is_steep = self._pilot is not None and self._pilot.cells.by_slope is not None
        return "tokens along which it is steep" if is_steep else "sensitive positions"

    def _ask_slopes(self) -> None:
        """Have the pilot know the slopes of margins, if the model tells them."""
        price, self._asks_slopes = self._price, False
        slopes = self.evaluation.slopes()
        if slopes is not None:
            self._paid = price
            self._make_pilot(slopes)

    def _make_pilot(self, slopes: NDArray[np.float32] | None = None) -> Pilot:
        """A pilot that knows all draws so far."""
        cells = Cells(self.evaluation.inputs, self.evaluation.margins(), self.request.average, slopes)
        self._pilot = Pilot(cells, self.plan, self.request.level)
        for trials, changes in self._known:
            self._pilot.add(trials, changes)
        return self._pilot

    def _explore(self, tally: UntilTally, budget: float, ask: Ask, *, can_ask: bool) -> Forecast | None:
        """Draw pilots until it is clear whether a proposal pays; its forecast if it does."""
        if self._pilot is None:
            self.evaluation.prepare(np.arange(len(self.evaluation.inputs)))
            self._make_pilot()
        while self._seen:
            self._add(*self._seen.pop())
        until = self._spent + self._paid + budget
        if can_ask:
            self._ask_slopes()
        while True:
            assert self._pilot is not None
            forecast = self._pilot.forecast("pilot")
            room = self.plan.max_passes - self.evaluation.passes
            has_gain = forecast.draws <= _WORTH * (forecast.uniform - tally.trials)
            has_room = forecast.draws * _SLACK <= room  # forecasts by few flips are too large: it may have room later
            flips = self._pilot.flips.sum()
            price = self._price if self._asks_slopes and has_gain and has_room and flips >= _SOME else math.inf
            if price <= min(_SLOPE_SHARE * forecast.draws, 0.5 * room):
                self._ask_slopes()
                continue
            if flips >= _FEW and not has_gain:
                self._stay("predicted that other draws would save too little")
                return None
            has_gain &= bool(flips >= _SOME)
            if has_gain and has_room and (flips >= _MANY or self._spent >= _PILOT_SHARE * forecast.draws):
                return self._pilot.forecast("main")
            size = max(_LEAST, self._spent // 2)
            is_known = flips >= _MANY  # more would hardly change the forecast, and pilots are not counted
            if not (has_gain and has_room) and (is_known or self._spent + self._paid + size > until):
                self._stay("saw no room for a gain" if has_gain else "saw too few flips to predict a gain")
                return None
            trials = forecast.proposal.trials(self.request.seed, self._spent, self._spent + size)
            changes = ask(trials)
            if changes is None or not np.isfinite(changes).all():
                self._is_open = False
                return None
            self._spent += size
            self._add(trials, changes[0])

    def _add(self, trials: Trials, changes: Floats) -> None:
        """Have the pilot know these draws."""
        assert self._pilot is not None
        self._pilot.add(trials, changes)
        self._known.append((trials, changes))

    def _stay(self, reason: str) -> None:
        """Note that draws stay uniform for now: a flip where none was due, early on, may hide what can be saved.

        The next thought knows more draws, and costs no passes unless it sees a gain.
        """
        who = f"a pilot of {self._spent:,}" if self._spent else "the first draws"
        self._tell(f"draws stayed uniform: {who} {reason}")

    def _tell(self, note: str) -> None:
        """Put a note about the draws into the result, in the place of an earlier one."""
        notes = self.evaluation.functions[0].notes
        if self._note in notes:
            notes.remove(self._note)
        notes.append(note)
        self._note = note
