"""One look at a model in training: whether to measure, the measurement itself, and where its numbers go.

``Probe``: the object that a training loop calls.
"""

import contextlib
import datetime
import math
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray

from jostle.base.errors import FailureError, JostleError, UsageError
from jostle.base.files import check_writable
from jostle.base.provenance import provenance
from jostle.base.store import Record
from jostle.estimates import JostleWarning
from jostle.estimates.result import checked_whole
from jostle.perturbations import Perturbation
from jostle.probe.budget import Budget, Choice, ladder
from jostle.probe.log import COUNTS, ProbeLog
from jostle.probe.measures import Measure, chosen, numbers_of
from jostle.probe.model import device_of, fingerprint, is_main_process, untouched, unwrapped, wait_for, weight_norm
from jostle.probe.question import Question
from jostle.probe.trackers import Pick, Sender, lightning_callback, senders, trainer_callback
from jostle.responses import Response
from jostle.sampling import Plan, Until
from jostle.tokens import TokenView
from jostle.training import Epoch
from jostle.training.randomness import random_numbers

if TYPE_CHECKING:
    from matplotlib.figure import Figure


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


class Probe:
    """Measures sensitivity while a model trains, every so many steps, within a share of the training time.

    Every measurement uses the same inputs and the same noise, so curves over steps are smooth, and it changes nothing:
    a model trained with a probe has the same weights, bit for bit, as one trained without (see ``untouched``).

    >>> import torch, jostle
    >>> bits = torch.randint(2, (200, 8), generator=torch.Generator().manual_seed(0)) * 2.0 - 1.0
    >>> probe = Probe(bits, tokens="coordinates", perturbation="sign-flip", every=10, share=None)
    >>> for step in range(21):
    ...     _ = probe(lambda x: x[:, : 1 + step // 10].prod(dim=1), step)  # a parity of 1, then 2, then 3 bits
    >>> probe.history["step"].tolist(), probe.history["sensitivity"].tolist()
    ([0.0, 10.0, 20.0], [0.125, 0.25, 0.375])

    The first measurement raises what is wrong. A later one that fails, say because training diverged, is noted in the
    log, with a warning, and training goes on. In a distributed run the first process measures, and the others wait.

    Arguments:
        inputs: a tensor (N, ...), a mapping of tensors, a ``Dataset`` or a ``DataLoader``; read and copied once.
        tokens, perturbation, response, target, mask, level, seed, batch_size: as for ``jostle.measure``.
        plan: as for ``jostle.measure``; by default ``Until(half_width=0.02)`` for flips and 10 % for other responses,
            or the exact grid where a perturbation has no randomness and there are few tokens.
        labels: (N,) whole numbers, for the accuracy; by default those of a dataset that has them.
        measures: what else to ask: names of ``jostle.probe.MEASURES``, or a mapping of names to functions of (model,
            inputs) that answer with a number or a mapping of names to numbers.
        every: steps from one measurement to the next, at 0, ``every``, 2 ``every``, ...
        share: of the training time, in (0, 1]: where the next measurement would exceed it, its passes are halved, up
            to four times, or it is skipped, and the log says so. None to do what ``plan`` says, whatever it costs;
            then the numbers are functions of the weights.
        log: a file, one JSON line for each measurement. If it exists, the probe goes on from it: see ``ProbeLog``.
        trackers: where numbers also go: TensorBoard's ``SummaryWriter``, ``wandb.run``, or several of them in a list.
        name: how messages call the model.
    """

    def __init__(
        self,
        inputs: Any,
        *,
        tokens: TokenView | str,
        perturbation: Perturbation | str,
        response: Response | str = "flip",
        plan: Plan | str | None = None,
        target: str = "dataset",
        mask: Any = None,
        labels: Any = None,
        measures: Mapping[str, Measure | str] | Iterable[str] = (),
        every: int = 100,
        share: float | None = 0.05,
        log: str | Path | None = None,
        trackers: Any = (),
        level: float = 0.95,
        seed: int = 0,
        batch_size: int = 128,
        name: str = "model",
    ) -> None:
        self._every, share = checked_whole("every", every, least=1), _checked_share(share)
        if log is not None:
            check_writable(log)
        # A loader draws from the global generator when it is read; copies must be fit for gradients.
        with random_numbers(checked_whole("seed", seed)), torch.inference_mode(False):
            question = Question(
                inputs, labels, tokens, perturbation, response, plan, target, mask, level, seed, batch_size
            )
        taken = ("step", question.quantity, "low", "high", "accuracy", "weight_norm", *COUNTS)
        further, receivers = chosen(measures, taken), senders(trackers)
        self._log, self._budget = ProbeLog(log), Budget(share)
        choices = {"quantity": question.quantity, "every": self._every, "share": share}
        self._looking = Looking(question, further, self._budget, self._log, receivers, choices, name)
        self._previous: int | None = None

    def __repr__(self) -> str:
        question, steps = self._looking.question, self.history["step"]
        view, perturbation = question.inputs.view.describe(), question.perturbation.describe()
        done = f"{len(steps)} measurement{'' if len(steps) == 1 else 's'}"
        last = f", the last at step {steps[-1]:.0f}" if len(steps) else ""
        share = self._looking.choices["share"]
        return (
            f"Probe({len(question.inputs):,} inputs, tokens={view}, perturbation={perturbation}, every={self._every}, "
            f"share={share}: {done}{last})"
        )

    def __call__(self, model: Model, step: int) -> Numbers | None:
        """Measure ``model`` if it is time, and return the numbers by name; None if it is not, or it was skipped.

        It is time at every multiple of ``every``; in a loop that does not call at each step, at the first call from
        there on.

        Arguments:
            model: an ``nn.Module`` in any mode, or any callable from a batch to outputs.
            step: how many steps were made, over the whole run; it never falls.
        """
        previous = self._goes_on(step)
        is_due = step % self._every == 0 if previous is None else step // self._every > previous // self._every
        return self._looking.look(model, int(step), is_forced=False) if is_due else None

    def measure(self, model: Model, step: int) -> Numbers | None:
        """Measure ``model`` now, whatever ``every`` and ``share`` say: after training, for example.

        A step that is in the log already, with the same weights, is not measured again.
        """
        self._goes_on(step)
        return self._looking.look(model, int(step), is_forced=True)

    def on_epoch(self, epoch: Epoch) -> Numbers | None:
        """For ``jostle.training.fit(..., on_epoch=probe.on_epoch)``: a step is then an epoch."""
        return self(epoch.model, epoch.number)

    @contextlib.contextmanager
    def watching(self, model: Model, optimizer: Any, *, start: int = 0) -> Iterator["Probe"]:
        """Inside, every step of ``optimizer`` is counted and the probe called; at the end it measures once more.

        Arguments:
            model: what is measured.
            optimizer: of torch; for others, call the probe in the loop.
            start: steps made before, if training goes on from a checkpoint.
        """
        if not hasattr(optimizer, "register_step_post_hook"):
            raise UsageError(
                f"optimizer of type {type(optimizer).__name__} does not tell when it makes a step; expected one of "
                "torch.optim, or call probe(model, step) in the loop"
            )
        done = checked_whole("start", start, least=0)

        def count(*_: object) -> None:
            nonlocal done
            done += 1
            self(model, done)

        self(model, done)
        handle = optimizer.register_step_post_hook(count)
        try:
            yield self
        finally:
            handle.remove()
        self.measure(model, done)

    @property
    def history(self) -> dict[str, NDArray[np.float64]]:
        """Columns: ``step``, ``sensitivity``, ``low``, ``high``, ``accuracy``, ``weight_norm``, further measures, and
        ``passes``, ``halvings``, ``seconds``, ``training_seconds``, ``probe_seconds``; NaN where there is no number."""
        return self._log.history

    @property
    def notes(self) -> list[str]:
        """What was skipped, halved, failed or set aside, by step."""
        return self._log.notes

    def plot(self, *columns: str, title: str | None = None, log_x: bool = False, log_y: bool = False) -> "Figure":
        """Columns of ``history`` over steps, with intervals as bands; by default the sensitivity."""
        return self._log.plot(*columns, title=title, log_x=log_x, log_y=log_y)

    @staticmethod
    def read(path: str | Path) -> ProbeLog:
        """The log in a file, with ``history``, ``notes``, ``settings`` and ``plot``, also while the run goes on."""
        return ProbeLog.read(path)

    def lightning(self, model: Pick | None = None) -> Any:
        """A callback for Lightning's ``Trainer``.

        Arguments:
            model: a function from the ``LightningModule`` to what is measured; by default the module itself.
        """
        return lightning_callback(self, model)

    def trainer_callback(self, model: Pick | None = None) -> Any:
        """A callback for the ``Trainer`` of transformers.

        Arguments:
            model: a function from the model that is trained to what is measured; by default the model itself.
        """
        return trainer_callback(self, model)

    def _goes_on(self, step: int) -> int | None:
        """Take note of ``step``; returns the one before."""
        step, previous = checked_whole("step", step, least=0), self._previous
        if previous is not None and step < previous:
            raise UsageError(
                f"step={step} comes after step={previous}; a probe watches one run, with steps counted over all its "
                "epochs; make another probe for another run"
            )
        self._budget.start()
        self._previous = step
        return previous


def _checked_share(share: float | None) -> float | None:
    if share is None:
        return None
    if isinstance(share, bool) or not isinstance(share, int | float) or not 0 < share <= 1:
        raise UsageError(
            f"share={share!r} must be a part of the training time in (0, 1], for example 0.05, or None for no limit"
        )
    return float(share)
