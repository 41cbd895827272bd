"""One look at a model in training: whether to measure, the measurement itself, and where its numbers go."""

import datetime
import math
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from jostle.errors import FailureError, JostleError
from jostle.estimates import JostleWarning
from jostle.probe.budget import Budget, Choice, ladder
from jostle.probe.log import ProbeLog
from jostle.probe.measures import Measure, numbers_of
from jostle.probe.question import Question
from jostle.probe.trackers import Sender
from jostle.probe.untouched import untouched
from jostle.probe.watched import device_of, fingerprint, is_main_process, unwrapped, wait_for, weight_norm
from jostle.provenance import provenance
from jostle.results import Record
from jostle.sampling import Plan, Until

Model = Callable[..., Any]
Numbers = dict[str, float]


@dataclass
class Looking:
    """Asks a question of a model now and then, within a budget.

    Arguments:
        question: what is measured.
        measures: what else is asked, by name.
        budget: how much time there is.
        log: where rows go, and those of an earlier process are.
        senders: where numbers also go.
        choices: what the log says beside its definition: how often, within which share.
        name: how messages call the model.
    """

    question: Question
    measures: dict[str, Measure]
    budget: Budget
    log: ProbeLog
    senders: list[Sender]
    choices: Mapping[str, Any]
    name: str

    def __post_init__(self) -> None:
        self._definition = {**self.question.describe(), "measures": sorted(self.measures)}
        self.log.check(self._definition)
        self._rungs = ladder(self.question.plan, self.question.inputs, self.question.level)
        self._has_measured = False
        self._restore_times()

    def look(self, model: Model, step: int, *, is_forced: bool) -> Numbers | None:
        """The numbers of ``model`` at ``step``, None if there are none.

        Arguments:
            is_forced: measure in full, whatever it costs.
        """
        model = unwrapped(model)
        if not is_main_process():
            return None
        wait_for(model)
        with self.budget.measuring():
            weights, known = fingerprint(model), self.log.row(step)
            if known is not None and known["weights"] == weights:
                return _numbers(known)
            if known is not None:
                self._set_aside(step)
            choice = Choice(self.question.plan, 0, "") if is_forced else self.budget.choose(self._rungs)
            if choice.plan is None:
                self._keep(lambda: self.log.add_note(step, choice.note, "skipped"))
                return None
            try:
                record = self._measured(model, step, choice, choice.plan)
            except JostleError as error:
                self._failed(step, error)
                return None
            self._keep(lambda: self.log.add_row(record))
            self._keep(lambda: self._send(record))
            self._has_measured = True
        return _numbers(record)

    def _measured(self, model: Model, step: int, choice: Choice, plan: Plan) -> Record:
        budget, question = self.budget, self.question
        began = budget.clock()
        with untouched(model, question.seed, guards_parameters=bool(self.measures)):
            m = question.measure(model, plan, self.name)
            halfway = budget.clock()
            numbers: dict[str, float | None] = {question.quantity: m.value, "low": m.low, "high": m.high}
            if question.labels is not None:
                numbers["accuracy"] = question.accuracy(model, self.name)
            numbers["weight_norm"] = weight_norm(model)
            for name, measure in self.measures.items():
                numbers |= numbers_of(name, measure, model, question.inputs_on(device_of(model)))
        ended = budget.clock()
        is_precise = isinstance(question.plan, Until) and question.plan.is_met(m.value, m.low, m.high)
        budget.learn(m.passes, halfway - began, ended - halfway, is_precise=is_precise)
        note = "" if is_precise else choice.note
        return {
            "step": step,
            "numbers": {name: _plain(number) for name, number in numbers.items()},
            "weights": fingerprint(model),
            "passes": m.passes,
            "trials": m.trials,
            "stopped": m.stopped,
            "halvings": choice.halvings if note else 0,
            "note": note,
            "warnings": list(m.warnings),
            "seconds": round(ended - began, 6),
            "training_seconds": round(budget.training_seconds, 6),
            "probe_seconds": round(budget.probe_seconds, 6),
            "time": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        }

    def _send(self, record: Record) -> None:
        numbers = {name: number for name, number in record["numbers"].items() if number is not None}
        for send in self.senders:
            send(record["step"], numbers)

    def _set_aside(self, step: int) -> None:
        why = f"the weights are not those in the log; its rows from step {step} on are another run's and are set aside"
        self._keep(lambda: self.log.fork(step, why))
        self._restore_times()
        self._warn(f"{self.name}: step {step}: {why}")

    def _restore_times(self) -> None:
        last = self.log.last
        self.budget.restore(*((0.0, 0.0) if last is None else (last["training_seconds"], last["probe_seconds"])))

    def _failed(self, step: int, error: JostleError) -> None:
        """Raise at the first measurement; from then on, training is worth more than a row."""
        if not self._has_measured:
            raise error
        self._keep(lambda: self.log.add_note(step, f"failed: {error}", "failed"))
        self._warn(f"{self.name} was not measured at step {step}: {error}")

    def _keep(self, write: Callable[[], None]) -> None:
        """Write; a full disk or a broken tracker is an error at first, and a warning once training is under way."""
        try:
            self.log.begin({**self.choices, "definition": self._definition, "provenance": provenance()})
            write()
        except Exception as error:
            text = str(error) if isinstance(error, JostleError) else f"{type(error).__name__}: {error}"
            if not self._has_measured:
                raise FailureError(f"the numbers of {self.name} could not be kept: {text}") from error
            self._warn(f"the numbers of {self.name} could not be kept: {text}")

    @staticmethod
    def _warn(text: str) -> None:
        warnings.warn(text, JostleWarning, stacklevel=6)  # where the loop calls the probe


def _plain(number: float | None) -> float | None:
    """A number as JSON can hold it."""
    return None if number is None or not math.isfinite(number) else float(number)


def _numbers(record: Record) -> Numbers:
    return {name: math.nan if number is None else number for name, number in record["numbers"].items()}
