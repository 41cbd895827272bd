"""One network trained on a sparse parity, with all measures taken along the way."""

import contextlib
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch

from jostle.base import checks
from jostle.base.errors import UsageError
from jostle.base.progress import Progress, State, reporter
from jostle.base.store import Store
from jostle.training.evaluation import Evaluation
from jostle_papers.p2403_06925.grokking import Trajectory
from jostle_papers.p2403_06925.parity.designs import Classifier, Design, chosen
from jostle_papers.p2403_06925.parity.measures import Observer
from jostle_papers.p2403_06925.parity.onsets import LEARNT
from jostle_papers.p2403_06925.parity.steps import Trainer
from jostle_papers.p2403_06925.parity.task import SparseParity

CHECKPOINT, LOOKS = "training.safetensors", "looks.jsonl"
AT_END = 10  # times as many points in the last look
_DENSITY = 50  # looks come after 1 / 50 more steps


@dataclass(frozen=True)
class Course:
    """What was seen of one network while it was trained.

    Arguments:
        trajectory: curves of train_loss, train_accuracy and the measures of ``measures``; what it calls
            epochs are steps here.
        last: the last look with its intervals, influences and flips, as ``Look.to_dict`` has it.
        epoch: steps of an epoch.
        parameters: weights of the network.
        network: as it was at the end, None if the course was read from a record.
    """

    trajectory: Trajectory
    last: Mapping[str, Any] = field(repr=False)
    epoch: int
    parameters: int
    network: Classifier | None = field(default=None, repr=False, compare=False)

    def to_dict(self) -> dict[str, Any]:
        """A plain dictionary, for JSON; without the network."""
        about = {"last": dict(self.last), "epoch": self.epoch, "parameters": self.parameters}
        return {"trajectory": self.trajectory.to_dict(), **about}

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> "Course":
        """The course that ``to_dict`` wrote."""
        trajectory = Trajectory.from_dict(record["trajectory"])
        return cls(trajectory, record["last"], record["epoch"], record["parameters"])


@dataclass(frozen=True, kw_only=True)
class Plan:
    """How long to train and when to look.

    Arguments:
        steps: most that are trained.
        every: steps from one look to the next at first; later a look comes after a further 2 % of the steps.
        further: once test accuracy is 99 %, training goes on for this share of the steps until then, and ends; None
            for all ``steps``.
        tests, points: as in ``Observer``; the last look has ten times as many.
        checkpoint_every: looks from one state on disk to the next.
    """

    steps: int
    every: int = 2
    further: float | None = 0.5
    tests: int = 1000
    points: int = 100
    checkpoint_every: int = 20

    def __post_init__(self) -> None:
        checks.sizes(steps=self.steps, every=self.every, checkpoint_every=self.checkpoint_every)
        if self.further is not None and not self.further >= 0:
            raise UsageError(f"further={self.further!r} must be at least 0, or None to train for all steps")

    def next_look(self, step: int) -> int:
        """When to look after a look at ``step``.

        >>> [Plan(steps=5000).next_look(step) for step in (0, 999, 2000, 4990)]
        [2, 1018, 2040, 5000]
        """
        return min(step + max(self.every, step // _DENSITY), self.steps)

    def last_step(self, learnt: int | None) -> int:
        """When training ends, if test accuracy was 99 % first at the look ``learnt``."""
        if learnt is None or self.further is None:
            return self.steps
        return min(self.steps, learnt + int(self.further * learnt))


def train(
    task: SparseParity,
    design: Design | str,
    plan: Plan,
    *,
    seed: int,
    folder: str | Path | None = None,
    device: str | torch.device = "cpu",
    progress: Progress = False,
) -> Course:
    """Train a network and look at it before training, along the way, and at the end.

    With ``folder`` the state is written there now and then; called again, training goes on from it and ends with the
    same weights and the same looks, bit for bit, as if it had not been interrupted (same machine, torch and number of
    threads).

    Arguments:
        task: what to learn.
        design: a name of ``DESIGNS`` or a ``Design``.
        plan: how long, and when to look.
        seed: of first weights, training examples, their order, and the points that are looked at.
        folder: for state and looks.
        device: where to train.
        progress: true for a bar on a terminal and plain lines elsewhere, or a function of ``progress.State``.

    Raises:
        UsageError: one line on what cannot be used as given.
        FailureError: training diverged, or a file could not be written.
    """
    if not isinstance(task, SparseParity):
        raise UsageError(f"task={task!r} must be a SparseParity")
    if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0:
        raise UsageError(f"seed={seed!r} must be a whole number of at least 0")
    with contextlib.ExitStack() as stack:
        place = folder or stack.enter_context(tempfile.TemporaryDirectory(prefix="jostle-parity-"))
        report = stack.enter_context(contextlib.closing(reporter(progress, f"train {chosen(design).network}")))
        following = _Following(task, chosen(design), plan, seed, Path(place), device)
        while following.goes_on():
            report(following.advance())
        return following.course()


class _Following:
    """A network on its way, and the looks at it; none is taken twice."""

    def __init__(
        self, task: SparseParity, design: Design, plan: Plan, seed: int, folder: Path, device: str | torch.device
    ) -> None:
        self._plan, self._seed, self._design = plan, seed, design
        self._settings: dict[str, Any] = {"task": task.describe(), **design.describe(), **asdict(plan), "seed": seed}
        del self._settings["checkpoint_every"]  # which changes nothing
        self._observer, self._closer = (
            Observer(task, tests=times * plan.tests, points=times * plan.points, seed=seed) for times in (1, AT_END)
        )
        network = _moved(design.create(task, seed), device)
        self._trainer = Trainer(network, task.sample(design.samples, seed=seed), design, seed)
        self._checkpoint, self._store = folder / CHECKPOINT, Store(folder / LOOKS)
        self._record: dict[int, Evaluation] = {}
        if self._checkpoint.exists():
            self._record = self._trainer.load(self._checkpoint, self._settings)
        else:
            self._look()
            self._trainer.save(self._checkpoint, self._record, self._settings)

    def goes_on(self) -> bool:
        """Whether training is not over."""
        return self._trainer.done < self._plan.last_step(self._learnt())

    def advance(self) -> State:
        """Train up to the next look and take it."""
        plan, trainer = self._plan, self._trainer
        trainer.advance(min(plan.next_look(trainer.done), plan.last_step(self._learnt())))
        self._look()
        if len(self._record) % plan.checkpoint_every == 0:
            trainer.save(self._checkpoint, self._record, self._settings)
        seen = self._seen(trainer.done)
        text = f"test accuracy {seen['test_accuracy']:.3f}  sensitivity {seen['sensitivity']:.4f}"
        return State(trainer.done / plan.last_step(self._learnt()), trainer.done, text, "steps")

    def course(self) -> Course:
        """What was seen, put together."""
        steps = sorted(self._record)
        rows = [
            {"train_loss": self._record[step].loss, "train_accuracy": self._record[step].accuracy, **self._seen(step)}
            for step in steps
        ]
        curves = {name: tuple(row[name] for row in rows) for name in rows[0]}
        network = self._trainer.network
        assert isinstance(network, Classifier)
        return Course(
            Trajectory(self._seed, tuple(steps), curves),
            self._closer.look(network).to_dict(),
            self._design.steps,
            sum(parameter.numel() for parameter in network.parameters()),
            network,
        )

    def _look(self) -> None:
        step = self._trainer.done
        self._record[step] = self._trainer.fitted(self._plan.tests)
        if (key := f"step {step}") not in self._store:  # it may be there, of a run that was killed after its last state
            self._store.append(key, self._observer.look(self._trainer.network).values)

    def _seen(self, step: int) -> dict[str, float]:
        return dict(self._store[f"step {step}"])

    def _learnt(self) -> int | None:
        right = (step for step in sorted(self._record) if self._seen(step)["test_accuracy"] >= LEARNT)
        return next(right, None)


def _moved(network: Classifier, device: str | torch.device) -> Classifier:
    """The network on ``device``; one that is not there is one clear line."""
    try:
        return network.to(device)
    except (RuntimeError, AssertionError) as error:
        raise UsageError(f"device={str(device)!r} cannot be used: {str(error).splitlines()[0]}") from None
