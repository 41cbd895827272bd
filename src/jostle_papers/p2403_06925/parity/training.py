"""One network trained on a sparse parity, with all measures taken along the way.

``jostle.training.fit`` looks at a network between epochs. A sparse parity is learnt within a few steps, often within
one epoch of 50,000 examples, so the looks here are between steps.
"""

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from jostle.base import checks
from jostle.base.model import eval_mode, on_device
from jostle.base.progress import Progress
from jostle.base.store import Record
from jostle.studies.schema import Struct
from jostle.training.batches import Batches
from jostle.training.evaluation import predictions
from jostle.training.objective import losses as example_losses
from jostle.training.randomness import order
from jostle_papers.p2403_06925.parity.designs import BitClassifier, ParityDesign, as_design
from jostle_papers.p2403_06925.parity.measures import ParityLookRecord, ParityObserver
from jostle_papers.p2403_06925.parity.onsets import ACCURACY, LEARNT
from jostle_papers.p2403_06925.parity.task import SparseParity
from jostle_papers.stacked.layout import Layout
from jostle_papers.stacked.looks import Looks
from jostle_papers.stacked.state import StackedState, check_folder
from jostle_papers.stacked.training import StackedTraining, train_stacked
from jostle_papers.stacked.trajectory import Trajectory

AT_END = 10  # times as many points in the last look
_DENSITY = 50  # looks come after 1 / 50 more steps
_AT_ONCE = 1000  # training examples of a pass


@dataclass(frozen=True, kw_only=True)
class ParityCourse(Struct):
    """What was seen of one network while it was trained.

    Arguments:
        trajectory: curves of train_loss, train_accuracy and the measures of ``measures``. What it calls epochs are
            steps here.
        last: the last look, with intervals, influences and flips.
        epoch: steps of an epoch.
        parameters: number of weights of the network.
    """

    trajectory: Trajectory
    last: ParityLookRecord = field(repr=False)
    epoch: int
    parameters: int


@dataclass(frozen=True)
class TrainedClassifier:
    """A network that was trained on a sparse parity, and what was seen of it."""

    network: BitClassifier = field(repr=False)
    course: ParityCourse


@dataclass(frozen=True, kw_only=True)
class ParityPlan:
    """How long to train and when to look.

    Arguments:
        steps: the largest number of steps.
        every: steps from one look to the next at first; later a look comes after a further 2 % of the steps.
        further: once test accuracy is 99 %, training continues for this share of the steps done by then, and ends;
            None for all ``steps``.
        tests, points: as in ``ParityObserver``; the last look has ten times as many.
    """

    steps: int
    every: int = 2
    further: float | None = 0.5
    tests: int = 1000
    points: int = 100

    def __post_init__(self) -> None:
        checks.sizes(steps=self.steps, every=self.every)
        if self.further is not None:
            checks.number("further", self.further, least=0, hint=", or None to train for all steps")

    def next_look(self, step: int) -> int:
        """When to look after a look at ``step``.

        >>> [ParityPlan(steps=5000).next_look(step) for step in (0, 999, 2000, 4990)]
        [2, 1018, 2040, 5000]
        """
        return min(step + max(self.every, step // _DENSITY), self.steps)

    def last_step(self, learnt: int | None) -> int:
        """When training ends, if the look at ``learnt`` was the first with a test accuracy of 99 %."""
        if learnt is None or self.further is None:
            return self.steps
        return min(self.steps, learnt + int(self.further * learnt))


def train(
    task: SparseParity,
    design: ParityDesign | str,
    plan: ParityPlan,
    *,
    seed: int,
    folder: str | Path | None = None,
    checkpoint_every: int = 200,
    device: str | torch.device = "cpu",
    progress: Progress = False,
) -> TrainedClassifier:
    """Train a network and look at it before training, along the way, and at the end.

    With ``folder`` training that was interrupted resumes and ends with the same weights and the same looks, bit for
    bit; see ``train_stacked``.

    Arguments:
        task: what to learn.
        design: a name of ``DESIGNS`` or a ``ParityDesign``.
        plan: how long, and when to look.
        seed: of first weights, training examples, their order, and the points of the looks.
        folder: for state and looks.
        checkpoint_every: steps between states.
        device: where to train.
        progress: true for a bar on a terminal and plain lines elsewhere, or a function of ``progress.State``.

    Raises:
        UsageError: one line on what cannot be used as given.
        FailureError: training diverged, or a file could not be written.
    """
    if not isinstance(task, SparseParity):
        raise checks.wrong("task", task, "a SparseParity")
    seed = checks.whole("seed", seed, least=0)
    checks.sizes(checkpoint_every=checkpoint_every)
    place = None if folder is None else check_folder(folder)
    training = ParityTraining(task, as_design(design), plan, seed, place, on_device(device))
    state = train_stacked(training, folder=place, checkpoint_every=checkpoint_every, device=device, progress=progress)
    return training.result(state)


class ParityTraining(StackedTraining[StackedState]):
    """A network of one row, batches of a fixed sample in an order fixed by the seed, and the looks at it.

    Arguments:
        task, design, plan, seed: as in ``train``.
        folder: for the looks; None to have them in memory.
        device: where the network is.
    """

    kind = StackedState

    def __init__(
        self,
        task: SparseParity,
        design: ParityDesign,
        plan: ParityPlan,
        seed: int,
        folder: Path | None,
        device: torch.device,
    ) -> None:
        self.label, self.lr = f"train {design.network}", design.lr
        self._task, self._design, self._plan, self._seed = task, design, plan, seed
        self._observer, self._last_observer = (
            ParityObserver(task, tests=times * plan.tests, points=times * plan.points, seed=seed)
            for times in (1, AT_END)
        )
        self._network = design.create(task, seed).to(device)
        self._layout = Layout(design.create(task, seed))
        self._batches = Batches(self._network, task.sample(design.samples, seed=seed))
        self._bound = torch.zeros(0)
        self._epoch, self._order = -1, torch.zeros(0, dtype=torch.int64)
        self._looks = Looks(folder, self.describe())
        self._learnt = next((step for step, seen in self._looks.until().items() if seen[ACCURACY] >= LEARNT), None)

    def describe(self) -> dict[str, Any]:
        about = {"task": self._task.describe(), "seed": self._seed}
        return about | self._design.describe() | asdict(self._plan)

    def start(self) -> StackedState:
        return StackedState.start(self._layout.stack([self._design.create(self._task, self._seed)]))

    def rates(self, state: StackedState) -> float:
        return self.lr if state.steps < self._last_step(state.steps) else 0.0

    def loss_and_gradient(self, state: StackedState) -> tuple[Tensor, Tensor]:
        network = self._network_of(state)
        inputs, labels = self._batches.take(self._rows(state.steps))
        network.zero_grad()
        loss = example_losses(network(inputs), labels).mean()
        torch.autograd.backward(loss)
        if self._design.clip is not None:
            nn.utils.clip_grad_norm_(network.parameters(), self._design.clip)
        gradient = torch.zeros_like(state.weights)
        for name, view in self._layout.views(gradient).items():
            slope = network.get_parameter(name).grad
            if slope is not None:
                view[0] = slope
        return loss.detach().unsqueeze(0), gradient

    def next_look(self, step: int) -> int | None:
        before, _ = self._looks.last(step)  # a state need not be that of a look
        return min(self._plan.next_look(before), self._last_step(step))

    def look(self, state: StackedState) -> None:
        """Loss and accuracy on training examples, and all measures."""
        network = self._network_of(state)
        seen = self._looks.take(state.steps, lambda: self._fit(network) | self._observer.look(network).values)
        if self._learnt is None and seen[ACCURACY] >= LEARNT:
            self._learnt = state.steps

    def share(self, state: StackedState) -> float:
        return state.steps / self._last_step(state.steps)

    def summary(self, state: StackedState, losses: Tensor) -> str:
        _, seen = self._looks.last(state.steps)
        return f"test accuracy {seen[ACCURACY]:.3f}  sensitivity {seen['sensitivity']:.4f}"

    def result(self, state: StackedState) -> TrainedClassifier:
        """The network, and what was seen of it, with a last look."""
        looks = self._looks.until(state.steps)
        rows = list(looks.values())
        curves = {name: tuple(row[name] for row in rows) for name in rows[0]}
        network = self._layout.unstack(state.weights, 0).to(state.weights.device)
        assert isinstance(network, BitClassifier)
        course = ParityCourse(
            trajectory=Trajectory(self._seed, tuple(looks), curves),
            last=self._last_observer.look(network).record(),
            epoch=self._design.steps,
            parameters=self._layout.count,
        )
        return TrainedClassifier(network, course)

    def _last_step(self, done: int) -> int:
        """When training ends, as far as it is known after ``done`` steps."""
        is_known = self._learnt is not None and self._learnt <= done  # a file of looks may be ahead of the state
        return self._plan.last_step(self._learnt if is_known else None)

    def _network_of(self, state: StackedState) -> BitClassifier:
        """The network with the weights of ``state``, which it shares."""
        if self._bound is not state.weights:
            self._bound = state.weights
            self._layout.bind(self._network, state.weights, 0)
        return self._network

    def _rows(self, step: int) -> Tensor:
        """The examples of the step after ``step``: each epoch has an order of its own."""
        epoch, place = divmod(step, self._design.steps)
        if epoch != self._epoch:
            self._epoch, self._order = epoch, order(len(self._batches), self._seed, epoch + 1)
        return self._order[place * self._design.batch_size : (place + 1) * self._design.batch_size]

    @torch.no_grad()
    def _fit(self, network: BitClassifier) -> Record:
        """Loss and accuracy on the first training examples."""
        inputs, labels = self._batches.slice(0, self._plan.tests)
        with eval_mode(network):
            logits = torch.cat([network(part) for part in torch.split(inputs, _AT_ONCE)])
        right = (predictions(logits) == labels).double().mean()
        loss = example_losses(logits, labels).double().mean()
        return {"train_loss": float(loss), "train_accuracy": float(right)}
