"""Units of one measurement, and who evaluates them: this process, or the crew of an engine.

A measurement is cut into units in two steps. First the clean passes that are still missing, some batches a unit; what a
response remembers of them comes back. Then the trials, some hundred a unit, which take along what is remembered of
their clean inputs. A unit fixes its own batches, and its noise is a function of seed, input, token and draw. So what it
gives depends on no worker, and the measurement is the same wherever its units were evaluated.
"""

import contextlib
import pickle
import time
from collections.abc import Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from jostle.base.errors import UsageError
from jostle.engines import Automatic, Crew, Engine, Serial
from jostle.engines.automatic import Pace
from jostle.engines.pool import Pool
from jostle.engines.torchrun import Gang
from jostle.perturbations import Perturbation
from jostle.sampling.plans import Integers, Trials
from jostle.sampling.readers import Changes

if TYPE_CHECKING:
    from jostle.sampling.evaluation import TrialEvaluation

_BATCHES = 4  # of clean inputs in a unit
_SECONDS_TO_JUDGE = 1.0  # before that nothing is known about how long a measurement will take
_AS_GOOD = 0.75  # if threads gain at least this share of what as many processes would, there is nothing to gain

Made = tuple[Tensor, NDArray[np.float64] | None]  # of a batch of clean inputs: references and margins


@dataclass(frozen=True)
class CleanUnit:
    """Clean inputs that one model is asked about.

    Arguments:
        model: its number.
        batches: inputs, a batch each.
    """

    model: int
    batches: list[Integers]

    def evaluate(self, evaluation: "TrialEvaluation") -> list[Made]:
        """What is remembered of each batch."""
        return [evaluation.references[self.model].make(batch) for batch in self.batches]


@dataclass(frozen=True)
class TrialUnit:
    """Trials that all models are asked about.

    Arguments:
        trials: which.
        known: for each model, its clean inputs and what is remembered of them; None if that is too large to keep, and
            clean passes are made along the way.
        perturbation: pickled, if it is another one than at first.
        expected: about how many trials the measurement has in all, or more.
    """

    trials: Trials
    known: list[tuple[Integers, Tensor] | None]
    perturbation: bytes | None
    expected: float = 0.0

    def evaluate(self, evaluation: "TrialEvaluation") -> Changes:
        """The changes, (models, trials)."""
        for references, known in zip(evaluation.references, self.known, strict=True):
            references.learn(known)
        evaluation.expect(self.expected)
        return evaluation.unit_changes(self.trials)


class TrialWork:
    """The models and inputs of a measurement, as they travel to workers.

    Arguments:
        evaluation: of this process; another process gets a copy.
        device: where workers ask the models; None for where they are.
    """

    has_tensors = True

    def __init__(self, evaluation: "TrialEvaluation", device: str | None = None) -> None:
        self.evaluation, self._device = evaluation, device
        self._dtype = torch.get_default_dtype()
        self._first = evaluation.perturbation
        self._current: bytes | None = None  # the perturbation of the last unit, if it was another one

    def do(self, unit: CleanUnit | TrialUnit, report: Any) -> tuple[Any, list[int]]:  # noqa: ARG002
        """What the unit gives, and the passes of each model for it."""
        functions = self.evaluation.functions
        torch.set_default_dtype(self._dtype)
        if self._device is not None:
            for function in functions:
                function.move(self._device)
            self._device = None
        if isinstance(unit, TrialUnit):
            self._perturb(unit.perturbation)
        before = [function.passes for function in functions]
        with torch.inference_mode():
            value = unit.evaluate(self.evaluation)
        passes = [function.passes - count for function, count in zip(functions, before, strict=True)]
        for function, count in zip(functions, before, strict=True):
            function.passes = count  # whoever asked for the unit counts them
        return value, passes

    def _perturb(self, pickled: bytes | None) -> None:
        if pickled != self._current:
            made: Perturbation = self._first if pickled is None else pickle.loads(pickled)
            self.evaluation.perturbation, self._current = made, pickled


class Staff:
    """Who evaluates the units of a measurement.

    Attributes:
        crew: the crew of an engine; None for this process.
        told: why other processes that could have been asked were not, in a sentence. It depends on who asks and on the
            clock, as no number does, so it is kept beside the versions and the time.

    Arguments:
        evaluation: the measurement.
    """

    def __init__(self, evaluation: "TrialEvaluation") -> None:
        self.evaluation = evaluation
        self.crew: Crew | None = None
        self.told = ""
        self._engine: Engine | None = None
        self._context = contextlib.ExitStack()
        self._pace = Pace()
        self._pool: Pool | None = None  # processes that are still importing torch
        self._first: Perturbation | None = None

    @contextlib.contextmanager
    def working(self, engine: Engine | None) -> Iterator[None]:
        """Inside, units are evaluated by the crew of this engine, which ``open`` hires."""
        self._engine = engine
        cpus = getattr(engine, "cpus", None)
        before = torch.get_num_threads()
        with self._context:
            try:
                if cpus is not None:
                    torch.set_num_threads(cpus)
                yield
            finally:
                torch.set_num_threads(before)
                self.crew = self._pool = self._engine = None

    def open(self) -> None:
        """Hire the crew, if there is to be one; the models have been looked at, and batches chosen.

        Models that are read from what is remembered of clean inputs stay here: to remember it in each process would
        cost more than is gained.
        """
        self._pace = Pace()
        engine = self._engine
        if self.crew is not None or isinstance(engine, None | Serial | Automatic):
            return
        if self.evaluation.remembers:
            self.told = (
                "measured in one process: what is remembered of clean inputs makes passes cheaper than sending them"
            )
            return
        self.crew = self._hired(engine)

    def _hired(self, engine: Engine) -> Crew:
        device = "cuda" if getattr(engine, "gpus", 0) else None
        crew = self._context.enter_context(engine.crew(TrialWork(self.evaluation, device)))
        self._first = self.evaluation.perturbation
        if isinstance(crew, Gang):
            batching = self.evaluation.batching
            sizes = (batching.batch_size, batching.most_tokens, batching.free_padding, batching.spare_columns)
            batching.batch_size, batching.most_tokens, batching.free_padding, batching.spare_columns = crew.agree(sizes)
        return crew

    def watch(self, share: float) -> None:
        """Go over to processes, if the engine is to be chosen and they will save time; ``share`` has been done."""
        engine = self._engine
        if not isinstance(engine, Automatic) or self.crew is not None:
            return
        if self._pool is None:
            if self._pace.seconds > _SECONDS_TO_JUDGE and self._pace.seconds_left(share) > engine.least_seconds:
                self._start(engine)
            return
        readiness = self._pool.readiness()
        if readiness is None:
            self._stay()
        elif readiness:
            self.crew = self._pool

    def _start(self, engine: Automatic) -> None:
        """Start processes, which import torch and read the models while this one goes on."""
        if not engine.is_possible or not _can_leave(self.evaluation) or not _gains(self.evaluation, engine.count):
            self._stay()
            return
        try:
            crew = self._hired(engine)
        except UsageError as error:
            self.told = f"measured in one process: {error}"
            self._stay()
            return
        assert isinstance(crew, Pool)
        crew.hire_all()
        self._pool = crew

    def _stay(self) -> None:
        """Stay in this process to the end."""
        self._engine = self._pool = None

    def prepare(self, batches: Sequence[list[Integers]]) -> None:
        """Have clean passes made: for each model, these batches."""
        assert self.crew is not None
        units = [
            CleanUnit(model, some[start : start + _BATCHES])
            for model, some in enumerate(batches)
            for start in range(0, len(some), _BATCHES)
        ]
        made: list[list[Made]] = [[] for _ in batches]
        for unit, found in zip(units, self.crew.results(units), strict=True):
            made[unit.model] += self._counted(found)
        for references, some, found in zip(self.evaluation.references, batches, made, strict=True):
            references.keep(some, found)

    def changes(self, units: Iterable[Trials]) -> Generator[Changes, None, None]:
        """(models, trials) of each unit, in their order."""
        assert self.crew is not None
        evaluation = self.evaluation
        other = None if evaluation.perturbation is self._first else pickle.dumps(evaluation.perturbation)

        def made() -> Iterator[TrialUnit]:
            for trials in units:
                distinct = np.unique(trials.inputs)
                known = [references.tell(distinct) for references in evaluation.references]
                yield TrialUnit(trials, known, other, evaluation.expected)

        for found in self.crew.results(made()):
            yield self._counted(found)

    def _counted(self, found: tuple[Any, list[int]]) -> Any:
        value, passes = found
        for function, count in zip(self.evaluation.functions, passes, strict=True):
            function.passes += count
        return value


def _can_leave(evaluation: "TrialEvaluation") -> bool:
    """Whether models may be asked in other processes without being told to: networks on the CPU, nothing else."""
    functions = evaluation.functions
    are_networks = all(isinstance(function.model, nn.Module) and function.is_steady for function in functions)
    return are_networks and not evaluation.remembers and all(function.device.type == "cpu" for function in functions)


def _gains(evaluation: "TrialEvaluation", count: int) -> bool:
    """Whether processes with one thread each are quicker than the threads of this one, and answer bit for bit alike."""
    threads = torch.get_num_threads()
    if threads == 1:
        return True
    size = min(evaluation.batching.batch_size, len(evaluation.inputs))
    batches = [np.arange(size), np.arange(max(1, size // 3))]
    try:
        for function in evaluation.functions:
            passes = function.passes
            many, with_threads = _timed(function, batches)
            torch.set_num_threads(1)
            one, with_one = _timed(function, batches)
            torch.set_num_threads(threads)
            function.passes = passes
            is_same = all(torch.equal(a, b) for a, b in zip(many, one, strict=True))
            if not is_same or with_one / with_threads > _AS_GOOD * count:
                return False
        return True
    finally:
        torch.set_num_threads(threads)


def _timed(function: Any, batches: list[Integers]) -> tuple[list[Tensor], float]:
    """Answers to these batches, and the seconds they took."""
    began = time.perf_counter()
    answers = [function(function.inputs.batch(batch)) for batch in batches]
    return answers, time.perf_counter() - began
