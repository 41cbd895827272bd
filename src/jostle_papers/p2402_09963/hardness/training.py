"""Training by a ``HardnessPlan``: of several networks at once, each on its own function, or of one on its own loss."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from jostle.base import checks
from jostle.base.errors import UsageError
from jostle.base.progress import Progress
from jostle_papers.p2402_09963.hardness.architectures import evaluation, takes_shorter
from jostle_papers.p2402_09963.hardness.designs import HardnessDesign, HardnessPlan
from jostle_papers.p2402_09963.hardness.tasks import HardnessTask
from jostle_papers.stacked.adamw import StackedAdamW
from jostle_papers.stacked.layout import Layout
from jostle_papers.stacked.state import StackedState, check_folder
from jostle_papers.stacked.training import StackedTraining, check_seeds, train_stacked

SMOOTHING = 0.95  # of the loss that says when a network has fitted
_NUMBERS = 2**18  # of tokens at once: one megabyte

Weights = Mapping[str, Tensor]

Watch = Callable[[int, tuple[nn.Module, ...]], None]
"""Called with the number of steps done, and with the networks after them."""

Loss = Callable[[Weights, int], Tensor]
"""Weights by name and the number of steps done, to the mean squared error on the batch of that step."""


@dataclass
class FitState(StackedState):
    """Training by a plan after some steps.

    Arguments:
        loss: smoothed, (networks,); NaN before the first step of a length.
        fitted: the step after which each network had fitted the full length, (networks,); -1 before.
        stage: which of the lengths is trained on, ().
    """

    loss: Tensor
    fitted: Tensor
    stage: Tensor

    @classmethod
    def start(cls, weights: Tensor) -> Self:
        count = len(weights)
        nothing = torch.full((count,), torch.nan, dtype=torch.float64)
        return cls(weights, StackedAdamW.start(weights), nothing, torch.full((count,), -1), torch.tensor(0))


@dataclass(frozen=True)
class Trained:
    """Networks that were trained together.

    Arguments:
        networks: in eval mode, in the order of the seeds.
        losses: smoothed over the last steps, in units where labels are 0 and 1.
        fitted: the step after which each was below ``fit_loss`` on the full length; None if never.
        steps: all that were taken, the same number for all networks.
    """

    networks: tuple[nn.Module, ...]
    losses: tuple[float, ...]
    fitted: tuple[int | None, ...]
    steps: int


def train(
    tasks: Sequence[HardnessTask] | HardnessTask,
    design: HardnessDesign,
    plan: HardnessPlan,
    *,
    seeds: Sequence[int],
    folder: str | Path | None = None,
    checkpoint_every: int = 200,
    watch: Watch | None = None,
    watch_every: int = 100,
    device: str | torch.device = "cpu",
    progress: Progress = False,
) -> Trained:
    """Train a network from each seed, all at once.

    A network does not depend on which others are trained with it, up to rounding, unless there is a curriculum: all
    change to its next length together. With ``folder`` training that was interrupted resumes bit for bit; see
    ``train_stacked``.

    Arguments:
        tasks: one for all networks or one for each, all of the same number of bits.
        design: the network.
        plan: the training.
        seeds: of first weights and of strings, one for each network.
        folder: for the state; None for none.
        checkpoint_every: steps between states.
        watch: called before the first step and after every ``watch_every``, with networks of its own. Training that
            resumes from a state calls it again for steps since that state, with the same weights.
        watch_every: steps.
        device: where to train.
        progress: true for a bar on a terminal and plain lines elsewhere, or a function of ``progress.State``.

    Raises:
        UsageError: one line on what cannot be used as given.
        FailureError: training diverged, or a file could not be written.
    """
    checks.sizes(checkpoint_every=checkpoint_every, watch_every=watch_every)
    seeds = check_seeds(seeds)
    place = None if folder is None else check_folder(folder)
    training = _TogetherTraining(_check_tasks(tasks, seeds, design, plan), design, plan, seeds, watch, watch_every)
    state = train_stacked(training, folder=place, checkpoint_every=checkpoint_every, device=device, progress=progress)
    return Trained(
        training.networks(state),
        tuple(state.loss.tolist()),
        tuple(None if step < 0 else int(step) for step in state.fitted.tolist()),
        state.steps,
    )


def train_single(
    network: nn.Module,
    loss: Loss,
    plan: HardnessPlan,
    settings: Mapping[str, Any],
    *,
    scale: float = 1.0,
    folder: str | Path | None = None,
    checkpoint_every: int = 200,
    progress: Progress = False,
) -> tuple[int | None, int]:
    """Train one module on a loss of its own, in place; it ends in eval mode. For scratchpads and many lengths.

    Arguments:
        network: a module with its first weights.
        loss: what training minimises.
        plan: its steps, rates and end; batches and lengths are the concern of ``loss``.
        settings: what tells this training from others, JSON values, for the state on disk.
        scale: 4 Var(label), by which ``fit_loss`` is multiplied.
        folder, checkpoint_every, progress: as in ``train``.

    Returns:
        The step after which the smoothed loss was below ``fit_loss`` or None, and all steps.
    """
    checks.sizes(checkpoint_every=checkpoint_every)
    if plan.curriculum:
        raise UsageError(f"curriculum={plan.curriculum} is for train; here the loss chooses its lengths")
    place = None if folder is None else check_folder(folder)
    training = _SingleTraining(network, loss, plan, scale, settings)
    state = train_stacked(training, folder=place, checkpoint_every=checkpoint_every, progress=progress)
    training.layout.fill(network, state.weights, 0)
    network.eval()
    fitted = int(state.fitted)
    return None if fitted < 0 else fitted, state.steps


class _PlanTraining(StackedTraining[FitState]):
    """Rates by a plan, and when its networks have fitted.

    Arguments:
        plan: the training.
        enough: the smoothed loss below which a network has fitted, (lengths, networks).
    """

    kind = FitState

    def __init__(self, plan: HardnessPlan, enough: Tensor) -> None:
        self.lr, self.weight_decay = plan.lr, plan.weight_decay
        self.plan, self._enough = plan, enough

    def note(self, state: FitState, losses: Tensor, rates: Tensor | float) -> None:
        """Smooth the losses of networks that are still trained, and see which have fitted."""
        losses = losses.to(state.loss)
        smoothed = torch.where(state.loss.isnan(), losses, SMOOTHING * state.loss + (1 - SMOOTHING) * losses)
        is_trained = torch.as_tensor(rates, device=losses.device).flatten() > 0
        state.loss = torch.where(is_trained, smoothed, state.loss)
        stage = int(state.stage)
        fits = state.loss < self._enough[stage].to(state.loss.device)
        if stage == len(self._enough) - 1:
            now = torch.full_like(state.fitted, state.steps)
            state.fitted = torch.where((state.fitted < 0) & fits, now, state.fitted)
        elif bool(fits.all()):  # all change to the next length together
            state.stage = state.stage + 1
            state.loss = torch.full_like(state.loss, torch.nan)

    def share(self, state: FitState) -> float:
        return state.steps / self.plan.steps

    def summary(self, state: FitState, losses: Tensor) -> str:
        return f"loss {', '.join(f'{loss:.2e}' for loss in state.loss.tolist())}"


class _TogetherTraining(_PlanTraining):
    """Several networks of one design, each on strings and labels of its own task."""

    def __init__(
        self,
        tasks: list[HardnessTask],
        design: HardnessDesign,
        plan: HardnessPlan,
        seeds: tuple[int, ...],
        watch: Watch | None,
        watch_every: int,
    ) -> None:
        self._n = tasks[0].n
        self._lengths = plan.lengths(self._n)
        scales = [[task.scale(length) for task in tasks] for length in self._lengths]
        super().__init__(plan, plan.fit_loss * torch.tensor(scales, dtype=torch.float64))
        self.label = f"train {tasks[0].name}"
        self._tasks, self._design, self._seeds = tasks, design, seeds
        self._watch, self._watch_every = watch, watch_every
        self._layout = Layout(design.create(self._n, 0))
        self._outputs = evaluation(design.architecture, design.create(self._n, 0), design.heads)

    def describe(self) -> dict[str, Any]:
        about: dict[str, Any] = {"tasks": [task.describe() for task in self._tasks], "seeds": list(self._seeds)}
        return about | self._design.describe() | self.plan.describe()

    def start(self) -> FitState:
        return FitState.start(self._layout.stack([self._design.create(self._n, seed) for seed in self._seeds]))

    def rates(self, state: FitState) -> Tensor:
        return self.plan.rates(state.steps, state.fitted).to(state.weights.dtype).unsqueeze(1)

    def loss_and_gradient(self, state: FitState) -> tuple[Tensor, Tensor]:
        length, device = self._length(state), state.weights.device
        batches = [
            task.batch(self.plan.batch_size, seed, state.steps, length)
            for task, seed in zip(self._tasks, self._seeds, strict=True)
        ]
        # Batches differ in size only where networks have other numbers of strings: filled up with strings of share 0.
        padded = [pad_sequence(list(parts), batch_first=True).to(device) for parts in zip(*batches, strict=True)]
        gradient, losses = torch.zeros_like(state.weights), torch.zeros_like(state.loss)
        weights = state.weights.detach().requires_grad_()
        pieces = zip(*(torch.split(part, self._at_once(length), dim=1) for part in padded), strict=True)
        for bits, labels, shares in pieces:
            found = self._outputs(self._layout.views(weights), bits)
            parts = ((found - labels).square() * shares).sum(dim=1)  # (networks,)
            gradient += torch.autograd.grad(parts.sum(), weights)[0]
            losses += parts.detach()
        return losses, gradient

    def next_look(self, step: int) -> int | None:
        return None if self._watch is None else step - step % self._watch_every + self._watch_every

    def look(self, state: FitState) -> None:
        """Show the networks to whoever watches."""
        if self._watch is not None:
            self._watch(state.steps, self.networks(state))

    def summary(self, state: FitState, losses: Tensor) -> str:
        return f"{self._length(state)} bits, {super().summary(state, losses)}"

    def networks(self, state: FitState) -> tuple[nn.Module, ...]:
        """The networks as they are, each a module of its own."""
        return tuple(self._layout.unstack(state.weights, row) for row in range(len(self._seeds)))

    def _length(self, state: FitState) -> int:
        return self._lengths[int(state.stage)]

    def _at_once(self, length: int) -> int:
        """How many strings of each network are in memory together: their tokens stay in the cache."""
        return max(16, _NUMBERS // (len(self._seeds) * length * self._design.dim))


class _SingleTraining(_PlanTraining):
    """One module on a loss of its own."""

    def __init__(
        self, network: nn.Module, loss: Loss, plan: HardnessPlan, scale: float, settings: Mapping[str, Any]
    ) -> None:
        super().__init__(plan, torch.full((1, 1), scale * plan.fit_loss, dtype=torch.float64))
        self.layout = Layout(network)
        self._network, self._loss, self._settings = network, loss, settings

    def describe(self) -> dict[str, Any]:
        return dict(self._settings) | self.plan.describe()

    def start(self) -> FitState:
        return FitState.start(self.layout.stack([self._network]))

    def rates(self, state: FitState) -> float:
        return float(self.plan.rates(state.steps, state.fitted))

    def loss_and_gradient(self, state: FitState) -> tuple[Tensor, Tensor]:
        weights = state.weights.detach().requires_grad_()
        views = {name: view[0] for name, view in self.layout.views(weights).items()}
        loss = self._loss(views, state.steps)
        return loss.detach().unsqueeze(0), torch.autograd.grad(loss, weights)[0]


def _check_tasks(
    tasks: Sequence[HardnessTask] | HardnessTask, seeds: Sequence[int], design: HardnessDesign, plan: HardnessPlan
) -> list[HardnessTask]:
    found = [tasks] * len(seeds) if isinstance(tasks, HardnessTask) else list(tasks)
    if len(found) != len(seeds) or len({task.n for task in found}) != 1:
        raise UsageError(
            f"{len(found)} tasks for {len(seeds)} seeds; expected one for each, all of the same number of bits"
        )
    if plan.curriculum and any(task.labels is not None for task in found):
        raise UsageError("curriculum needs functions of every length; a table has one, so leave curriculum out")
    if plan.curriculum and not takes_shorter(design.architecture):
        raise UsageError(
            f"curriculum needs a network for every length, and {design.architecture} has one; leave it out"
        )
    return found
