"""``Probe``, the object that a training loop calls, and ``StepRecorder``, which measures a step and writes its row."""

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

from jostle.base import checks
from jostle.base.errors import FailureError, JostleError, UsageError
from jostle.base.estimate import provenance
from jostle.base.files import check_writable
from jostle.base.model import device_of
from jostle.base.store import Record
from jostle.base.trackers import Sender, make_senders
from jostle.estimates import JostleWarning
from jostle.estimates.request import Request
from jostle.perturbations import Perturbation
from jostle.probe.budget import Allowance, Budget, plan_ladder
from jostle.probe.callbacks import PickModel, lightning_callback, trainer_callback
from jostle.probe.log import COUNTS, ProbeLog
from jostle.probe.measurement import DEFAULT_PLAN, FixedMeasurement
from jostle.probe.measures import Measure, read_measures, run_measure
from jostle.probe.model import fingerprint, is_main_process, protect_training, synchronize, unwrap, weight_norm
from jostle.responses import Response
from jostle.sampling import Plan, Until
from jostle.tokens import TokenView
from jostle.training import Epoch
from jostle.training.randomness import random_numbers

if TYPE_CHECKING:
    from matplotlib.figure import Figure


Model = Callable[..., Any]
Numbers = dict[str, float]

_TO_THE_LOOP = 5  # frames from a warning to the line of the loop that calls the probe


class Probe:
    """Measures sensitivity while a model trains, every so many steps, within a share of the training time.

    Every measurement uses the same inputs and the same noise, so curves over steps are smooth. A measurement changes
    nothing: a model trained with a probe has the same weights, bit for bit, as one trained without.

    >>> import torch, jostle
    >>> bits = torch.randint(2, (200, 8), generator=torch.Generator().manual_seed(0)) * 2.0 - 1.0
    >>> probe = Probe(bits, tokens="coordinates", perturbation="sign-flip", every=10, share=None)
    >>> for step in range(21):
    ...     _ = probe(lambda x: x[:, : 1 + step // 10].prod(dim=1), step)  # a parity of 1, then 2, then 3 bits
    >>> probe.history["step"].tolist(), probe.history["sensitivity"].tolist()
    ([0.0, 10.0, 20.0], [0.125, 0.25, 0.375])

    If the first measurement fails, it raises. If a later one fails, for example because training diverged, the log
    notes it, there is a warning, and training goes on. In a distributed run the first process measures, and the others
    wait.

    Arguments:
        inputs: a tensor (N, ...), a mapping of tensors, a ``Dataset`` or a ``DataLoader``; read and copied once.
        tokens, perturbation, response, target, mask, level, seed, batch_size: as for ``jostle.measure``.
        plan: as for ``jostle.measure``. By default ``Until``, to 0.02 for flips and to 10 % for other responses; or the
            exact grid if the perturbation has no randomness and there are at most 4,096 tokens.
        labels: (N,) whole numbers, for the accuracy; by default those of a dataset that has them.
        measures: further numbers: names of ``jostle.probe.MEASURES``, or a mapping of names to functions of (model,
            inputs) that return a number or a mapping of names to numbers.
        every: steps from one measurement to the next, at 0, ``every``, 2 ``every``, ...
        share: of the training time, in (0, 1]. If the next measurement would take more, its passes are halved, up to
            four times, or it is skipped, and the log says so. None for no limit: every measurement then follows
            ``plan``, and its numbers are functions of the weights.
        log: a file, one JSON line for each measurement. If it exists, the probe continues it: see ``ProbeLog``.
        trackers: experiment trackers that also get the numbers: TensorBoard's ``SummaryWriter``, ``wandb.run``,
            ``mlflow``, a logger of Lightning, or a list of these.
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
        batch_size: int | None = None,
        name: str = "model",
    ) -> None:
        self._every, share = checks.whole("every", every, least=1), _as_share(share)
        request = Request.build(
            tokens=tokens,
            perturbation=perturbation,
            response=response,
            plan=DEFAULT_PLAN if plan is None else plan,
            target=target,
            mask=mask,
            level=level,
            seed=seed,
            batch_size=batch_size,
        )
        if log is not None:
            check_writable(log)
        # A loader draws from the global generator when it is read; copies must be usable with gradients.
        with random_numbers(request.seed), torch.inference_mode(False):
            measurement = FixedMeasurement(request, inputs, labels)
        taken = ("step", measurement.quantity, "low", "high", "accuracy", "weight_norm", *COUNTS)
        self._log, self._budget = ProbeLog(log), Budget(share)
        self._recorder = StepRecorder(
            measurement=measurement,
            measures=read_measures(measures, taken),
            budget=self._budget,
            log=self._log,
            senders=make_senders(trackers),
            settings={"quantity": measurement.quantity, "every": self._every, "share": share},
            name=name,
        )
        self._previous: int | None = None

    def __repr__(self) -> str:
        measurement, steps = self._recorder.measurement, self.history["step"]
        request, share = measurement.request, self._recorder.settings["share"]
        done = f"{len(steps)} measurement{'' if len(steps) == 1 else 's'}"
        last = f", the last at step {steps[-1]:.0f}" if len(steps) else ""
        return (
            f"Probe({len(measurement.inputs):,} inputs, tokens={request.tokens.describe()}, "
            f"perturbation={request.perturbation.describe()}, every={self._every}, share={share}: {done}{last})"
        )

    def __getattr__(self, name: str) -> Any:
        """Only for names that there are not: a trainer that was given the probe itself learns what to be given."""
        advice = ""
        if name.startswith("on_") or name in ("setup", "teardown"):
            advice = ": it is no callback; give callbacks=[probe.lightning()] or callbacks=[probe.trainer_callback()]"
        raise AttributeError(f"'Probe' object has no attribute {name!r}{advice}", name=name, obj=self)

    def __call__(self, model: Model, step: int) -> Numbers | None:
        """Measure ``model`` if it is time, and return the numbers by name; None if it is not time or it was skipped.

        It is time at every multiple of ``every``. In a loop that does not call the probe at each step, it is time at
        the first call from such a multiple on.

        Arguments:
            model: an ``nn.Module`` in any mode, or any callable from a batch to outputs.
            step: how many steps were made, over the whole run; it never falls.
        """
        previous = self._advance(step)
        is_due = step % self._every == 0 if previous is None else step // self._every > previous // self._every
        return self._recorder.record(model, int(step), is_forced=False) if is_due else None

    def measure(self, model: Model, step: int) -> Numbers | None:
        """Measure ``model`` now, whatever ``every`` and ``share`` say: for example after training.

        A step that is in the log with the same weights is not measured again.
        """
        self._advance(step)
        return self._recorder.record(model, int(step), is_forced=True)

    def on_epoch(self, epoch: Epoch) -> Numbers | None:
        """For ``jostle.training.fit(..., on_epoch=probe.on_epoch)``: a step is then an epoch."""
        return self(epoch.model, epoch.number)

    @contextlib.contextmanager
    def watching(self, model: Model, optimizer: Any, *, start: int = 0) -> Iterator["Probe"]:
        """Inside, every step of ``optimizer`` is counted and calls the probe; at the end the probe measures once more.

        Arguments:
            model: the model to measure.
            optimizer: an optimizer of torch; with others, call the probe in the loop.
            start: steps made before, if training continues from a checkpoint.
        """
        if not hasattr(optimizer, "register_step_post_hook"):
            raise UsageError(
                f"optimizer of type {type(optimizer).__name__} does not tell when it makes a step; expected one of "
                "torch.optim, or call probe(model, step) in the loop"
            )
        done = checks.whole("start", start, least=0)

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

    def to_frame(self, backend: str = "pandas") -> Any:
        """``history`` as a data frame, with a row for each measured step."""
        return self._log.to_frame(backend=backend)

    def _repr_html_(self) -> str:
        """For notebooks: the rows of ``history``."""
        return self._log._repr_html_()

    @property
    def notes(self) -> list[str]:
        """Which steps were skipped, halved, failed or set aside, and why."""
        return self._log.notes

    def plot(self, *columns: str, title: str | None = None, log_x: bool = False, log_y: bool = False) -> "Figure":
        """Draw columns of ``history`` over steps, with intervals as bands; by default the sensitivity."""
        return self._log.plot(*columns, title=title, log_x=log_x, log_y=log_y)

    @staticmethod
    def read(path: str | Path) -> ProbeLog:
        """The log in a file, with ``history``, ``notes``, ``settings`` and ``plot``, also while the run is going on."""
        return ProbeLog.read(path)

    def lightning(self, model: PickModel | None = None) -> Any:
        """A callback for Lightning's ``Trainer``.

        Arguments:
            model: a function from the ``LightningModule`` to what is measured; by default the module itself.
        """
        return lightning_callback(self, model)

    def trainer_callback(self, model: PickModel | None = None) -> Any:
        """A callback for the ``Trainer`` of transformers.

        Arguments:
            model: a function from the model that is trained to what is measured; by default the model itself.
        """
        return trainer_callback(self, model)

    def _advance(self, step: int) -> int | None:
        """Note ``step`` as the present one, and return the step of the call before."""
        step, previous = checks.whole("step", step, least=0), self._previous
        if previous is not None and step < previous:
            raise UsageError(
                f"step={step} comes after step={previous}; a probe watches one run, with steps counted over all its "
                "epochs; make another probe for another run"
            )
        self._budget.start()
        self._previous = step
        return previous


@dataclass
class StepRecorder:
    """Measures a model at a step, within a budget, and writes the numbers to the log and to trackers.

    Arguments:
        measurement: what is measured.
        measures: further measures, by name.
        budget: how much time there is.
        log: the rows of this process, and those of an earlier one.
        senders: trackers that also get the numbers.
        settings: entries of the log beside its definition: how often, within which share.
        name: how messages call the model.
    """

    measurement: FixedMeasurement
    measures: dict[str, Measure]
    budget: Budget
    log: ProbeLog
    senders: list[Sender]
    settings: Mapping[str, Any]
    name: str

    def __post_init__(self) -> None:
        self._definition = {**self.measurement.describe(), "measures": sorted(self.measures)}
        self.log.check(self._definition)
        self._rungs = plan_ladder(self.measurement.plan, self.measurement.inputs, self.measurement.request.level)
        self._has_measured = self._has_skipped = False
        self._restore_times()

    def record(self, model: Model, step: int, *, is_forced: bool) -> Numbers | None:
        """The numbers of ``model`` at ``step``; None if it was not measured.

        Arguments:
            model: the model of the loop.
            step: the number of its step.
            is_forced: measure with the full plan, whatever it costs.
        """
        model = unwrap(model)
        if not is_main_process():
            return None
        synchronize(model)
        with self.budget.measuring():
            weights, known = fingerprint(model), self.log.row(step)
            if known is not None and known["weights"] == weights:
                return _numbers(known)
            if known is not None:
                self._set_aside(step)
            allowance = Allowance(self.measurement.plan, 0, "") if is_forced else self.budget.choose(self._rungs)
            if allowance.plan is None:
                self._write(lambda: self.log.add_note(step, allowance.note, "skipped"))
                self._warn_of_skip(step)
                return None
            try:
                record = self._measure(model, step, allowance, allowance.plan)
            except JostleError as error:
                self._note_failure(step, error)
                return None
            self._write(lambda: self.log.add_row(record))
            self._write(lambda: self._send(record))
            self._has_measured = True
            self._warn_about(record)
        return _numbers(record)

    def _warn_of_skip(self, step: int) -> None:
        """Say at the first step that is skipped that others may follow."""
        if not self._has_skipped:
            self._warn(
                f"step {step} was due and is skipped, as others may be, to stay within share={self.budget.share} of "
                "the training time; give Probe(share=None) to measure all of them, or a larger share"
            )
        self._has_skipped = True

    def _measure(self, model: Model, step: int, allowance: Allowance, plan: Plan) -> Record:
        """The row of this step."""
        budget, measurement = self.budget, self.measurement
        began = budget.clock()
        with protect_training(model, measurement.request.seed, guards_parameters=bool(self.measures)):
            m = measurement.measure(model, plan, self.name)
            halfway = budget.clock()
            numbers: dict[str, float | None] = {measurement.quantity: m.value, "low": m.low, "high": m.high}
            if measurement.labels is not None:
                numbers["accuracy"] = measurement.accuracy(model, self.name)
            numbers["weight_norm"] = weight_norm(model)
            for name, measure in self.measures.items():
                numbers |= run_measure(name, measure, model, measurement.inputs_on(device_of(model)))
        ended = budget.clock()
        is_precise = isinstance(measurement.plan, Until) and bool(measurement.plan.is_met(m.value, m.low, m.high))
        budget.learn(m.passes, halfway - began, ended - halfway, is_precise=is_precise)
        note = "" if is_precise else allowance.note
        return {
            "step": step,
            "numbers": {name: _finite_or_none(number) for name, number in numbers.items()},
            "weights": fingerprint(model),
            "passes": m.passes,
            "trials": m.trials,
            "stopped": m.stopped,
            "halvings": allowance.halvings if note else 0,
            "note": note,
            "warnings": list(m.warnings),
            "seconds": round(ended - began, 6),
            "training_seconds": round(budget.training_seconds, 6),
            "probe_seconds": round(budget.probe_seconds, 6),
            "time": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        }

    def _send(self, record: Record) -> None:
        """Send the finite numbers of a row to the trackers."""
        numbers = {name: number for name, number in record["numbers"].items() if number is not None}
        for send in self.senders:
            send(record["step"], numbers)

    def _set_aside(self, step: int) -> None:
        """Set the rows of the log from ``step`` on aside: the weights show that they belong to another run."""
        why = f"the weights are not those in the log; its rows from step {step} on are another run's and are set aside"
        self._write(lambda: self.log.fork(step, why))
        self._restore_times()
        self._warn(f"{self.name}: step {step}: {why}")

    def _restore_times(self) -> None:
        last = self.log.last
        self.budget.restore(*((0.0, 0.0) if last is None else (last["training_seconds"], last["probe_seconds"])))

    def _note_failure(self, step: int, error: JostleError) -> None:
        """Raise at the first measurement. Later only note the error: training is worth more than a row."""
        if not self._has_measured:
            raise error
        self._write(lambda: self.log.add_note(step, f"failed: {error}", "failed"))
        self._warn(f"{self.name} was not measured at step {step}: {error}")

    def _write(self, write: Callable[[], None]) -> None:
        """Write; a full disk or a broken tracker is an error at first, and a warning once training is under way."""
        try:
            self.log.begin({**self.settings, "definition": self._definition, "provenance": provenance()})
            write()
        except Exception as error:
            text = str(error) if isinstance(error, JostleError) else f"{type(error).__name__}: {error}"
            if not self._has_measured:
                raise FailureError(f"the numbers of {self.name} could not be kept: {text}") from error
            self._warn(f"the numbers of {self.name} could not be kept: {text}")

    def _warn_about(self, record: Record) -> None:
        for text in record["warnings"]:
            self._warn(text)

    @staticmethod
    def _warn(text: str) -> None:
        warnings.warn(text, JostleWarning, stacklevel=_TO_THE_LOOP)


def _as_share(share: float | None) -> float | None:
    hint = ", a part of the training time, for example 0.05, or None for no limit"
    return None if share is None else checks.number("share", share, above=0, most=1, hint=hint)


def _finite_or_none(number: float | None) -> float | None:
    """A number as JSON can hold it."""
    return None if number is None or not math.isfinite(number) else float(number)


def _numbers(record: Record) -> Numbers:
    """The numbers of a row; NaN where there is none."""
    return {name: math.nan if number is None else number for name, number in record["numbers"].items()}
